package check

import (
	"cmp"
	"fmt"

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
	Kind      string `json:"kind"`     // article, forum, product, listing, documentation, service or other
	Comments  string `json:"comments"` // of readers or customers
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
