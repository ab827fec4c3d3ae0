package check

import (
	"cmp"
	"fmt"

	"kumo/internal/content/maintext"
	"kumo/internal/content/parse"
)

// TextOut is what a page is about. A field is "" where the page does not say.
type TextOut struct {
	Title     string `json:"title"`
	Headline  string `json:"headline"`
	Text      string `json:"text"`      // a line for each paragraph
	Published string `json:"published"` // a date, or RFC 3339 where time and zone are known
	Author    string `json:"author"`
	Lang      string `json:"lang"`
}

// Text finds a page's main text. The URL may be "".
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
