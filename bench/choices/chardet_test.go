package choices

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gogs "github.com/gogs/chardet"
	"github.com/saintfish/chardet"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/htmlindex"

	own "kumo/internal/content/chardet"
)

// detectors detect the charset of an undeclared text.
var detectors = []struct {
	name   string
	detect func(text []byte) string
}{
	{"kumo", func(text []byte) string { return own.Detect(text).Name }},
	{"saintfish/chardet", func(text []byte) string {
		r, err := chardet.NewTextDetector().DetectBest(text)
		if err != nil {
			return ""
		}
		return r.Charset
	}},
	{"gogs/chardet", func(text []byte) string {
		r, err := gogs.NewTextDetector().DetectBest(text)
		if err != nil {
			return ""
		}
		return r.Charset
	}},
	{"x/net/html/charset", func(text []byte) string {
		_, name, _ := charset.DetermineEncoding(text, "")
		return name
	}},
}

// canonical returns a charset's name in the Encoding Standard, or its own if it is not there.
func canonical(name string) string {
	switch name = strings.ToLower(name); name {
	case "utf-16", "utf-32", "iso-2022-kr":
		return name
	case "mac-cyrillic":
		return "x-mac-cyrillic"
	}
	enc, err := htmlindex.Get(name)
	if err != nil {
		return name
	}
	name, _ = htmlindex.Name(enc)
	return name
}

// TestCharset detects undeclared texts: uchardet's by name, and five sentences in each charset of their languages by
// whether decoding restores them.
func TestCharset(t *testing.T) {
	files, err := filepath.Glob(testdata(t, "charset", "uchardet", "*", "*"))
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	texts := legacyTexts(t)
	for _, d := range detectors {
		right, read := 0, 0
		for _, file := range files {
			base := filepath.Base(file)
			ext := filepath.Ext(base)
			want, got := canonical(strings.TrimSuffix(base, ext)), canonical(d.detect(readFile(t, file)))
			if want == "utf-16" || want == "utf-32" {
				want += strings.TrimPrefix(ext, ".")
			}
			inEnglish := filepath.Base(filepath.Dir(file)) == "en" && want == "windows-1252"
			if got == want || inEnglish && got == "" {
				right++
			}
		}
		for _, text := range texts {
			if readAs(text.coded, d.detect(text.coded)) == text.plain {
				read++
			}
		}
		t.Logf("%-20s %d of %d texts of uchardet by name, %d of %d made of sentences as written (%.1f %%)",
			d.name, right, len(files), read, len(texts), 100*float64(read)/float64(len(texts)))
	}
}

// readAs decodes a text; "" if it cannot.
func readAs(coded []byte, name string) string {
	enc, err := htmlindex.Get(canonical(name))
	if err != nil {
		return ""
	}
	text, err := enc.NewDecoder().Bytes(coded)
	if err != nil {
		return ""
	}
	return string(text)
}

// legacy has the charsets in which the languages of the sentences were written before UTF-8.
var legacy = map[string]string{
	"ar": "windows-1256 iso-8859-6", "fa": "windows-1256", "ur": "windows-1256",
	"be": "windows-1251", "bg": "windows-1251 koi8-r iso-8859-5", "mk": "windows-1251",
	"ru": "windows-1251 koi8-r iso-8859-5 ibm866", "sr": "windows-1251", "uk": "windows-1251 koi8-u",
	"ca": "windows-1252", "da": "windows-1252", "de": "windows-1252", "es": "windows-1252", "fi": "windows-1252",
	"fr": "windows-1252", "is": "windows-1252", "it": "windows-1252", "nb": "windows-1252", "nl": "windows-1252",
	"pt": "windows-1252", "sv": "windows-1252",
	"cs": "windows-1250 iso-8859-2", "hr": "windows-1250 iso-8859-2", "hu": "windows-1250 iso-8859-2",
	"pl": "windows-1250 iso-8859-2", "sk": "windows-1250 iso-8859-2", "sl": "windows-1250 iso-8859-2",
	"ro": "iso-8859-2", "lt": "windows-1257", "lv": "windows-1257", "et": "windows-1257",
	"el": "windows-1253 iso-8859-7", "he": "windows-1255", "th": "windows-874", "tr": "windows-1254",
	"ja": "shift_jis euc-jp iso-2022-jp", "ko": "euc-kr", "zh": "gb18030 big5",
}

type legacyText struct {
	plain string
	coded []byte
}

func legacyTexts(t testing.TB) (all []legacyText) {
	const together = 5
	byLang := map[string][]string{}
	for _, s := range sentences(t, "sentences.jsonl") {
		byLang[s.Lang] = append(byLang[s.Lang], s.Text)
	}
	for _, lang := range slices.Sorted(maps.Keys(legacy)) {
		for name := range strings.FieldsSeq(legacy[lang]) {
			enc, err := htmlindex.Get(name)
			if err != nil {
				t.Fatal(err)
			}
			for some := range slices.Chunk(byLang[lang], together) {
				var plain string
				for _, sentence := range some {
					if _, err := enc.NewEncoder().String(sentence); err == nil {
						plain += sentence + "\n"
					}
				}
				coded, err := enc.NewEncoder().Bytes([]byte(plain))
				if err == nil && (name == "iso-2022-jp" || telling(coded) >= 8) {
					all = append(all, legacyText{plain, coded})
				}
			}
		}
	}
	return all
}

// telling counts the bytes that are not ASCII.
func telling(text []byte) (n int) {
	for _, c := range text {
		n += int(c >> 7)
	}
	return n
}

type sentence struct{ Lang, Text string }

func sentences(t testing.TB, name string) (all []sentence) {
	t.Helper()
	for line := range strings.Lines(string(readFile(t, testdata(t, "lang", name)))) {
		var s sentence
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// BenchmarkCharset detects undeclared texts that are not UTF-8.
func BenchmarkCharset(b *testing.B) {
	texts := legacyTexts(b)
	var some [][]byte
	size := 0
	for i := 0; i+10 <= len(texts); i += 97 {
		var text []byte
		for range 10 { // about as long as a page's text
			text = append(text, texts[i].coded...)
		}
		some, size = append(some, text), size+len(text)
	}
	b.Logf("%d texts of %d bytes in the mean", len(some), size/len(some))
	var all []*contender
	for _, d := range detectors {
		all = append(all, &contender{name: d.name, run: func() error {
			for _, text := range some {
				if d.detect(text) == "none" {
					return fmt.Errorf("%q", text)
				}
			}
			return nil
		}})
	}
	byTurns(b, "text", len(some), all...)
}
