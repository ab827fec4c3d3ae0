package upload

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"kumo/internal/archive/away"
)

// begin finds out what an earlier process has brought. Where that cannot be read, all is brought again; and at once, if
// the log was cut for it: until then nobody could take over from a disk that is lost.
func (s *States) begin(ctx context.Context) error {
	s.mu.Lock()
	begun := s.begun
	s.mu.Unlock()
	if begun {
		return nil
	}
	if err := s.clear(); err != nil {
		return err
	}
	there, why := away.ReadState(ctx, s.up.cfg.Place)
	if why == nil {
		why = there.Lacks(ctx, s.up.cfg.Place)
	}
	if why != nil && !errors.Is(why, away.ErrState) {
		return why
	}
	begins, err := s.cfg.Log.Start(ctx)
	if err != nil {
		return err
	}
	if why == nil && begins > upTo(there) {
		why = fmt.Errorf("there is none up to %x, where the servers' journal begins", uint64(begins))
	}
	if why != nil {
		s.cfg.Warn(fmt.Errorf("the place %s has no whole checkpoint of this node, and gets the next one: %w",
			s.up.cfg.Place.URL(), why))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun, s.there, s.must = true, there, why != nil
	s.untidy = there != nil && why == nil
	return nil
}

// errStaged is a file of a checkpoint that cannot be had here, however often it is tried.
var errStaged = errors.New("it is not what was kept for it")

// giveUp lets go of a checkpoint that cannot be brought: the next one can.
func (s *States) giveUp(why error) error {
	s.cfg.Warn(fmt.Errorf("a checkpoint does not come to the place %s, the next one may: %w", s.up.cfg.Place.URL(), why))
	s.mu.Lock()
	s.offered = nil
	s.mu.Unlock()
	s.untidy = s.untidy || s.there != nil && !s.must // files of it may be there
	return s.clear()
}

// bring brings a checkpoint to the place. What was brought before it failed is not brought again.
func (s *States) bring(ctx context.Context, o *offer) error {
	if err := errors.Join(s.up.claim.check(ctx), s.cfg.Log.CheckOwner(ctx)); err != nil {
		return err
	}
	state := &away.State{Position: uint64(o.at), Relies: uint64(o.relies)}
	for _, f := range o.files {
		at, is := o.sent[f.name]
		if !is {
			var err error
			if at, err = s.send(ctx, o, &f); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
			o.sent[f.name] = at
		}
		state.Files = append(state.Files, at)
	}
	if err := s.cfg.Log.Ship(ctx, o.relies); err != nil {
		return err
	}
	if err := s.cfg.Log.CheckOwner(ctx); err != nil { // who has folded this node has removed what the place had of it
		return err
	}
	if err := state.Write(ctx, s.up.cfg.Place); err != nil {
		return err
	}
	s.mu.Lock()
	s.there, s.offered, s.came = state, nil, time.Now()
	s.cut.States++
	s.must = false
	s.mu.Unlock()
	s.untidy = true
	return s.clear()
}

// send sees that a file is in the place.
func (s *States) send(ctx context.Context, o *offer, f *stateFile) (at away.StateFile, err error) {
	staged := filepath.Join(s.up.cfg.Dir, f.staged())
	src, err := s.up.cfg.Disk.OpenAt(staged)
	if err != nil {
		return at, fmt.Errorf("%w: %w", errStaged, err)
	}
	defer func() { _ = src.Close() }() // it is only read
	old, is := s.there.File(f.name)
	is = is && f.lasts() && old.Size == f.size
	if is {
		if is, err = old.IsThere(ctx, s.up.cfg.Place); err != nil {
			return at, err
		}
		if !is { // nor is what the log was cut for
			s.mu.Lock()
			s.must = true
			s.mu.Unlock()
		}
	}
	if is && s.sound[f.name] {
		return old, nil
	}
	sum, err := digestOf(io.NewSectionReader(src, 0, f.size))
	if size, sizeErr := s.up.cfg.Disk.Size(staged); err == nil && sizeErr == nil && size < f.size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return at, fmt.Errorf("%w: %w", errStaged, err)
	}
	at = away.StateFile{Name: f.name, At: away.StateFolder(uint64(o.at)) + "/" + f.name, Size: f.size,
		SHA256: hex.EncodeToString(sum[:])}
	if is && old.SHA256 == at.SHA256 {
		s.sound[f.name] = true
		return old, nil
	}
	if err := s.up.sender.put(ctx, at.At, src, f.size, sum); err != nil {
		return at, err
	}
	s.sound[f.name] = f.lasts()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut.Files, s.cut.Bytes = s.cut.Files+1, s.cut.Bytes+f.size
	return at, nil
}
