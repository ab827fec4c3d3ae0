package maintext_test

import (
	"testing"

	"kumo/internal/content/document"
	"kumo/internal/content/maintext"
)

func TestMarkdownOfADocument(t *testing.T) {
	d := &document.Document{Blocks: []document.Block{
		{Kind: document.Heading, Level: 2, Text: "On *stars*"},
		{Text: "See the map, and the mail.", Links: []document.Link{{Text: "the map", URL: "map.html"},
			{Text: "mail", URL: "mailto:a@b"}}},
		{Kind: document.Item, Text: "one"}, {Kind: document.Item, Text: "two"},
		{Kind: document.Row, Cells: []string{"a", "b|c"}}, {Kind: document.Row, Cells: []string{"1", ""}},
		{Kind: document.Note, Text: "A note."}, {Text: "The end."},
	}}
	got := maintext.Markdown(d.HTML(), "https://example.org/docs/a.pdf")
	want := `## On \*stars\*

See [the map](https://example.org/docs/map.html), and the mail.

- one
- two

| a | b\|c |
|---|---|
| 1 |  |

A note.

The end.`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
