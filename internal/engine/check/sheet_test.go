package check

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func printed(t *testing.T, answer any) string {
	t.Helper()
	var b strings.Builder
	if err := Print(&b, answer); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPrint shows how each kind of field is printed.
func TestPrint(t *testing.T) {
	type part struct {
		Name  string `json:"the_name"`
		Count int    `json:"count"`
		More  string `json:"more"`
	}
	type answer struct {
		OK    bool              `json:"ok"`
		Parts []part            `json:"parts"`
		Pairs map[string]string `json:"pairs"`
		Text  string            `json:"text"`
		Words []string          `json:"some_words"`
		Empty []part            `json:"empty"`
		Left  string            `json:"left_out,omitempty"`
		Null  *string           `json:"null"`
		Sure  float64           `json:"sure"`
	}
	word := "word"
	for _, c := range []struct {
		answer any
		want   string
	}{
		{CanonOut{"http://a.example/"}, "http://a.example/\n"},
		{answer{OK: true, Null: &word, Sure: 0.95, Left: "here", Words: []string{"a", "b"},
			Parts: []part{{"short", 1, "m"}, {"longer", 20, ""}}, Pairs: map[string]string{"k": "v", "a": "b"},
			Text: "one\n\ntwo\n"}, `
ok          yes
pairs       a=b
            k=v
some words  a
            b
left out    here
null        word
sure        0.95

the name  count  more
short     1      m
longer    20

empty  none

text:
one

two
`},
		{answer{}, `
ok          no
pairs       none
text        none
some words  none
null        none
sure        0

parts  none

empty  none
`},
		{SrcsetOut{[]Candidate{{strings.Repeat("x", maxWidth+1), "1x"}, {"y", "2x"}}},
			"url  descriptor\n" + strings.Repeat("x", maxWidth+1) + "  1x\ny    2x\n"},
		{CanonOut{"a\x1b[2Jb\u202ec\nd\xff\u200ce"}, "a\\u{1b}[2Jb\\u{202e}c\\u{a}d\uFFFD\u200ce\n"},
	} {
		if got := printed(t, c.answer); got != strings.TrimPrefix(c.want, "\n") {
			t.Errorf("got\n%swant%s", got, c.want)
		}
	}
}

func TestPrintLinks(t *testing.T) {
	out, err := Links(LinksIn{PageIn: PageIn{URL: "http://a.example/d/", HTML: []byte(
		`<title>T</title><meta name=robots content=noindex><a href=x rel=nofollow>one</a><a href=/y>two</a><img src=z>`)}})
	if err != nil {
		t.Fatal(err)
	}
	want := `
title      T
charset    utf-8
base       http://a.example/d/
canonical  none
robots     noindex
refresh    none

kind  url                   rel       text
a     http://a.example/d/x  nofollow  one
a     http://a.example/y              two
img   http://a.example/d/z

links  2 a, 1 img
`
	if got := "\n" + printed(t, out); got != want {
		t.Errorf("got%swant%s", got, want)
	}
	if got := printed(t, LinksOut{}); !strings.HasSuffix(got, "\nlinks  none\n") {
		t.Errorf("no links: %s", got)
	}
}

func FuzzPrint(f *testing.F) {
	f.Add("a\x1b]0;title\a", "\u2066b\r\n\x9bc")
	f.Fuzz(func(t *testing.T, one, other string) {
		got := printed(t, LinksOut{Title: one, Links: []Link{{URL: other, Text: one}}}) +
			printed(t, RobotsOut{Rule: one, Sitemaps: []string{other}})
		if !utf8.ValidString(got) {
			t.Errorf("%q is no text", got)
		}
		if i := strings.IndexFunc(got, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }); i >= 0 {
			t.Errorf("a control in %q", got[i:])
		}
	})
}
