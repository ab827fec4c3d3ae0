package check

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"kumo/internal/base/page"
	"kumo/internal/content/document"
	"kumo/internal/content/maintext"
	"kumo/internal/content/parse"
)

// TextOut is a page's main text and metadata. A field is "" if the page lacks it.
type TextOut struct {
	Title     string `json:"title"`
	Headline  string `json:"headline"`
	Text      string `json:"text"`      // one line per paragraph
	Published string `json:"published"` // a date, or RFC 3339 if time and zone are known
	Author    string `json:"author"`
	Lang      string `json:"lang"`
	Kind      string `json:"kind"`     // article, forum, product, listing, documentation, service, document or other
	Comments  string `json:"comments"` // of readers or customers
}

// DocumentText reads the text of a PDF, an office document or an e-book; false if the body is none.
func DocumentText(ctx context.Context, in PageIn, documents document.Reader) (out TextOut, is bool, err error) {
	resp := &page.Response{URL: in.URL, Status: http.StatusOK, Body: in.HTML}
	d := document.ReadResponse(resp, func(f document.File) (*document.Document, error) {
		return documents.Read(ctx, f, document.Default())
	})
	if d == nil {
		return out, false, nil
	}
	if d.Problem != "" && len(d.Blocks) == 0 {
		return out, true, fmt.Errorf("text of %q (%s): %s: %s", cmp.Or(in.URL, unknownURL), d.Format, d.Problem, d.Detail)
	}
	t := d.Shown(resp).Main
	return TextOut{Title: t.Title, Headline: t.Headline, Text: t.Text, Published: t.Published, Author: t.Author,
		Lang: t.Lang, Kind: t.Kind}, true, nil
}

// Text extracts a page's main text. The URL may be "".
func Text(in PageIn) (TextOut, error) {
	pg, err := readPage(in, parse.Config{})
	if err != nil && pg.Base == "" {
		return TextOut{}, err
	}
	if pg.Sniffed != "text/html" && pg.Sniffed != "application/xhtml+xml" {
		return TextOut{}, fmt.Errorf("main text of %q: the body is %s, not HTML", cmp.Or(in.URL, unknownURL), pg.Sniffed)
	}
	t, err := maintext.Extract(parse.UTF8(in.HTML, pg.Charset), in.URL)
	if err != nil {
		return TextOut{}, err
	}
	out := TextOut(t)
	out.Lang = t.Language()
	return out, nil
}
