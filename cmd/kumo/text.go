package main

import (
	"runtime"

	"kumo/internal/maintext"
	"kumo/internal/page"
	"kumo/internal/parse"
)

// mainTexts finds the main texts of a crawl's pages, of no more at once than there are processors: a hostile page may take much
// memory. It is here and not in wire because the library that it needs has its cost even when it is not used.
func mainTexts() func(*page.Response, *page.Page) (*page.MainText, error) {
	places := make(chan struct{}, runtime.GOMAXPROCS(0))
	return func(resp *page.Response, pg *page.Page) (*page.MainText, error) {
		places <- struct{}{}
		defer func() { <-places }()
		t, err := maintext.Extract(parse.UTF8(resp.Body, pg.Charset), resp.URL)
		if t.Text == "" {
			return nil, err
		}
		return &page.MainText{Title: t.Title, Headline: t.Headline, Author: t.Author, Text: t.Text, Published: t.Published,
			Lang: t.Language()}, err
	}
}
