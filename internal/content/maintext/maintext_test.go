package maintext

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const long = "The boat left the harbour before sunrise, and nobody on the quay expected it back so soon."

func TestFields(t *testing.T) {
	tests := []struct {
		name, html, url string
		want            Text
	}{
		{"nothing", "", "", Text{}},
		{"title only", "<title> A\n title </title>", "", Text{Title: "A title", Headline: "A title"}},
		{"headline from h1, not from the title's end",
			"<html lang=EN_gb><title>A boat | The Site</title><h1>A boat</h1><p>" + long,
			"", Text{Title: "A boat | The Site", Headline: "A boat", Text: long, Lang: "en-GB"}},
		{"JSON-LD: name in one word, list of authors, zone",
			`<title>船</title><script type="application/ld+json">{"@graph":[{"@type":"WebSite","name":"x"},{"@type":["NewsArticle"],` +
				`"headline":"船が戻る","datePublished":"2024-05-06T07:08:09+09:00","author":[{"name":"佐藤"},"高橋"]}]}</script><p>` + long,
			"", Text{Title: "船", Headline: "船が戻る", Text: long, Published: "2024-05-06T07:08:09+09:00", Author: "佐藤; 高橋"}},
		{"broken JSON-LD", `<title>T</title><script type="application/ld+json">{"@type":"Article",</script><p>` + long, "",
			Text{Title: "T", Headline: "T", Text: long}},
		{"date in meta", `<meta name=date content="2021-02-03"><p>` + long, "", Text{Text: long, Published: "2021-02-03"}},
		{"date in the URL", "<p>" + long, "https://example.org/2019/08/07/boat.html",
			Text{Text: long, Published: "2019-08-07"}},
		{"date in the future is none", `<meta name=date content="2026-05-03"><p>` + long, "", Text{Text: long}},
		{"profile is no author", `<meta property="article:author" content="https://example.org/u/1"><p>` + long, "",
			Text{Text: long}},
		{"invalid language", "<html lang=x><meta http-equiv=content-language content='pt-br, en'><p>" + long, "",
			Text{Text: long, Lang: "pt-BR"}},
		{"XHTML, markup in the heading", `<html xml:lang="ar"><title>6. apt، dpkg</title><h2>6. <span>apt</span>، <span>dpkg</span></h2><p>` + long, "",
			Text{Title: "6. apt، dpkg", Headline: "6. apt، dpkg", Text: long, Lang: "ar"}},
		{"inline markup splits no word", "<p>日<b>本</b>語の<i>文章</i>は<span>語</span>の間に<a href=x>空白</a>を置かない。これは二つ目の文である。", "",
			Text{Text: "日本語の文章は語の間に空白を置かない。これは二つ目の文である。"}},
		{"ruby and soft hyphens", "<p><ruby>漢字<rp>(<rt>かんじ<rp>)</ruby>の上に読みがなを書くことがある。soft\u00ADware", "",
			Text{Text: "漢字の上に読みがなを書くことがある。software"}},
		{"a heading's link to itself", "<title>A boat</title><h1>A boat<a href=#a>¶</a></h1><p>" + long, "",
			Text{Title: "A boat", Headline: "A boat", Text: long}},
		{"hidden text", "<p>" + long + "<div hidden>secret words that nobody reads</div><template><p>never shown to " +
			"anyone</template>", "",
			Text{Text: long}},
		{"invalid UTF-8", "<p>" + long + "\xff", "", Text{Text: long + "\uFFFD"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := extract([]byte(tt.html), tt.url, now)
			if err != nil {
				t.Fatal(err)
			}
			got.Kind = "" // see TestLabelled
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLines tests the conversion of blocks to lines.
func TestLines(t *testing.T) {
	html := "<article><h1>Head</h1><p>" + long + "</p><h2>Sub</h2><ul><li>one thing</li><li>another thing</li></ul>" +
		"<p>" + strings.ToUpper(long) + "</p><table><tr><td>left</td><td>right</td></tr></table><pre>line 1;\n  line " +
		"2;</pre><p>End of it.</p></article>"
	got, err := extract([]byte("<title>Head</title>"+html), "", now)
	if err != nil {
		t.Fatal(err)
	}
	want := long + "\nSub\none thing\nanother thing\n" + strings.ToUpper(long) +
		"\nleft\tright\nline 1;\n  line 2;\nEnd of it."
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got.Text, "\n")); diff != "" {
		t.Error(diff)
	}
}

func TestWeigh(t *testing.T) {
	for s, want := range map[string]int{"": 0, "a b, 1": 2, "日本": 6, "かな": 4, "한국": 4, "हिन्दी": 6, "ไทย": 3, "بحر": 3} {
		if got := weigh(s); got != want {
			t.Errorf("weigh(%q) = %d, want %d", s, got, want)
		}
	}
}

func TestEachRuneIsWeighedAlike(t *testing.T) {
	for r := range rune(0x3_2000) {
		if got, want := weigh(string(r)), weight(r); utf8.ValidRune(r) && got != want {
			t.Fatalf("weigh(%q) = %d, want %d", r, got, want)
		}
	}
}

func TestSqueezedIsWhatSqueezingLeavesAlone(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	pieces := []string{"a", "b", "日", "、", "“", "é", " ", " ", "\n", "\u00A0", "\u00AD", "\u0085", "\u1680", "\u2003",
		"\u2028",
		"\u202F", "\u205F", "\u3000", "\u200B", "\xC2", "\xE3\x80", "\x80"}
	squeezed := 0
	for range 50_000 {
		var b strings.Builder
		for range dice.IntN(6) {
			b.WriteString(pieces[dice.IntN(len(pieces))])
		}
		s := b.String()
		want := strings.Join(strings.Fields(strings.ReplaceAll(s, "\u00AD", "")), " ") == s
		if got := isSqueezed(s); got != want {
			t.Fatalf("isSqueezed(%q) = %v", s, got)
		}
		if want {
			squeezed++
		}
	}
	if squeezed < 1000 {
		t.Errorf("%d of the samples are squeezed", squeezed)
	}
}

// TestConcurrent reads the same page concurrently, with the same result.
func TestConcurrent(t *testing.T) {
	s := makeSample(loadTongues(t)[0], templates[0], 1)
	want, err := Extract([]byte(s.html), s.url)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got, err := Extract([]byte(s.html), s.url); err != nil || got != want {
				t.Errorf("got %+v, %v; want %+v", got, err, want)
			}
		})
	}
	wg.Wait()
}

func BenchmarkExtract(b *testing.B) {
	for _, w := range loadTongues(b) {
		if w.lang != "en" && w.lang != "ja" && w.lang != "ar" {
			continue
		}
		s := makeSample(w, templates[0], 3)
		b.Run(w.lang, func(b *testing.B) {
			b.SetBytes(int64(len(s.html)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Extract([]byte(s.html), s.url); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
