package upload

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"kumo/internal/archive/away"
	"kumo/internal/archive/place"
	"kumo/internal/base/advice"
)

// ErrInUse means that a location belongs to another crawl.
var ErrInUse = errors.New("is used by")

// ErrRefused means that a location that was unreachable at the start turned out not to be usable for this crawl.
var ErrRefused = errors.New("the place cannot be used for this crawl")

// ErrRelocatable is wrapped together with ErrRefused if nothing was uploaded, so that the folder can use another
// location.
var ErrRelocatable = errors.New("the crawl can use another place")

// A refusedError wraps such an error. It is not a usage error, because the crawl has started.
type refusedError struct {
	why  error
	free bool // the location never was the crawl's
}

func (r *refusedError) Error() string { return r.why.Error() }

func (r *refusedError) Is(target error) bool {
	return target == ErrRefused || target == ErrRelocatable && r.free || target == ErrInUse && errors.Is(r.why, ErrInUse)
}

// CheckHere checks whether a location can be used for the crawl, without contacting it.
func CheckHere(cfg Config) error {
	_, err := (&claim{cfg: &cfg}).read()
	return err
}

// Check checks whether a location can be used for the crawl, and changes nothing. It also returns temporary errors
// (place.IsTransient).
func Check(ctx context.Context, cfg Config) error {
	c := &claim{cfg: &cfg}
	link, err := c.read()
	if err != nil {
		return err
	}
	return c.compare(ctx, link)
}

// A claim guards the link between the crawl's folder and its location: two crawls, or copies of a folder, never use the
// same location.
//
// It writes the folder's link and the location's mark. Invariants: the link is written first, because a mark without a
// link would block all crawls. The mark is written only to a location that is empty or the crawl's own, and is read
// again before each round of uploads.
type claim struct {
	cfg         *Config
	link        *away.Link
	mark        away.Mark
	created     bool        // this process wrote the location's first mark
	established atomic.Bool // the location is the crawl's
}

// read reads the folder's link to its location; nil if there is none. The link can be replaced if nothing was uploaded.
func (c *claim) read() (*away.Link, error) {
	p, dir := c.cfg.Place, c.cfg.Dir
	link, err := away.ReadLink(dir)
	switch {
	case link == nil || err != nil:
		return nil, err
	case c.cfg.Fresh && link.Place == p.URL() && !link.Pending:
		return nil, advice.Usage("the place %s %w the crawl in %s, which --fresh sets aside: name another", p.URL(),
			ErrInUse, dir)
	case c.cfg.Fresh, link.Pending && link.Place != p.URL():
		return nil, nil
	case link.Place != p.URL():
		return nil, advice.Usage("the files of the crawl in %s are uploaded to %s, not to %s: name another folder with "+
			"--work", dir, link.Place, p.URL())
	}
	return link, nil
}

// establish makes the location the crawl's. Writing the mark checks that the location is writable.
func (c *claim) establish(ctx context.Context) error {
	if l, is := c.cfg.Place.(place.Locker); is {
		unlock, err := l.Lock(ctx, "crawl")
		if err != nil {
			return err
		}
		defer func() { _ = unlock() }() // the lock ends with the process
	}
	if err := c.compare(ctx, c.link); err != nil {
		return err
	}
	if err := c.writeLink(); err != nil {
		return err
	}
	mark := crawlMark(c.cfg, c.link)
	mark.Open = true
	if err := mark.Write(ctx, c.cfg.Place); err != nil {
		return fmt.Errorf("cannot write to the place %s: %w", c.cfg.Place.URL(), err)
	}
	if c.link.Pending {
		l := *c.link
		l.Pending = false
		if err := l.Write(c.cfg.Disk, c.cfg.Dir); err != nil { // the next call retries
			return err
		}
		c.created, c.link = true, &l
	}
	c.mark = mark
	c.established.Store(true)
	return nil
}

// writeLink writes the folder's link to its location, even if the location is unreachable.
func (c *claim) writeLink() error {
	if c.link == nil {
		c.link = &away.Link{Place: c.cfg.Place.URL(), ID: rand.Text(), Pending: true}
	}
	if c.link.URL == c.cfg.URL {
		return nil
	}
	c.link.URL = c.cfg.URL
	return c.link.Write(c.cfg.Disk, c.cfg.Dir)
}

