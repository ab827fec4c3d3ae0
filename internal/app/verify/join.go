package verify

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"iter"

	"kumo/internal/state/seen"
)

// join merges all claims with the URL database, URL by URL.
func (v *verifier) join() (err error) {
	db := v.Seen
	defer func() { v.Seen = db }()
	claims, err := v.claims.sorted()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, claims.Close()) }()
	known := v.known()
	defer known.stop()
	c, err := claims.next()
	var g group
	for n := int64(0); ; n++ {
		done := errors.Is(err, io.EOF)
		if err != nil && !done {
			return err
		}
		if done && known.ended {
			break
		}
		if known.err != nil {
			v.Seen = nil // the rest of the database cannot be read
		}
		g = group{v: v, captures: g.captures[:0], pages: g.pages[:0]}
		if done || !known.ended && bytes.Compare([]byte(known.entry.URL), c.url) <= 0 {
			g.entry, g.url = &known.entry, known.entry.URL
		} else {
			g.url = string(c.url)
		}
		for err == nil && string(c.url) == g.url {
			g.add(&c)
			c, err = claims.next()
		}
		g.check()
		if g.entry != nil {
			known.next()
		}
		if perr := v.progress(checkURLs, n<<13, 0, 1<<13); perr != nil {
			return perr
		}
		v.tally.urls++
	}
	v.tally.seenRead = v.Seen != nil && known.err == nil
	v.addCount(checkURLs, v.tally.urls, "URLs compared")
	v.broken(checkSeen, "state/seen", known.err)
	v.reportMissing()
	return nil
}

// known returns a cursor over the URL database.
func (v *verifier) known() *cursor {
	c := &cursor{stop: func() {}, ended: true}
	if v.Seen != nil {
		c.pull, c.stop = iter.Pull2(v.Seen.Scan(""))
		c.next()
	}
	return c
}

type cursor struct {
	pull  func() (seen.Entry, error, bool)
	stop  func()
	entry seen.Entry
	ended bool
	err   error
}

func (c *cursor) next() {
	e, err, ok := c.pull()
	c.entry, c.err, c.ended = e, err, !ok || err != nil
}

// reportMissing reports missing WARC files, and indexes that are missing in the merged one.
func (v *verifier) reportMissing() {
	for n := range v.files.all {
		f, name := &v.files.all[n], v.files.path(n)
		switch {
		case !f.present && v.cfg.Incomplete:
			v.add(Fault{Check: checkWARC, File: name, Offset: -1, What: cmp.Or(v.cfg.Absent, "the file was not uploaded") +
				", so its entries in the lists were not verified: it belongs to a lost node, and other nodes have fetched the " +
				"pages again"})
		case !f.present && v.cfg.Moved:
			v.add(Fault{Check: checkWARC, File: name, Offset: -1, What: cmp.Or(v.cfg.Absent, "the file is missing") +
				", so its entries in other files were not verified"})
		case !f.present:
			v.fault(Fault{Check: checkWARC, File: name, Offset: -1,
				What:   "the file is missing, but other files refer to records in it",
				Remedy: "restore it; if it was moved on purpose, use --moved"})
		case v.cfg.Incomplete:
		case f.merged == 0 && f.lines > 0:
			v.add(Fault{Check: checkCDXJ, File: mergedIndex, Offset: -1, What: "the lines are missing of " + name +
				": the end of the next run rewrites it"})
		case f.merged != f.lines && !f.unindexed:
			v.fault(Fault{Check: checkCDXJ, File: mergedIndex, Offset: -1, What: name +
				" has a different number of lines here than in its own index",
				Remedy: "the end of the next run rewrites it"})
		}
	}
}
