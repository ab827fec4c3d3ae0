package sinks

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"kumo/internal/archive/export/captures"
	"kumo/internal/archive/export/records"
	"kumo/internal/archive/sink"
	"kumo/internal/base/advice"
	"kumo/internal/base/extsort"
	"kumo/internal/base/vfs"
)

// A Difference is a kind of difference between a sink and a crawl.
type Difference string

// The differences.
const (
	Missing Difference = "missing" // the sink lacks the record
	Older   Difference = "older"   // the sink has a record of an earlier visit
	Extra   Difference = "extra"   // the crawl lacks the record
)

// A Comparison counts the differences between a sink and a crawl, in records.
type Comparison struct {
	Crawl   int64 `json:"crawl"` // records of the crawl
	Sink    int64 `json:"sink"`  // records of the sink
	Missing int64 `json:"missing"`
	Older   int64 `json:"older"`
	Extra   int64 `json:"extra"`
}

// Same reports whether there is no difference.
func (c *Comparison) Same() bool { return c.Missing+c.Older+c.Extra == 0 }

// The origin of a record in the sorter.
const (
	fromCrawl = 'c'
	unchanged = 'u' // the crawl's, with an unchanged page at the last visit
	fromSink  = 's'
)

// Compare compares a crawl's records, the newest of each URL, with those of a sink, by URL and time. It calls differs
// in the order of URLs. It sorts on disk.
func Compare(ctx context.Context, x Export, differs func(Difference, string)) (_ *Comparison, err error) {
	f, err := openShared(x.Crawl)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	s, err := Open(ctx, x.Sink, io.Discard)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	lister, is := s.(sink.Lister)
	if !is {
		return nil, advice.Usage("the records of %s cannot be listed", x.Sink)
	}
	dir, err := os.MkdirTemp(x.Temp, "kumo-compare-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	sorter := extsort.New(extsort.Config{Disk: vfs.OS, Dir: filepath.Join(dir, "sort"), Memory: 64 << 20})
	defer func() { err = errors.Join(err, sorter.Close()) }()
	add := func(who byte, url string, at time.Time) error {
		return sorter.Add(0, []byte(url), binary.BigEndian.AppendUint64([]byte{who}, uint64(at.Unix())))
	}
	cfg := records.Config{Crawl: x.Crawl, Preview: func(c *captures.Capture) error {
		if c.Body != nil {
			return add(unchanged, c.URL, c.Time)
		}
		return add(fromCrawl, c.URL, c.Time)
	}}
	if _, err := run(ctx, &x, nil, cfg); err != nil {
		return nil, err
	}
	err = s.Flush(ctx)
	if err == nil {
		err = lister.Each(ctx, func(url string, at time.Time) error { return add(fromSink, url, at) })
	}
	if err != nil {
		return nil, err
	}
	sorted, err := sorter.Sorted(0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sorted.Close()) }()
	c := &Comparison{}
	groups, failed := sorted.Groups()
	for url, values := range groups {
		crawl, sinks, same := int64(-1), int64(-1), false
		for v := range values {
			at := int64(binary.BigEndian.Uint64(v[1:]))
			if v[0] == fromSink {
				sinks = max(sinks, at, 0) // a record without a time counts, too
			} else {
				crawl, same = at, v[0] == unchanged
			}
		}
		c.count(string(url), crawl, sinks, same, differs)
	}
	return c, failed()
}

// count counts a record with its times in the crawl and the sink; -1 means that it is missing.
func (c *Comparison) count(url string, crawl, sink int64, same bool, differs func(Difference, string)) {
	if crawl >= 0 {
		c.Crawl++
	}
	if sink >= 0 {
		c.Sink++
	}
	switch {
	case sink < 0:
		c.Missing++
		differs(Missing, url)
	case crawl < 0:
		c.Extra++
		differs(Extra, url)
	case sink < crawl && !same:
		c.Older++
		differs(Older, url)
	}
}
