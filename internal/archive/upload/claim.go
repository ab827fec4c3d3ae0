package upload

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"kumo/internal/archive/away"
	"kumo/internal/archive/place"
	"kumo/internal/base/advice"
)

// ErrTaken is a place that is another crawl's.
var ErrTaken = errors.New("is used by")

// ErrRefused is a place that turned out, when it could be reached at last, not to be for this crawl.
var ErrRefused = errors.New("the place is not for this crawl")

// ErrFree says of such an end that the folder, whose place never was the crawl's, may have another one.
var ErrFree = errors.New("the folder may have another place")

// A refusal is such an error, as it is said. It is none of usage any more: the crawl has begun.
type refusal struct {
	why  error
	free bool // the place never was the crawl's
}

func (r *refusal) Error() string { return r.why.Error() }

func (r *refusal) Is(target error) bool {
	return target == ErrRefused || target == ErrFree && r.free || target == ErrTaken && errors.Is(r.why, ErrTaken)
}

// CheckHere sees whether a place can be the crawl's as far as its folder says.
func CheckHere(cfg Config) error {
	_, err := (&Uploader{cfg: cfg}).readLink()
	return err
}

// Check sees, without a change of either, whether a place can be the crawl's in a folder. What passes, as place.Passes
// has it, is an error, too.
func Check(ctx context.Context, cfg Config) error {
	u := &Uploader{cfg: cfg}
	link, err := u.readLink()
	if err != nil {
		return err
	}
	return u.compare(ctx, link)
}

// readLink reads what the folder says of its place; nil if it says nothing yet. One that has had nothing of the crawl
// can be given up for another.
func (u *Uploader) readLink() (*away.Link, error) {
	p, dir := u.cfg.Place, u.cfg.Dir
	link, err := away.ReadLink(dir)
	switch {
	case link == nil || err != nil:
		return nil, err
	case u.cfg.Fresh && link.Place == p.URL() && !link.Pending:
		return nil, advice.Usage("the place %s %w the crawl in %s, which --fresh sets aside: name another", p.URL(),
			ErrTaken, dir)
	case u.cfg.Fresh, link.Pending && link.Place != p.URL():
		return nil, nil
	case link.Place != p.URL():
		return nil, advice.Usage("the files of the crawl in %s go to %s, and not to %s: name another folder with --work",
			dir, link.Place, p.URL())
	}
	return link, nil
}

// claim makes the place the crawl's. The folder knows of it first: a mark in the place that no folder knows would keep
// all out. Writing the mark shows that the place can be written to.
func (u *Uploader) claim(ctx context.Context) error {
	if l, is := u.cfg.Place.(place.Locker); is {
		unlock, err := l.Lock(ctx, "crawl")
		if err != nil {
			return err
		}
		defer func() { _ = unlock() }() // it is lost with the process
	}
	if err := u.compare(ctx, u.link); err != nil {
		return err
	}
	if err := u.know(); err != nil {
		return err
	}
	mark := self(&u.cfg, u.link)
	mark.Open = true
	if err := mark.Write(ctx, u.cfg.Place); err != nil {
		return fmt.Errorf("the place %s cannot be written to: %w", u.cfg.Place.URL(), err)
	}
	if u.link.Pending {
		l := *u.link
		l.Pending = false
		if err := l.Write(u.cfg.Disk, u.cfg.Dir); err != nil { // it is tried again
			return err
		}
		u.fresh, u.link = true, &l
	}
	u.mark = mark
	u.claimed.Store(true)
	return nil
}

// know has the folder know of its place, be it there or not.
func (u *Uploader) know() error {
	if u.link == nil {
		u.link = &away.Link{Place: u.cfg.Place.URL(), ID: rand.Text(), Pending: true}
	}
	if u.link.URL == u.cfg.URL {
		return nil
	}
	u.link.URL = u.cfg.URL
	return u.link.Write(u.cfg.Disk, u.cfg.Dir)
}

