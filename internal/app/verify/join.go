package verify

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"iter"

	"kumo/internal/state/seen"
)

// join goes through all claims and the URL database at once, URL by URL.
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
			v.Seen = nil // what it knows beyond is not to be had
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

// known goes through the URL database.
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

// reportMissing tells of WARC files that are not here and of indexes that lack others.
func (v *verifier) reportMissing() {
	for n := range v.files.all {
		f, name := &v.files.all[n], v.files.path(n)
		switch {
		case !f.present && v.cfg.Incomplete:
			v.note(Fault{Check: checkWARC, File: name, Offset: -1, What: cmp.Or(v.cfg.Absent, "it has not come to the place") +
				", and what the lists say of it was not verified: of a node that was lost, others have fetched these pages " +
				"again"})
		case !f.present && v.cfg.Moved:
			v.note(Fault{Check: checkWARC, File: name, Offset: -1, What: cmp.Or(v.cfg.Absent, "it is not here") +
				", so what the other files say of it was not verified"})
		case !f.present:
			v.fault(Fault{Check: checkWARC, File: name, Offset: -1,
				What:   "it is not here, though other files name records in it",
				Remedy: "bring it back; if it was moved on purpose, say so with --moved"})
		case v.cfg.Incomplete:
		case f.merged == 0 && f.lines > 0:
			v.note(Fault{Check: checkCDXJ, File: mergedIndex, Offset: -1, What: "it lacks the lines of " + name +
				": the next run's end writes it anew"})
		case f.merged != f.lines && !f.unindexed:
			v.fault(Fault{Check: checkCDXJ, File: mergedIndex, Offset: -1, What: name +
				" has another number of lines there than in its own index",
				Remedy: "the next run's end writes it anew"})
		}
	}
}
