package choices

import (
	"bytes"
	"strings"
	"testing"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	xhtml "golang.org/x/net/html"

	"kumo/internal/content/maintext"
)

var goldMark = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe()))

// TestMarkdown parses main texts in Markdown with goldmark, and counts those that keep the words of the text.
func TestMarkdown(t *testing.T) {
	all, same := 0, 0
	elements := map[string]int{}
	for _, page := range pages() {
		text, _ := maintext.Extract(page, "http://a.test/dir/page") // on an error, the text found before it
		marked, _ := maintext.ExtractMarkdown(page, "http://a.test/dir/page", "")
		if text.Text == "" {
			continue
		}
		var read bytes.Buffer
		if err := goldMark.Convert([]byte(marked.Text), &read); err != nil {
			t.Fatal(err)
		}
		doc, err := xhtml.Parse(&read)
		if err != nil {
			t.Fatal(err)
		}
		var words strings.Builder
		for n := range doc.Descendants() {
			if n.Type == xhtml.TextNode {
				words.WriteString(n.Data)
			} else {
				elements[n.Data]++
			}
		}
		if all++; black(words.String()) == black(text.Text) {
			same++
		} else {
			t.Logf("differs: %s", text.Title)
		}
	}
	t.Logf("%d of %d have all words; links %d, code %d, items %d, cells %d, strong %d, em %d", same, all, elements["a"],
		elements["code"], elements["li"], elements["td"]+elements["th"], elements["strong"], elements["em"])
}

// black returns a text without white space.
func black(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}

// BenchmarkMarkdown extracts main texts, without and with markup.
func BenchmarkMarkdown(b *testing.B) {
	all := corpus(b)
	run := func(extract func(body []byte, url string) (maintext.Text, error)) func() error {
		return func() error {
			for _, page := range all {
				_, _ = extract(page, "http://a.test/dir/page") // some pages are too large
			}
			return nil
		}
	}
	byTurns(b, "page", len(all), &contender{name: "text", run: run(maintext.Extract)},
		&contender{name: "Markdown", run: run(markdownOf)})
}

func markdownOf(body []byte, url string) (maintext.Text, error) {
	return maintext.ExtractMarkdown(body, url, "")
}