// claimLate makes a place the crawl's that could not be reached at the start.
func (u *Uploader) claimLate(ctx context.Context) error {
	if u.claimed.Load() {
		return nil
	}
	err := place.Ask(ctx, u.cfg.Place)
	if err == nil {
		err = u.claim(ctx)
	}
	if advice.IsUsage(err) {
		return &refusal{fmt.Errorf("%w; nothing is brought there", err), u.link.Pending}
	}
	return err
}

// Release takes the mark out of the place again that this process was the first to put there, as a crawl that does not
// begin has no need of it. Run was not called.
func (u *Uploader) Release(ctx context.Context) error {
	if !u.fresh {
		return nil
	}
	m, err := away.ReadMark(ctx, u.cfg.Place)
	if err == nil && m != nil && m.Is(&u.mark) {
		err = u.cfg.Place.Remove(ctx, away.MarkName)
	}
	if err != nil {
		return fmt.Errorf("the mark %s stays in the place %s: %w", away.MarkName, u.cfg.Place.URL(), err)
	}
	u.link.Pending = true
	return u.link.Write(u.cfg.Disk, u.cfg.Dir)
}

// self is the mark of the crawl in this folder.
func self(cfg *Config, link *away.Link) away.Mark {
	m := away.Mark{Crawl: cfg.Crawl, ID: link.ID, Folder: cfg.Dir, Time: time.Now().UTC().Truncate(time.Second)}
	if dir, err := filepath.Abs(cfg.Dir); err == nil {
		m.Folder = dir
	}
	m.Machine, _ = os.Hostname() // or it is nobody's
	return m
}

// compare compares what the folder says of its place, if it does, with what the place says of its crawl.
func (u *Uploader) compare(ctx context.Context, link *away.Link) error {
	p, dir := u.cfg.Place, u.cfg.Dir
	mark, err := away.ReadMark(ctx, p)
	if errors.Is(err, away.ErrUnreadable) && link != nil { // no other crawl would have been let in, if it was ours
		if link.Pending {
			return u.checkEmpty(ctx)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("the place %s cannot be read: %w", p.URL(), err)
	}
	switch {
	case mark == nil && (link == nil || link.Pending):
		return u.checkEmpty(ctx)
	case mark == nil:
		return nil
	case link == nil || link.ID != mark.ID:
		return advice.Usage("the place %s %w %s: name another", p.URL(), ErrTaken, mark)
	}
	if own := self(&u.cfg, link); !own.Is(mark) && own.Machine == mark.Machine {
		if other, err := away.ReadLink(mark.Folder); err == nil && other != nil && other.ID == link.ID {
			return advice.Usage("the place %s %w %s, of which %s is a copy: go on with that, or remove it", p.URL(),
				ErrTaken, mark, dir)
		}
	}
	return nil
}

// checkEmpty refuses a place with files that a crawl would write over.
func (u *Uploader) checkEmpty(ctx context.Context) error {
	p := u.cfg.Place
	for _, name := range append([]string{away.ManifestName}, u.cfg.Grow...) {
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

// whole notes in the place that all is there.
func (u *Uploader) whole(ctx context.Context) error {
	if err := u.stillOurs(ctx); err != nil {
		return err
	}
	u.mark.Open = false
	return u.mark.Write(ctx, u.cfg.Place)
}

// stillOurs sees that no other folder has taken the place over.
func (u *Uploader) stillOurs(ctx context.Context) error {
	m, err := away.ReadMark(ctx, u.cfg.Place)
	switch {
	case errors.Is(err, away.ErrUnreadable), err == nil && m == nil: // somebody has removed it
		return u.mark.Write(ctx, u.cfg.Place)
	case err != nil:
		return err
	case !m.Is(&u.mark):
		return fmt.Errorf("the place %s %w %s now: nothing more is brought there", u.cfg.Place.URL(), ErrTaken, m)
	}
	return nil
}
