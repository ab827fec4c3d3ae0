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

// ErrInUse is a place that is another crawl's.
var ErrInUse = errors.New("is used by")

// ErrRefused is a place that turned out, when it could be reached at last, not to be for this crawl.
var ErrRefused = errors.New("the place is not for this crawl")

// ErrRelocatable says of such an end that the folder, whose place never was the crawl's, may have another one.
var ErrRelocatable = errors.New("the folder may have another place")

// A refusal is such an error. It is no usage error: the crawl has started.
type refusedError struct {
	why  error
	free bool // the place never was the crawl's
}

func (r *refusedError) Error() string { return r.why.Error() }

func (r *refusedError) Is(target error) bool {
	return target == ErrRefused || target == ErrRelocatable && r.free || target == ErrInUse && errors.Is(r.why, ErrInUse)
}

// CheckHere checks whether a place can be the crawl's, by its folder alone.
func CheckHere(cfg Config) error {
	_, err := (&claim{cfg: &cfg}).read()
	return err
}

// Check checks whether a place can be the crawl's in a folder, and changes neither. Temporary errors (place.Passes) are
// errors, too.
func Check(ctx context.Context, cfg Config) error {
	c := &claim{cfg: &cfg}
	link, err := c.read()
	if err != nil {
		return err
	}
	return c.compare(ctx, link)
}

// A claim guards the bond between the crawl's folder and its place: no two crawls use one place, nor does a copy of a
// folder.
//
// It writes the folder's link and the place's mark. Invariants: the link is written first: a mark that no folder knows
// would keep all crawls out. The mark is written only to a place that is empty or the crawl's own, and is read again
// before each round of uploads.
type claim struct {
	cfg         *Config
	link        *away.Link
	mark        away.Mark
	created     bool        // this process was the first to mark the place
	established atomic.Bool // the place is the crawl's
}

// read reads the folder's link to its place; nil if there is none yet. A link to a place that has received nothing can
// be replaced by one to another.
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
		return nil, advice.Usage("the files of the crawl in %s go to %s, and not to %s: name another folder with --work",
			dir, link.Place, p.URL())
	}
	return link, nil
}

// establish makes the place the crawl's. Writing the mark shows that the place can be written to.
func (c *claim) establish(ctx context.Context) error {
	if l, is := c.cfg.Place.(place.Locker); is {
		unlock, err := l.Lock(ctx, "crawl")
		if err != nil {
			return err
		}
		defer func() { _ = unlock() }() // it is lost with the process
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
		return fmt.Errorf("the place %s cannot be written to: %w", c.cfg.Place.URL(), err)
	}
	if c.link.Pending {
		l := *c.link
		l.Pending = false
		if err := l.Write(c.cfg.Disk, c.cfg.Dir); err != nil { // it is tried again
			return err
		}
		c.created, c.link = true, &l
	}
	c.mark = mark
	c.established.Store(true)
	return nil
}

// writeLink writes the folder's link to its place, whether the place can be reached or not.
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

// establishLate makes a place the crawl's that could not be reached at the start.
func (c *claim) establishLate(ctx context.Context) error {
	if c.established.Load() {
		return nil
	}
	err := place.Probe(ctx, c.cfg.Place)
	if err == nil {
		err = c.establish(ctx)
	}
	if advice.IsUsage(err) {
		return &refusedError{fmt.Errorf("%w; nothing is brought there", err), c.link.Pending}
	}
	return err
}

// Release removes the mark from the place if this process was the first to write it: the crawl does not start. Run was
// not called.
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
		return fmt.Errorf("the mark %s stays in the place %s: %w", away.MarkName, c.cfg.Place.URL(), err)
	}
	c.link.Pending = true
	return c.link.Write(c.cfg.Disk, c.cfg.Dir)
}

// crawlMark is the mark of the crawl in this folder.
func crawlMark(cfg *Config, link *away.Link) away.Mark {
	m := away.Mark{Crawl: cfg.Crawl, ID: link.ID, Folder: cfg.Dir, Time: time.Now().UTC().Truncate(time.Second)}
	if dir, err := filepath.Abs(cfg.Dir); err == nil {
		m.Folder = dir
	}
	m.Machine, _ = os.Hostname() // or it is nobody's
	return m
}

// compare compares the folder's link, if there is one, with the place's mark.
func (c *claim) compare(ctx context.Context, link *away.Link) error {
	p, dir := c.cfg.Place, c.cfg.Dir
	mark, err := away.ReadMark(ctx, p)
	if errors.Is(err, away.ErrMarkUnreadable) && link != nil { // no other crawl would have been let in, if it was ours
		if link.Pending {
			return c.checkEmpty(ctx)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("the place %s cannot be read: %w", p.URL(), err)
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
			return advice.Usage("the place %s %w %s, of which %s is a copy: go on with that, or remove it", p.URL(),
				ErrInUse, mark, dir)
		}
	}
	return nil
}

// checkEmpty refuses a place with files that a crawl would write over.
func (c *claim) checkEmpty(ctx context.Context) error {
	p := c.cfg.Place
	for _, name := range append([]string{away.ManifestName}, c.cfg.Grow...) {
		_, err := p.Stat(ctx, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("the place %s cannot be read: %w", p.URL(), err)
		}
		return advice.Usage("the place %s has a file %s, which a crawl would write over, and no crawl: name another", p.URL(),
			name)
	}
	warcs, err := p.List(ctx, "warc")
	if err == nil && len(warcs) > 0 {
		err = advice.Usage("the place %s has files in warc/, and no crawl: name another", p.URL())
	}
	return err
}

// complete marks in the place that all files are there.
func (c *claim) complete(ctx context.Context) error {
	if err := c.check(ctx); err != nil {
		return err
	}
	c.mark.Open = false
	return c.mark.Write(ctx, c.cfg.Place)
}

// check checks that no other folder has taken the place over.
func (c *claim) check(ctx context.Context) error {
	m, err := away.ReadMark(ctx, c.cfg.Place)
	switch {
	case errors.Is(err, away.ErrMarkUnreadable), err == nil && m == nil: // somebody has removed it
		return c.mark.Write(ctx, c.cfg.Place)
	case err != nil:
		return err
	case !m.SameCrawl(&c.mark):
		return fmt.Errorf("the place %s %w %s now: nothing more is brought there", c.cfg.Place.URL(), ErrInUse, m)
	}
	return nil
}
