package main

import (
	"fmt"
	"sync"

	"kumo/internal/base/page"
	"kumo/internal/content/maintext"
	"kumo/internal/content/parse"
	"kumo/internal/engine/crawl"
)

// Limits of the bytes read of a page for its main text.
const (
	textBodyFloor   = 2 << 20  // bytes, if memory is scarce
	textBodyCeiling = 16 << 20 // otherwise
)

// mainTexts returns a function that extracts main texts. It limits concurrency by processors and memory. Large pages
// are exempt from that limit: few workers hold one at a time, and small pages need not wait for them. The function is
// here and not in package wire so that a program that imports kumo links the extraction code only if it uses it.
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
			Lang: t.Language(), Kind: t.Kind, Comments: t.Comments}, err
	}
}

// maxTextBody returns how many bytes of a body are read.
func maxTextBody(shares crawl.Shares) int {
	return int(min(max(shares/16, textBodyFloor), textBodyCeiling))
}
