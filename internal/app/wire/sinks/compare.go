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

// A Difference is how a sink differs from a crawl in a record.
type Difference string

// The differences.
const (
	Missing Difference = "missing" // the sink has no such record
	Older   Difference = "older"   // the sink has that of an earlier visit
	Extra   Difference = "extra"   // the crawl has no such record
)

// A Comparison is of a sink with a crawl, in records.
type Comparison struct {
	Crawl   int64 `json:"crawl"` // that the crawl has
	Sink    int64 `json:"sink"`  // that the sink has
	Missing int64 `json:"missing"`
	Older   int64 `json:"older"`
	Extra   int64 `json:"extra"`
}

// Same reports whether there is no difference.
func (c *Comparison) Same() bool { return c.Missing+c.Older+c.Extra == 0 }

// who says of a record, in a sorter that has the records of both; and since when the page is as it is, for the crawl's.
const (
	fromCrawl = 'c'
	unchanged = 'u' // the crawl's, whose last visit has found what was there already
	fromSink  = 's'
)

// Compare compares the records that a crawl has, each URL's newest, with those of a sink, by URL and time. It tells the
// differences in the order of their URLs. What is compared is sorted outside of memory.
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
		return nil, advice.Usage("what %s has cannot be asked", x.Sink)
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
				sinks = max(sinks, at, 0) // one without a time is there, too
			} else {
				crawl, same = at, v[0] == unchanged
			}
		}
		c.count(string(url), crawl, sinks, same, differs)
	}
	return c, failed()
}

// count counts a record that the two have of these times; -1 is that of one who has it not.
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
