package main

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"kumo/internal/app/job"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/base/weburl"
	"kumo/internal/content/fields"
	"kumo/internal/engine/crawl"
)

// loadFields reads the file of rules for each run, because it may have changed. Commands that only inspect a crawl do
// not need it. The record of a crawl of several nodes has the text of the rules instead of the file's name.
func (o *options) loadFields() (*job.Fields, error) {
	if o.Fields == "" || o.noFetch {
		return nil, nil
	}
	rules, text, err := fields.Load(o.Fields)
	o.rulesText = text
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usagef("--%s: %w: each run reads the rules again, so give the file's current name", job.FieldsKey, err)
	}
	if err != nil {
		return nil, usagef("--%s: %w", job.FieldsKey, err)
	}
	return recordsOf(rules, o.Job.Shares), nil
}

// recordsOf returns a function that extracts records from a crawl's pages. It limits concurrency and the bytes read as
// for main texts. A page without a matching rule costs only a check of its URL.
func recordsOf(rules *fields.Rules, shares func() crawl.Shares) *job.Fields {
	places := sync.OnceValue(func() chan struct{} { return make(chan struct{}, shares().Texts()) })
	most := sync.OnceValue(func() int { return maxTextBody(shares()) })
	readers := sync.Pool{New: func() any { return rules.NewReader() }}
	tally := fields.NewTally()
	read := func(resp *page.Response, pg *page.Page) ([]page.Fields, error) {
		if !rules.Matches(resp.URL) || !fields.Readable(pg.Sniffed) {
			return nil, nil
		}
		body := resp.Body
		if int64(len(body)) <= shares().SlotRoom() {
			places() <- struct{}{}
			defer func() { <-places() }()
		}
		cut := len(body) > most()
		body = body[:min(len(body), most())]
		p, _ := fields.PageOf(resp.URL, body, resp.Header.Get("Content-Type"), pg)
		r := readers.Get().(*fields.Reader)
		defer readers.Put(r)
		res := r.Read(p, false)
		if u, err := weburl.Parse(resp.URL); err == nil {
			tally.Add(u.Origin(), &res)
		}
		if res.Cut || cut {
			return res.Records, fmt.Errorf("fields of %q: the page is too large: its beginning is read", resp.URL)
		}
		return res.Records, nil
	}
	return &job.Fields{Read: read, Rules: rules.For, Restore: tally.Restore,
		Counts: func() []stats.FieldCounts { return tally.Counts() }}
}
