package maintext

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/cputime"
)

// fill repeats a piece up to a size, with its number if it has a verb.
func fill(piece string, size int) string {
	if !strings.Contains(piece, "%d") {
		return strings.Repeat(piece, size/len(piece))
	}
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, piece, i)
	}
	return b.String()
}

// TestHostile limits the time for each malicious page, to what even a slow machine with the race detector needs.
func TestHostile(t *testing.T) {
	const limit = 60 * time.Second // for a slow machine under the race detector; a second is usual
	pages := []struct{ name, head, piece string }{
		{"nested divs", "", "<div>"},
		{"self-closing divs", "", "<div/>"},
		{"nested lists", "", "<ul><li>word "},
		{"nested tables", "", "<table><tr><td>word "},
		{"wide in quotes", strings.Repeat("<blockquote>", 64), "<q>word</q> "},
		{"wide in tables", strings.Repeat("<table><tr><td>", 64), "<span>word</span><ul><li>x</ul>"},
		{"wide in divs", strings.Repeat("<div class=comment>", 64), "<a href=x>word</a><p>word"},
		{"lines of pre", "<pre>", "  word\n\tword  word\n"},
		{"spaces of pre", "<pre>", " "},
		{"places", "", "<a name=%d>word"},
		{"article in data", `<script type="application/ld+json">{"@type":"Article","articleBody":"` +
			fill("<div>", hostileSize) + `"}</script>`, "<p>"},
		{"code", "", "<pre><code>word <span class=hljs>"},
		{"formatting reopened", fill("<font size=%d>", 8<<10), "<p>x"},
		{"links reopened", "", "<a href=%d><p>x"},
		{"paragraphs", "", "<p>A sentence with some words in it."},
		{"short paragraphs", "<article>", "<p>word"},
		{"breaks", "", "words<br>"},
		{"rows", "<table>", "<tr><td>word<td>word"},
		{"text foster-parented", "<table>", "word<tr>"},
		{"ignored tags", "", "word</x><td>"},
		{"attributes of body", "", "<body a%d=1>"},
		{"attributes", "<div ", "a%d=1 "},
		{"one tag", "<p ", "x"},
		{"one text", "", "word "},
		{"comments", "", "<!-- -->word"},
		{"unclosed comment", "", "<!--"},
		{"unclosed script", "<script>", "<!--<script>"},
		{"svg", "", "<svg><title><p>"},
		{"templates", "", "<template>"},
		{"selects", "", "<select><option>"},
		{"metas", "", "<meta name=author content=a%d>"},
		{"data", `<script type="application/ld+json">`, `{"@graph":[`},
		{"links", "", "<a href=/%d>link</a> "},
		{"nested authors and dates", strings.Repeat(`<div class="author date" itemprop=author>`, 500), "<i></i>"},
		{"times in spans", strings.Repeat("<span>", 500), "<time datetime=2020-01-02></time>"},
		{"nested headings", "", "<h1>word %d "},
		{"NUL", "", "\x00"},
		{"invalid UTF-8", "", "\xff"},
	}
	for _, p := range pages {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			body := append([]byte(p.head), fill(p.piece, hostileSize)...)
			var text Text
			var err error
			took := cputime.Of(func() { text, err = Extract(body, "https://example.org/") })
			t.Logf("%6d ms, %d bytes of text, error %v", took.Milliseconds(), len(text.Text), err)
			if took > limit {
				t.Errorf("took %v", took)
			}
			if len(text.Text) > maxText {
				t.Errorf("%d bytes of text", len(text.Text))
			}
		})
	}
}

// TestNestedNames bounds the nodes that are visited below elements with the names of authors and dates, and below
// headings: a walk through each would take time depth × nodes.
func TestNestedNames(t *testing.T) {
	pages := []struct{ name, head, piece string }{
		{"authors and dates", strings.Repeat(`<div class="author date" itemprop=author>`, 500), "<i></i>"},
		{"short texts", strings.Repeat(`<div class="author date" itemprop=author>x`, 500), "<i></i>"},
		{"every element", "", `<div class="author date" itemprop=author>`},
		{"slugs", strings.Repeat(`<div id=menu><h2>`, 250), "<i></i>"},
		{"headings", strings.Repeat("<h1>", 500), "<i></i>"},
		{"headings with text", strings.Repeat("<div><h1>"+strings.Repeat("word ", 500), 250), "<i>x</i>"},
		{"every heading", "", "<div><h1>word %d"},
	}
	for _, p := range pages {
		t.Run(p.name, func(t *testing.T) {
			d := documents.New().(*document)
			var text Text
			_ = d.read(&text, []byte(p.head+fill(p.piece, 1<<20)), "", time.Now(), nil) // too large
			nodes := d.tree.Nodes()
			t.Logf("%d nodes, %d visits", nodes, d.visits)
			if d.visits > 20*nodes {
				t.Errorf("%d visits of %d nodes", d.visits, nodes)
			}
			if n := len(d.out.headings); n > 500 {
				t.Errorf("%d headings are kept", n)
			}
		})
	}
}

// TestTooLarge tests each limit: the rest of the page is not read, and the error contains the limit.
func TestTooLarge(t *testing.T) {
	const start = "<title>T</title><p>" + long
	tests := []struct{ name, html, want string }{
		{"body", start + fill("<b title='"+long+long+"'>", maxBody), "16777216 are read"},
		{"text", start + fill("<p>"+strings.Repeat(long, 50), 2*maxText), "more than 4194304 bytes of text"},
		{"nodes", start + fill("<p>word", 8*maxNodes), "more than 200000 elements and texts"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Extract([]byte(tt.html), "https://example.org/x")
			if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), tt.want) ||
				!strings.Contains(err.Error(), "example.org/x") {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			if got.Title != "T" || !strings.HasPrefix(got.Text, long) {
				t.Errorf("title %q, %d bytes of text", got.Title, len(got.Text))
			}
		})
	}
}

// TestCut truncates each template at random places: nothing may panic, and valid pages never fail.
func TestCut(t *testing.T) {
	dice := rand.New(rand.NewPCG(7, 7))
	for i, w := range loadTongues(t) {
		s := makeSample(w, templates[i%len(templates)], uint64(i))
		for range 20 {
			at := dice.IntN(len(s.html))
			if _, err := Extract([]byte(s.html[:at]), s.url); err != nil {
				t.Errorf("%s %s cut at %d: %v", s.kind, w.lang, at, err)
			}
		}
	}
}

func FuzzExtract(f *testing.F) {
	for i, w := range loadTongues(f) {
		f.Add([]byte(makeSample(w, templates[i%len(templates)], uint64(i)).html))
	}
	f.Add([]byte("<table><tr><td><p>a<table><caption>b<td>c<svg><title>d</svg>e"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > 64<<10 {
			return
		}
		text, err := Extract(bytes.Clone(body), "https://example.org/2020/01/02/a")
		if errors.Is(err, ErrPanic) {
			t.Error(err)
		}
		for _, s := range []string{text.Title, text.Headline, text.Author} {
			if len(s) > maxField {
				t.Errorf("field of %d bytes", len(s))
			}
		}
		for line := range strings.SplitSeq(text.Text, "\n") {
			if text.Text != "" && line == "" || strings.TrimRight(line, " \t") != line {
				t.Errorf("untidy text %q", text.Text)
			}
		}
	})
}
