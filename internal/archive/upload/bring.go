package upload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"kumo/internal/archive/away"
	"kumo/internal/archive/place"
)

// perRound is how many files are brought to the place before its manifest names them.
const perRound = 8

// round brings the first of what waits to the place, names it, and lets go of what need not be here any more. With an
// error it has done what it could.
func (u *Uploader) round(ctx context.Context, todo []waiting) error {
	u.worst = 0
	if err := u.stillOurs(ctx); err != nil {
		return err
	}
	if err := u.bringParts(ctx); err != nil { // at the end, too: lists that are to come whole may fail
		return err
	}
	todo = todo[:min(len(todo), perRound)]
	failed := make([]error, len(todo))
	var g errgroup.Group
	var fails atomic.Bool
	g.SetLimit(u.cfg.Workers)
	for n, f := range todo {
		g.Go(func() error {
			if fails.Load() && !u.isEnding() { // or else there may be no other time
				failed[n] = errSkipped
				return nil
			}
			if failed[n] = u.bring(ctx, f); failed[n] != nil {
				fails.Store(true)
			}
			return failed[n]
		})
	}
	err := g.Wait()
	for n, f := range todo {
		if failed[n] != nil {
			if !errors.Is(failed[n], errSkipped) {
				u.tries[f.name]++
				u.worst = max(u.worst, u.tries[f.name])
			}
			continue
		}
		u.named, u.last, u.news = false, time.Now(), append(u.news, f.name)
		if slices.Contains(u.cfg.Grow, f.name) {
			u.grown[f.name] = true
		} else {
			u.done[f.name] = true
		}
	}
	if !u.named {
		if nameErr := away.WriteSmall(ctx, u.cfg.Place, away.ManifestName, u.there.Encode()); nameErr != nil {
			return errors.Join(err, fmt.Errorf("%s: %w", away.ManifestName, nameErr))
		}
		u.named = true
		u.mu.Lock()
		u.unnamed = map[string]bool{}
		u.mu.Unlock()
		u.states.look(u.news)
		u.news = nil
		u.dropParts(ctx)
	}
	return errors.Join(err, u.drop())
}

var errSkipped = errors.New("another file has failed")

// bring brings a file to the place, if it is not there, and notes it.
func (u *Uploader) bring(ctx context.Context, f waiting) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	sum, err := u.send(ctx, f)
	if err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	return u.note(away.Entry{Name: f.name, Size: f.size, SHA256: hex.EncodeToString(sum[:]), Time: time.Now().UTC()})
}

// send sees that a file is in the place, as it is here: an earlier process may have brought it there, and not lived to
// note it. A place that takes files by their digests sees to both itself; of another what was written is read back.
func (u *Uploader) send(ctx context.Context, f waiting) (sum digest, err error) {
	src, err := u.cfg.Disk.OpenAt(u.path(f.name))
	if err != nil {
		return sum, err
	}
	defer func() { _ = src.Close() }() // it is only read
	if sum, err = digestOf(io.NewSectionReader(src, 0, f.size)); err != nil {
		return sum, err
	}
	_, checks := u.cfg.Place.(place.Uploader)
	if !checks {
		if is, err := u.has(ctx, f, sum); is || err != nil {
			return sum, err
		}
	}
	return sum, u.put(ctx, f.name, src, f.size, sum)
}

// put writes a file into the place, which has it then as it was given.
func (u *Uploader) put(ctx context.Context, name string, src io.ReaderAt, size int64, sum digest) error {
	err := place.Upload(ctx, u.cfg.Place, name, src, size, sum)
	if _, checks := u.cfg.Place.(place.Uploader); err != nil || checks {
		return err
	}
	there, err := u.digestThere(ctx, name)
	if err == nil && there != sum {
		err = fmt.Errorf("the place has kept other bytes: their SHA-256 is %x, not %x", there, sum)
	}
	return err
}

// has reports whether a file that is not noted is in the place.
func (u *Uploader) has(ctx context.Context, f waiting, sum digest) (bool, error) {
	if _, noted := u.there.Get(f.name); noted {
		return false, nil // that is another
	}
	info, err := u.cfg.Place.Stat(ctx, f.name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size != f.size {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	there, err := u.digestThere(ctx, f.name)
	return there == sum, err
}

type digest = [sha256.Size]byte

func (u *Uploader) digestHere(name string) (sum digest, err error) {
	src, err := u.cfg.Disk.Open(u.path(name))
	if err != nil {
		return sum, err
	}
	sum, err = digestOf(src)
	return sum, errors.Join(err, src.Close())
}

func (u *Uploader) digestThere(ctx context.Context, name string) (sum digest, err error) {
	src, err := u.cfg.Place.Open(ctx, name, 0, -1)
	if err != nil {
		return sum, err
	}
	sum, err = digestOf(src)
	return sum, errors.Join(err, src.Close())
}

func digestOf(src io.Reader) (digest, error) {
	sum := sha256.New()
	_, err := io.Copy(sum, src)
	return digest(sum.Sum(nil)), err
}
