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

// load reads the state that an earlier process has uploaded. If it is damaged, the next checkpoint is uploaded
// completely and at any cost: until then no node could take over if the local disk is lost.
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
		why = fmt.Errorf("there is none up to position %x, where the servers' log begins", uint64(begins))
	}
	if why != nil {
		s.cfg.Warn(fmt.Errorf("the place %s has no complete checkpoint of this node; the next one is uploaded: %w",
			s.up.cfg.Place.URL(), why))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded, s.uploaded, s.forceNext = true, there, why != nil
	s.hasStale = there != nil && why == nil
	return nil
}

// errStaged means that a staged file of a checkpoint is unusable, so that a retry is useless.
var errStaged = errors.New("the staged file is damaged")

// discardPending discards a checkpoint that cannot be uploaded. The next one may succeed.
func (s *States) discardPending(why error) error {
	s.cfg.Warn(fmt.Errorf("upload a checkpoint to the place %s: %w; the next one is tried", s.up.cfg.Place.URL(), why))
	s.mu.Lock()
	s.pending = nil
	s.mu.Unlock()
	s.hasStale = s.hasStale || s.uploaded != nil && !s.forceNext // some of its files may be uploaded
	return s.clearStaging()
}

// uploadCheckpoint uploads a checkpoint. After a failure, files already uploaded are not sent again.
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
	if err := s.cfg.Log.CheckOwner(ctx); err != nil { // a node that took over has removed the uploaded state
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

// uploadFile makes sure that a file is in the location.
func (s *States) uploadFile(ctx context.Context, o *pendingState, f *stateFile) (at away.StateFile, err error) {
	staged := filepath.Join(s.up.cfg.Dir, f.staged())
	src, err := s.up.cfg.Disk.OpenAt(staged)
	if err != nil {
		return at, fmt.Errorf("%w: %w", errStaged, err)
	}
	defer func() { _ = src.Close() }() // opened for reading only
	old, is := s.uploaded.File(f.name)
	is = is && f.isImmutable() && old.Size == f.size
	if is {
		if is, err = old.Exists(ctx, s.up.cfg.Place); err != nil {
			return at, err
		}
		if !is { // so the location lacks a file that the trimmed log requires
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
