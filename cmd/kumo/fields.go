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

// loadFields reads the file of rules again each time: it may have changed. Who only looks into a crawl makes no
// records.
func (o *options) loadFields() (*job.Fields, error) {
	if o.Fields == "" || o.noFetch {
		return nil, nil
	}
	rules, err := fields.Load(o.Fields)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usagef("--%s: %w: each run reads the rules anew, so say where they are now", job.FieldsKey, err)
	}
	if err != nil {
		return nil, usagef("--%s: %w", job.FieldsKey, err)
	}
	return recordsOf(rules, o.Job.Shares), nil
}

// recordsOf makes records of a crawl's pages, of no more at once than main texts may be looked for, with the same bound
// of what is read. A page for which no rule is costs a look at its URL.
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
	return &job.Fields{Read: read, Restore: tally.Restore, Counts: func() []stats.FieldCounts { return tally.Counts() }}
}