// establishLate is establish for a location that was unreachable at the start.
func (c *claim) establishLate(ctx context.Context) error {
	if c.established.Load() {
		return nil
	}
	err := place.Probe(ctx, c.cfg.Place)
	if err == nil {
		err = c.establish(ctx)
	}
	if advice.IsUsage(err) {
		return &refusedError{fmt.Errorf("%w; nothing is uploaded", err), c.link.Pending}
	}
	return err
}

// Release removes the mark from the location if this process was the first to write it. It is for a crawl that does not
// start, and must not be called after Run.
func (u *Uploader) Release(ctx context.Context) error { return u.claim.release(ctx) }

func (c *claim) release(ctx context.Context) error {
	if !c.created {
		return nil
	}
	m, err := away.ReadMark(ctx, c.cfg.Place)
	if err == nil && m != nil && m.SameCrawl(&c.mark) {
		err = c.cfg.Place.Remove(ctx, away.MarkName)
	}
	if err != nil {
		return fmt.Errorf("cannot remove the mark %s from the place %s: %w", away.MarkName, c.cfg.Place.URL(), err)
	}
	c.link.Pending = true
	return c.link.Write(c.cfg.Disk, c.cfg.Dir)
}

// crawlMark returns the mark of the crawl in this folder.
func crawlMark(cfg *Config, link *away.Link) away.Mark {
	m := away.Mark{Crawl: cfg.Crawl, ID: link.ID, Folder: cfg.Dir, Time: time.Now().UTC().Truncate(time.Second)}
	if dir, err := filepath.Abs(cfg.Dir); err == nil {
		m.Folder = dir
	}
	m.Machine, _ = os.Hostname() // may be empty
	return m
}

// compare checks the location's mark against the folder's link, if there is one.
func (c *claim) compare(ctx context.Context, link *away.Link) error {
	p, dir := c.cfg.Place, c.cfg.Dir
	mark, err := away.ReadMark(ctx, p)
	// a damaged mark is ours: no other crawl could have claimed the location
	if errors.Is(err, away.ErrMarkUnreadable) && link != nil {
		if link.Pending {
			return c.checkEmpty(ctx)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the place %s: %w", p.URL(), err)
	}
	switch {
	case mark == nil && (link == nil || link.Pending):
		return c.checkEmpty(ctx)
	case mark == nil:
		return nil
	case link == nil || link.ID != mark.ID:
		return advice.Usage("the place %s %w %s: name another", p.URL(), ErrInUse, mark)
	}
	if own := crawlMark(c.cfg, link); !own.SameCrawl(mark) && own.Machine == mark.Machine {
		if other, err := away.ReadLink(mark.Folder); err == nil && other != nil && other.ID == link.ID {
			return advice.Usage("the place %s %w %s, of which %s is a copy: continue that crawl, or remove it", p.URL(),
				ErrInUse, mark, dir)
		}
	}
	return nil
}

// checkEmpty returns an error if the location has files that a crawl would overwrite.
func (c *claim) checkEmpty(ctx context.Context) error {
	p := c.cfg.Place
	for _, name := range append([]string{away.ManifestName}, c.cfg.Grow...) {
		_, err := p.Stat(ctx, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot read the place %s: %w", p.URL(), err)
		}
		return advice.Usage("the place %s has a file %s, which a crawl would overwrite, but no crawl: name another", p.URL(),
			name)
	}
	warcs, err := p.List(ctx, "warc")
	if err == nil && len(warcs) > 0 {
		err = advice.Usage("the place %s has files in warc/, but no crawl: name another", p.URL())
	}
	return err
}

// complete updates the mark when all files are uploaded.
func (c *claim) complete(ctx context.Context) error {
	if err := c.check(ctx); err != nil {
		return err
	}
	c.mark.Open = false
	return c.mark.Write(ctx, c.cfg.Place)
}

// check checks that no other folder has claimed the location.
func (c *claim) check(ctx context.Context) error {
	m, err := away.ReadMark(ctx, c.cfg.Place)
	switch {
	case errors.Is(err, away.ErrMarkUnreadable), err == nil && m == nil: // the mark was removed or damaged
		return c.mark.Write(ctx, c.cfg.Place)
	case err != nil:
		return err
	case !m.SameCrawl(&c.mark):
		return fmt.Errorf("the place %s %w %s now: nothing more is uploaded", c.cfg.Place.URL(), ErrInUse, m)
	}
	return nil
}
