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

// load finds out what an earlier process has brought. Where that cannot be read, all is brought again; and at once, if
// the log was cut for it: until then nobody could take over from a disk that is lost.
func (s *States) load(ctx context.Context) error {
	s.mu.Lock()
	begun := s.loaded
	s.mu.Unlock()
	if begun {
		return nil
	}
	if err := s.clearStaging(); err != nil {
		return err
	}
	there, why := away.ReadState(ctx, s.up.cfg.Place)
	if why == nil {
		why = there.CheckFiles(ctx, s.up.cfg.Place)
	}
	if why != nil && !errors.Is(why, away.ErrState) {
		return why
	}
	begins, err := s.cfg.Log.Start(ctx)
	if err != nil {
		return err
	}
	if why == nil && begins > positionOf(there) {
		why = fmt.Errorf("there is none up to %x, where the servers' journal begins", uint64(begins))
	}
	if why != nil {
		s.cfg.Warn(fmt.Errorf("the place %s has no whole checkpoint of this node, and gets the next one: %w",
			s.up.cfg.Place.URL(), why))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded, s.uploaded, s.forceNext = true, there, why != nil
	s.hasStale = there != nil && why == nil
	return nil
}

// errStaged is a file of a checkpoint that cannot be had here, however often it is tried.
var errStaged = errors.New("it is not what was kept for it")

// discardPending lets go of a checkpoint that cannot be brought: the next one can.
func (s *States) discardPending(why error) error {
	s.cfg.Warn(fmt.Errorf("a checkpoint does not come to the place %s, the next one may: %w", s.up.cfg.Place.URL(), why))
	s.mu.Lock()
	s.pending = nil
	s.mu.Unlock()
	s.hasStale = s.hasStale || s.uploaded != nil && !s.forceNext // files of it may be there
	return s.clearStaging()
}

// bring brings a checkpoint to the place. What was brought before it failed is not brought again.
func (s *States) uploadCheckpoint(ctx context.Context, o *pendingState) error {
	if err := errors.Join(s.up.claim.check(ctx), s.cfg.Log.CheckOwner(ctx)); err != nil {
		return err
	}
	state := &away.State{Position: uint64(o.at), RequiredPosition: uint64(o.relies)}
	for _, f := range o.files {
		at, is := o.sent[f.name]
		if !is {
			var err error
			if at, err = s.uploadFile(ctx, o, &f); err != nil {
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
	s.uploaded, s.pending, s.lastUpload = state, nil, time.Now()
	s.stats.States++
	s.forceNext = false
	s.mu.Unlock()
	s.hasStale = true
	return s.clearStaging()
}

// uploadFile sees that a file is in the place.
func (s *States) uploadFile(ctx context.Context, o *pendingState, f *stateFile) (at away.StateFile, err error) {
	staged := filepath.Join(s.up.cfg.Dir, f.staged())
	src, err := s.up.cfg.Disk.OpenAt(staged)
	if err != nil {
		return at, fmt.Errorf("%w: %w", errStaged, err)
	}
	defer func() { _ = src.Close() }() // it is only read
	old, is := s.uploaded.File(f.name)
	is = is && f.isImmutable() && old.Size == f.size
	if is {
		if is, err = old.Exists(ctx, s.up.cfg.Place); err != nil {
			return at, err
		}
		if !is { // nor is what the log was cut for
			s.mu.Lock()
			s.forceNext = true
			s.mu.Unlock()
		}
	}
	if is && s.verified[f.name] {
		return old, nil
	}
	sum, err := digestOf(io.NewSectionReader(src, 0, f.size))
	if size, sizeErr := s.up.cfg.Disk.Size(staged); err == nil && sizeErr == nil && size < f.size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return at, fmt.Errorf("%w: %w", errStaged, err)
	}
	at = away.StateFile{Name: f.name, Path: away.StateFolder(uint64(o.at)) + "/" + f.name, Size: f.size,
		SHA256: hex.EncodeToString(sum[:])}
	if is && old.SHA256 == at.SHA256 {
		s.verified[f.name] = true
		return old, nil
	}
	if err := s.up.sender.put(ctx, at.Path, src, f.size, sum); err != nil {
		return at, err
	}
	s.verified[f.name] = f.isImmutable()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Files, s.stats.Bytes = s.stats.Files+1, s.stats.Bytes+f.size
	return at, nil
}
