package choices

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/abadojack/whatlanggo"
	"golang.org/x/text/unicode/norm"

	"kumo/internal/content/lang"
)

// wanted are the languages that a crawl distinguishes; all others are "other".
var wanted = strings.Fields("zh en ja ko de ur fr ru es pt ar hi it id ms my fa vi mn kk ky ne fil ps lo tg bo")

// tellers detect the language of a text. A file with a build tag adds more.
var tellers = []teller{
	{"kumo", func(text string) string { return lang.Detect(text).Lang }},
	{"whatlanggo", func(text string) string { return code(whatlanggo.DetectLang(text)) }},
	{"whatlanggo, if reliable", func(text string) string {
		info := whatlanggo.Detect(text)
		if !info.IsReliable() {
			return ""
		}
		return code(info.Lang)
	}},
	{"whatlanggo, ours only", func(text string) string {
		return code(whatlanggo.DetectLangWithOptions(text, whatlanggo.Options{Whitelist: known}))
	}},
}

// code returns a language's code; whatlanggo has none for Persian.
func code(l whatlanggo.Lang) string {
	if l == whatlanggo.Pes {
		return "fa"
	}
	return l.Iso6391()
}

// known are the wanted languages that whatlanggo supports.
var known = func() map[whatlanggo.Lang]bool {
	some := map[whatlanggo.Lang]bool{}
	for l := range whatlanggo.Langs {
		if slices.Contains(wanted, tagalog(code(l))) {
			some[l] = true
		}
	}
	return some
}()

type teller struct {
	name string
	tell func(text string) string
}

// TestLanguage counts the texts with a correctly detected language, and those in other languages that are mistaken for
// a wanted one: sentences, and runs of them of 500 characters, as in pages. The Malay texts are largely Indonesian, so
// they are excluded.
func TestLanguage(t *testing.T) {
	var all []sentence
	for _, s := range append(sentences(t, "sentences.jsonl"), sentences(t, "udhr-part.jsonl")...) {
		if s.Lang = tagalog(s.Lang); s.Lang != "ms" {
			all = append(all, s)
		}
	}
	for _, set := range []struct {
		name  string
		texts []sentence
	}{{"sentences", all}, {"long texts", runs(all)}} {
		for _, teller := range tellers {
			t.Logf("%-10s  %-24s %s", set.name, teller.name, judge(teller, set.texts))
		}
	}
}

func runs(all []sentence) (long []sentence) {
	texts := map[string]string{}
	for _, s := range all {
		if texts[s.Lang] += s.Text + " "; utf8.RuneCountInString(texts[s.Lang]) > 500 {
			long = append(long, sentence{s.Lang, texts[s.Lang]})
			texts[s.Lang] = ""
		}
	}
	return long
}

func judge(teller teller, texts []sentence) string {
	right, of := map[string]int{}, map[string]int{}
	sum, ours, foreign, taken := 0, 0, 0, 0
	for _, s := range texts {
		told := tagalog(teller.tell(s.Text))
		if !slices.Contains(wanted, s.Lang) {
			foreign++
			if slices.Contains(wanted, told) {
				taken++
			}
			continue
		}
		ours++
		of[s.Lang]++
		if told == s.Lang {
			sum++
			right[s.Lang]++
		}
	}
	var low []string
	for _, l := range wanted {
		if 100*right[l] < 95*of[l] {
			low = append(low, l)
		}
	}
	return fmt.Sprintf("%d of %d (%.1f %%); below 95 %%: %d (%s); %d of %d foreign ones taken for ours (%.1f %%)",
		sum, ours, 100*float64(sum)/float64(ours), len(low), strings.Join(low, " "),
		taken, foreign, 100*float64(taken)/float64(foreign))
}

// tagalog converts to the code for Filipino.
func tagalog(code string) string {
	if code == "tl" {
		return "fil"
	}
	return code
}

// BenchmarkLanguage detects the language of 2 KB of text, as much as a crawl uses.
func BenchmarkLanguage(b *testing.B) {
	byLang := map[string]string{}
	for _, s := range sentences(b, "sentences.jsonl") {
		byLang[s.Lang] += s.Text + " "
	}
	var texts []string
	for _, l := range strings.Fields("en de fr es pt it id vi ru ar fa hi zh ja ko nl pl uk tr sv") {
		if text := norm.NFC.String(byLang[l]); len(text) >= 2<<10 {
			texts = append(texts, strings.ToValidUTF8(text[:2<<10], ""))
		}
	}
	var all []*contender
	for _, teller := range tellers {
		teller.tell(texts[0]) // loads its models
		all = append(all, &contender{name: teller.name, run: func() error {
			for _, text := range texts {
				teller.tell(text)
			}
			return nil
		}})
	}
	byTurns(b, "text", len(texts), all...)
}
