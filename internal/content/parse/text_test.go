package parse

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"testing"

	"kumo/internal/base/page"
)

// The text of a piece does not depend on when the document is found to be invalid: it equals the text after validating
// the whole document first.
func TestPieces(t *testing.T) {
	const seed = 1
	random := rand.New(rand.NewPCG(seed, 0))
	parts := []string{"a", "plain text", "&amp;", "ü", "語", "😀", "\uFEFF", "\uFFFD", "\x00", "\xD0", "\xE8\xAA", "\xFF",
		"\x7F"}
	for range 20_000 {
		var doc []byte
		flawed := random.IntN(2)
		for range 1 + random.IntN(12) {
			doc = append(doc, parts[random.IntN(len(parts)-5*(1-flawed))]...)
		}
		var lazy, early text
		lazy.init(utf8Charset, utf8Charset, doc)
		early.init(utf8Charset, utf8Charset, doc)
		early.validate()
		for range 4 {
			start := random.IntN(len(doc) + 1)
			piece := doc[start : start+random.IntN(len(doc)-start+1)]
			if got, want := lazy.decode(piece), early.decode(piece); !bytes.Equal(got, want) {
				t.Fatalf("seed %d: %q in %q is %q, want %q", seed, piece, doc, got, want)
			}
		}
	}
}

// The number of allocations of a page is constant, whatever its length and number of links.
func TestPageAllocations(t *testing.T) {
	measure := func(size int) float64 {
		w := newPageWriter(1, latinWords)
		resp := &page.Response{URL: testURL, Body: w.page(size), Header: http.Header{"Content-Type": {"text/html"}}}
		p, pg := New(Config{PlainText: true}), new(page.Page)
		return testing.AllocsPerRun(10, func() {
			if err := p.Parse(resp, pg); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := measure(8<<10), measure(242<<10); many > few {
		t.Errorf("a page of 8 KB takes %v allocations, one of 242 KB %v", few, many)
	}
}

func TestIsASCII(t *testing.T) {
	for n := range 20 {
		for at := range n {
			for c := range 256 {
				text := bytes.Repeat([]byte{1}, n)
				text[at] = byte(c)
				if got, want := isASCII(text), c > 0 && c < 0x80; got != want {
					t.Fatalf("isASCII(%q) = %v", text, got)
				}
			}
		}
	}
}
