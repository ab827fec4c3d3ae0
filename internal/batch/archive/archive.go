// Package archive writes the Documents of a batch crawl as WARC files. Each day has its own folder, which appears when
// it is complete. Content that was unchanged on a day becomes a revisit record, which names the day that has the body.
package archive

import (
	"cmp"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"kumo/internal/archive/place"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/batch"
	"kumo/internal/batch/collection"
	"kumo/internal/content/fetch"
	"kumo/internal/content/parse"
	"kumo/internal/state/store"
)

// A Day selects the day of a collection that is written as WARCs, and the target folder.
type Day struct {
	Place      place.Place
	Collection *collection.Collection // defines code and directory
	Date       string
	Dir        string // target folder; must not exist
	// Open opens a WARC store in a folder.
	Open  func(dir string) (store.Store, error)
	Agent string // user agent name that a page's robots directives are evaluated for
}

// Counts are the numbers of a day's Documents by outcome. Only Responses, Robots and Revisits are written as records.
type Counts struct {
	Responses  int `json:"responses"`
	Robots     int `json:"robots_txt"` // answers for robots.txt files, not counted as responses
	Revisits   int `json:"revisits"`
	NoAnswer   int `json:"no_answer"`    // failed, or excluded by a rule
	NotArchive int `json:"not_archived"` // pages with noarchive
}

// ErrExists is the error for a day whose folder already exists.
var ErrExists = errors.New("the folder already exists")

// finalizeEvery is the number of records after which full files get their final names.
const finalizeEvery = 10_000

// Write writes the WARCs of a day.
func Write(ctx context.Context, d Day) (n Counts, err error) {
	if _, err := os.Lstat(d.Dir); !errors.Is(err, os.ErrNotExist) {
		return n, cmp.Or(err, fmt.Errorf("%s: %w", d.Dir, ErrExists))
	}
	names, err := batch.DayFiles(ctx, d.Place, d.Collection, "doc", d.Date)
	if err != nil {
		return n, err
	}
	open := d.Dir + ".open"
	if err := os.RemoveAll(open); err != nil { // left over from an interrupted run
		return n, err
	}
	if err := os.MkdirAll(open, 0o777); err != nil {
		return n, err
	}
	s, err := d.Open(open)
	if err != nil {
		return n, err
	}
	w := &writer{store: s, parser: parse.New(parse.Config{Agent: d.Agent}), origins: map[string]bool{}}
	err = batch.EachRecord(ctx, d.Place, names, func(r batch.Record) error {
		doc, err := batch.ReadDocument(r.Key, r.Value)
		if err == nil {
			err = w.put(&doc)
		}
		return err
	})
	if err == nil {
		err = w.robots(ctx, d.Place, d.Date)
	}
	if err == nil {
		err = w.finalize()
	}
	if err = errors.Join(err, s.Close()); err != nil {
		return w.Counts, errors.Join(err, os.RemoveAll(open))
	}
	return w.Counts, os.Rename(filepath.Clean(open), d.Dir)
}

// A writer writes Documents.
type writer struct {
	Counts
	store       store.Store
	parser      *parse.Parser
	resp        page.Response
	page        page.Page
	unfinalized int // records since the last finalize

	origins map[string]bool // origins of the day's URLs
}

// robots writes the robots.txt answers of the day's origins. They are stored once for all collections.
func (w *writer) robots(ctx context.Context, p place.Place, date string) error {
	names, err := batch.ListFiles(ctx, p, path.Join(batch.RobotsFolder, date))
	if err != nil {
		return err
	}
	return batch.EachRecord(ctx, p, names, func(r batch.Record) error {
		if w.origins[string(r.Key)] {
			return w.robotsOf(r)
		}
		return nil
	})
}

func (w *writer) robotsOf(r batch.Record) error {
	rules, err := batch.ReadRobotsRecord(r.Key, r.Value)
	d := &rules.Exchange
	if err != nil || len(d.Raw) == 0 {
		return err
	}
	rec := page.Record{URL: d.URL, Final: cmp.Or(rules.RedirectTo, d.URL), From: d.From, Time: d.Time, Took: d.Took,
		Response: &w.resp, Digest: d.Digest, Robots: true}
	if err := d.Response(&w.resp); err != nil {
		return err
	}
	w.resp.Malformed = d.Malformed
	w.Robots++
	return w.store.Put(&rec)
}

func (w *writer) finalize() error {
	w.unfinalized = 0
	if _, err := w.store.Mark(); err != nil {
		return err
	}
	if err := w.store.Sync(); err != nil {
		return err
	}
	return w.store.Finalize()
}

// maxDecoded limits the size of a page's body after content decoding.
const maxDecoded = 64 << 20

func (w *writer) put(d *batch.Document) error {
	if u, err := weburl.Parse(d.URL); err == nil {
		w.origins[u.Origin()] = true
	}
	switch {
	case d.NoArchive:
		w.NotArchive++
		return nil
	case len(d.Raw) == 0:
		w.NoAnswer++
		return nil
	}
	rec := page.Record{URL: d.URL, Final: cmp.Or(d.RedirectTo, d.URL), From: d.From, Depth: d.Depth, Time: d.Time,
		Took: d.Took, Response: &w.resp, Digest: d.Digest, Recrawl: d.Change}
	if err := d.Response(&w.resp); err == nil {
		rec.Page = w.read()
	}
	if w.resp.Malformed == "" {
		w.resp.Malformed = d.Malformed
	}
	if d.Change == page.Unchanged && !d.SameAs.Time.IsZero() {
		rec.Revisit = &page.Ref{URL: d.URL, Time: d.SameAs.Time, Chunked: d.SameAs.Chunked}
		w.Revisits++
	} else {
		w.Responses++
		if d.Unmodified { // the digest belongs to a page that no WARC contains
			rec.Digest = sha1.Sum(w.resp.Payload)
		}
	}
	if err := w.store.Put(&rec); err != nil {
		return err
	}
	if w.unfinalized++; w.unfinalized < finalizeEvery {
		return nil
	}
	return w.finalize()
}

// read parses the page again, as it was fetched: Documents do not contain links.
func (w *writer) read() *page.Page {
	if parse.Readable(parse.MediaType(w.resp.Header.Get("Content-Type"))) {
		_ = fetch.Decode(&w.resp, maxDecoded) // errors are recorded in the Document
	}
	_ = w.parser.Parse(&w.resp, &w.page) // same
	return &w.page
}
