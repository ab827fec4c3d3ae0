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

	"kumo/internal/advice"
	"kumo/internal/away"
	"kumo/internal/place"
)

// ErrTaken is a place that is another crawl's.
var ErrTaken = errors.New("is used by")

// Check sees, without a change of either, whether a place can be the crawl's in a folder.
func Check(ctx context.Context, cfg Config) error {
	u := &Uploader{cfg: cfg}
	_, err := u.compare(ctx)
	return err
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
	link, err := u.compare(ctx)
	if err != nil {
		return err
	}
	if link == nil {
		link = &away.Link{Place: u.cfg.Place.URL(), ID: rand.Text()}
	}
	if link.URL != u.cfg.URL {
		link.URL = u.cfg.URL
		if err := link.Write(u.cfg.Disk, u.cfg.Dir); err != nil {
			return err
		}
	}
	u.mark = self(&u.cfg, link)
	if err := u.mark.Write(ctx, u.cfg.Place); err != nil {
		return fmt.Errorf("the place %s cannot be written to: %w", u.cfg.Place.URL(), err)
	}
	return nil
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

// compare compares what the folder says of its place with what the place says of its crawl. It returns the folder's link,
// nil if it has none yet.
func (u *Uploader) compare(ctx context.Context) (*away.Link, error) {
	p, dir := u.cfg.Place, u.cfg.Dir
	link, err := away.ReadLink(dir)
	if err != nil {
		return nil, err
	}
	if u.cfg.Fresh {
		link = nil
	}
	if link != nil && link.Place != p.URL() {
		return nil, advice.Usage("the files of the crawl in %s go to %s, and not to %s: name another folder with --work",
			dir, link.Place, p.URL())
	}
	mark, err := away.ReadMark(ctx, p)
	if errors.Is(err, away.ErrUnreadable) && link != nil { // no other crawl would have been let in
		return link, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the place %s cannot be read: %w", p.URL(), err)
	}
	switch {
	case mark == nil && link == nil:
		return nil, u.checkEmpty(ctx)
	case mark == nil:
		return link, nil
	case link == nil || link.ID != mark.ID:
		return nil, advice.Usage("the place %s %w %s: name another", p.URL(), ErrTaken, mark)
	}
	if own := self(&u.cfg, link); !own.Is(mark) && own.Machine == mark.Machine {
		if other, err := away.ReadLink(mark.Folder); err == nil && other != nil && other.ID == link.ID {
			return nil, advice.Usage("the place %s %w %s, of which %s is a copy: go on with that, or remove it", p.URL(),
				ErrTaken, mark, dir)
		}
	}
	return link, nil
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
