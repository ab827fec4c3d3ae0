package document_test

import (
	"errors"
	"strings"
	"testing"

	"kumo/internal/base/page"
	"kumo/internal/content/document"
	"kumo/internal/content/parse"
)

func TestHTMLHasWhatThePageReaderReads(t *testing.T) {
	d := &document.Document{Format: document.PDF, Title: `A <title> & "more"`, Lang: "de", Author: "N. N.",
		Links: []string{"https://example.org/at-the-end"},
		Blocks: []document.Block{
			{Kind: document.Heading, Level: 1, Text: "First", Page: 1},
			{Text: "See the other page, or the other.", Page: 1, Links: []document.Link{
				{Text: "other page", URL: "other.html"}, {URL: "https://example.org/no-text"},
				{Text: "mail", URL: "mailto:a@example.org"}}},
			{Kind: document.Item, Text: "one", Page: 2}, {Kind: document.Item, Text: "two", Page: 2},
			{Kind: document.Row, Cells: []string{"a", "b<"}, Page: 2}, {Kind: document.Note, Text: "a note", Page: 2},
		}}
	body := d.HTML()
	var pg page.Page
	resp := (&page.Response{URL: "https://example.org/docs/a.pdf", Status: 200}).Rendered(body)
	if err := parse.New(parse.Config{AnchorText: true}).Parse(resp, &pg); err != nil {
		t.Fatal(err)
	}
	if pg.Title != d.Title || pg.Heading != "First" {
		t.Errorf("title %q, heading %q", pg.Title, pg.Heading)
	}
	var links []string
	for _, l := range pg.Links {
		links = append(links, l.URL)
	}
	want := "https://example.org/docs/other.html https://example.org/no-text https://example.org/at-the-end"
	if got := strings.Join(links, " "); got != want {
		t.Errorf("links: %s, want %s", got, want)
	}
	for _, part := range []string{`<html lang="de">`, `<h1 id="page-1">First</h1>`,
		"<ul>\n<li id=\"page-2\">one</li>\n<li>two</li>\n</ul>",
		"<table>\n<tr><th>a</th><th>b&lt;</th></tr>\n</table>", "<aside>a note</aside>"} {
		if !strings.Contains(string(body), part) {
			t.Errorf("no %s in\n%s", part, body)
		}
	}
	if got, want := d.Plain(), "First\nSee the other page, or the other.\none\ntwo\na\tb<\na note"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
}

func TestDetect(t *testing.T) {
	for head, want := range map[string]document.Format{
		"%PDF-1.7\n":                        document.PDF,
		"\xEF\xBB\xBF junk\n%PDF-1.4":       document.PDF,
		"PK\x03\x04\x14\x00":                document.Archive,
		"\xFF\xD8\xFF\xE0\x00\x10JFIF":      document.JPEG,
		"RIFF\x10\x00\x00\x00WEBPVP8 ":      document.WebP,
		"AVI \x10\x00\x00\x00WEBPVP8 ":      "",
		"\x00\x00\x00\x1CftypavifWHAT":      document.AVIF,
		"<!DOCTYPE html><p>%PD":             "",
		"":                                  "",
		strings.Repeat(" ", 2000) + "%PDF-": "",
	} {
		if got := document.Detect([]byte(head)); got != want {
			t.Errorf("%.20q is %q, want %q", head, got, want)
		}
	}
}

func TestProblemOf(t *testing.T) {
	err := document.Errorf(document.TooLarge, "%d parts", 3)
	if p, detail := document.ProblemOf(err); p != document.TooLarge || detail != "3 parts" {
		t.Error(p, detail)
	}
	if p, _ := document.ProblemOf(errors.New("zip: no end")); p != document.Broken {
		t.Error(p)
	}
}
