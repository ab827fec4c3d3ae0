package main

import (
	"fmt"
	"sync"

	"kumo/internal/base/page"
	"kumo/internal/content/maintext"
	"kumo/internal/content/parse"
	"kumo/internal/engine/crawl"
)

// What is read of a page for its main text.
const (
	textBodyFloor   = 2 << 20  // bytes, where memory is scarce
	textBodyCeiling = 16 << 20 // and where it is not
)

// mainTexts finds the main texts of a crawl's pages, of no more at once than there are processors and memory for. Large
// pages are read by few workers, which do not wait here, and for which nobody waits. It is here and not in wire so that
// a program that imports kumo links what finds texts only where it asks for them.
func mainTexts(shares func() crawl.Shares) func(*page.Response, *page.Page) (*page.MainText, error) {
	places := sync.OnceValue(func() chan struct{} { return make(chan struct{}, shares().Texts()) })
	most := sync.OnceValue(func() int { return maxTextBody(shares()) })
	return func(resp *page.Response, pg *page.Page) (*page.MainText, error) {
		body := resp.Body
		if int64(len(body)) <= shares().SlotRoom() {
			places() <- struct{}{}
			defer func() { <-places() }()
		}
		cut := len(body) > most()
		if cut {
			body = body[:most()]
		}
		t, err := maintext.Extract(parse.UTF8(body, pg.Charset), resp.URL)
		if cut && err == nil {
			err = fmt.Errorf("main text of %q: %w: %d bytes, %d are read", resp.URL, maintext.ErrTooLarge, len(resp.Body),
				len(body))
		}
		if t.Text == "" {
			return nil, err
		}
		return &page.MainText{Title: t.Title, Headline: t.Headline, Author: t.Author, Text: t.Text, Published: t.Published,
			Lang: t.Language()}, err
	}
}

// maxTextBody is how much of a body is read.
func maxTextBody(shares crawl.Shares) int {
	return int(min(max(shares/16, textBodyFloor), textBodyCeiling))
}
