package ranker

import (
	"context"
	"math"

	"kumo/internal/rank"
	"kumo/internal/rank/ids"
)

// A Change is a URL that waits and belongs elsewhere in its host's queue than it did.
type Change struct {
	Key      ids.Key
	From, To rank.Place // without lifts
}

// A Refreshed is what a refresh has done.
type Refreshed struct {
	Generation uint64  // how many there were since the ranker was opened
	Change     float64 // the sum over all URLs of the differences of importance, by its sum
	Places     int     // how many changes were told
}

// changesAtOnce is how many changes are told at once, about.
const changesAtOnce = 4096

// restLen is how many bytes of links may be gone through with the lock held.
const restLen = 32 << 10

// Due reports whether links have become more by enough for a refresh. Orders that need none are never due.
func (r *Ranker) Due() bool {
	if r.iterative == nil {
		return false
	}
	end := r.log.Size().Bytes
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.warm > 0 || float64(end-r.refreshed) > max(leastGrowth, r.cfg.Growth*float64(r.refreshed))
}

// Generation changes with each refresh: while it is the same, only what Fetched and Give have told has changed.
func (r *Ranker) Generation() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.generation
}

// Refresh makes a pass over all links, in one goroutine, while pages go on to come, and tells what changed by calls with
// a batch each, which holds until the call returns. One refresh is made at a time. It ends early with an error of the
// disk, of ctx or of changed: ranks are what they were then, or, after the first call, what they are to be.
func (r *Ranker) Refresh(ctx context.Context, changed func([]Change) error) (Refreshed, error) {
	if r.iterative == nil {
		return Refreshed{}, nil
	}
	r.refreshing.Lock()
	defer r.refreshing.Unlock()
	generation, err := r.pass(ctx)
	if err != nil {
		return Refreshed{}, err
	}
	done := Refreshed{Generation: generation}
	var diff, sum float64
	var batch []Change
	for part := range ids.Parts {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		r.mu.Lock()
		r.table.Part(part, func(k ids.Key, u rank.ID) {
			before, now := r.iterative.Before(u), r.iterative.Importance(u, 0)
			diff, sum = diff+math.Abs(now-before), sum+now
			if from, to := rank.PlaceOf(before), rank.PlaceOf(now); from != to && !r.isFetched(u) {
				batch = append(batch, Change{k, from, to})
			}
		})
		r.mu.Unlock()
		if len(batch) >= changesAtOnce || part == ids.Parts-1 {
			done.Places += len(batch)
			if err := changed(batch); err != nil {
				return done, err
			}
			batch = batch[:0]
		}
	}
	done.Change = diff / max(sum, 1)
	return done, nil
}

// pass makes ranks anew. What comes while it goes through the links it goes through next, the last of it with the lock
// held, so that no link is left out.
func (r *Ranker) pass(ctx context.Context) (generation uint64, err error) {
	r.mu.Lock()
	r.iterative.Begin()
	r.mu.Unlock()
	end := int64(0)
	for {
		view := r.log.View(end)
		if end > 0 && view.Len() <= restLen {
			break
		}
		if err := r.iterative.Pass(ctx, view.Scan); err != nil {
			return 0, err
		}
		if end = view.End(); end == 0 {
			break
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	view := r.log.View(end)
	if err := r.iterative.Pass(ctx, view.Scan); err != nil {
		return 0, err
	}
	r.iterative.End()
	r.refreshed = view.End()
	r.warm = max(0, r.warm-1)
	r.generation++
	return r.generation, nil
}
