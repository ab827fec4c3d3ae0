package upload

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"kumo/internal/archive/away"
)

// perRound is the number of files uploaded per update of the manifest.
const perRound = 8

// round uploads the first pending files, lists them in the manifest, and drops files that the folder does not need.
// After a failure it starts no other upload, unless the run ends, but still lists the uploaded files.
func (u *Uploader) round(ctx context.Context, todo []pendingFile) error {
	u.worst = 0
	if err := u.claim.check(ctx); err != nil {
		return err
	}
	parts, err := u.lists.upload(ctx) // even at the end, because uploading whole lists may fail
	if err != nil {
		return err
	}
	if parts {
		u.ledger.listed, u.lastProgress = false, time.Now()
	}
	todo = todo[:min(len(todo), perRound)]
	failed := make([]error, len(todo))
	var g errgroup.Group
	var fails atomic.Bool
	g.SetLimit(u.cfg.Workers)
	for n, f := range todo {
		g.Go(func() error {
			if fails.Load() && !u.isEnding() { // at the end there may be no other chance
				failed[n] = errSkipped
				return nil
			}
			if failed[n] = u.uploadFile(ctx, f); failed[n] != nil {
				fails.Store(true)
			}
			return failed[n]
		})
	}
	err = g.Wait()
	for n, f := range todo {
		if failed[n] != nil {
			if !errors.Is(failed[n], errSkipped) {
				u.queue.tries[f.name]++
				u.worst = max(u.worst, u.queue.tries[f.name])
			}
			continue
		}
		u.ledger.listed, u.lastProgress, u.ledger.added = false, time.Now(), append(u.ledger.added, f.name)
		if slices.Contains(u.cfg.Grow, f.name) {
			u.queue.grown[f.name] = true
		} else {
			u.queue.done[f.name] = true
		}
	}
	news, written, listErr := u.ledger.list(ctx)
	if listErr != nil {
		return errors.Join(err, listErr)
	}
	if written {
		u.states.manifestWritten(news)
		u.ledger.dropParts(ctx)
	}
	return errors.Join(err, u.queue.drop())
}

var errSkipped = errors.New("skipped after the failure of another file")

// uploadFile uploads a file, if necessary, and records it.
func (u *Uploader) uploadFile(ctx context.Context, f pendingFile) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	sum, err := u.sender.send(ctx, f)
	if err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	return u.ledger.record(away.Entry{Name: f.name, Size: f.size, SHA256: hex.EncodeToString(sum[:]),
		Time: time.Now().UTC()})
}
