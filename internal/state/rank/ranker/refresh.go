package ranker

import (
	"context"
	"math"

	"kumo/internal/state/rank"
	"kumo/internal/state/rank/ids"
)

// A Change is a pending URL whose place in its host's queue has changed.
type Change struct {
	Key      ids.Key
	From, To rank.Place // without lifts
}

// RefreshStats are the results of a refresh.
type RefreshStats struct {
	Generation uint64  // number of refreshes since the ranker was opened
	Change     float64 // sum of the differences of importance, divided by the sum of importance
	Places     int     // number of changes reported
}

// changeBatch is the approximate number of changes per batch.
const changeBatch = 4096

// maxLockedLen is the maximum number of bytes of links that a pass processes with the lock held.
const maxLockedLen = 32 << 10

// Due reports whether links have grown enough for a refresh. It is always false for orders that are not iterative.
func (r *Ranker) Due() bool {
	if r.iterative == nil {
		return false
	}
	end := r.log.Size().Bytes
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.warmUpsLeft > 0 || float64(end-r.refreshed) > max(minGrowth, r.cfg.Growth*float64(r.refreshed))
}

// Generation changes with each refresh. While it stays the same, only Fetched and AddExternal have changed places.
func (r *Ranker) Generation() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.generation
}

// Refresh makes a pass over all links, concurrently with other methods, and calls changed with batches of changes, each
// valid during the call. It stops at an error of the disk, of ctx or of changed; the new ranks are in effect from the
// first call on.
func (r *Ranker) Refresh(ctx context.Context, changed func([]Change) error) (RefreshStats, error) {
	if r.iterative == nil {
		return RefreshStats{}, nil
	}
	r.refreshing.Lock()
	defer r.refreshing.Unlock()
	generation, err := r.pass(ctx)
	if err != nil {
		return RefreshStats{}, err
	}
	done := RefreshStats{Generation: generation, Change: r.compare()}
	var batch []Change
	for part := range ids.Parts {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		batch = r.changesOf(part, batch)
		if len(batch) >= changeBatch || part == ids.Parts-1 {
			done.Places += len(batch)
			if err := changed(batch); err != nil {
				return done, err
			}
			batch = batch[:0]
		}
	}
	return done, nil
}

// compareBatch is the number of URLs compared before the lock is released.
const compareBatch = 1 << 15

// compare records which URLs have another place after a pass, and returns the relative change of importance. It
// processes URLs in the order of their numbers, like ranks in memory.
func (r *Ranker) compare() (change float64) {
	var diff, sum float64
	for u := 0; ; {
		r.mu.Lock()
		n := min(u+compareBatch, r.table.Len())
		r.moved.grow(n)
		for ; u < n; u++ {
			u := rank.ID(u)
			before, now := r.iterative.PreviousImportance(u), r.iterative.Importance(u, 0)
			diff, sum = diff+math.Abs(now-before), sum+now
			r.moved.set(u, before != now && rank.PlaceOf(before) != rank.PlaceOf(now) && r.isPending(u))
		}
		end := u == r.table.Len()
		r.mu.Unlock()
		if end {
			return diff / max(sum, 1)
		}
	}
}

// changesOf appends the recorded changes of a part of the table.
func (r *Ranker) changesOf(part int, to []Change) []Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.table.Part(part, func(k ids.Key, u rank.ID) {
		if !r.moved.has(u) {
			return
		}
		c := Change{k, rank.PlaceOf(r.iterative.PreviousImportance(u)), rank.PlaceOf(r.iterative.Importance(u, 0))}
		if c.From != c.To && r.isPending(u) {
			to = append(to, c)
		}
	})
	return to
}

func (r *Ranker) isPending(u rank.ID) bool {
	return !r.fetched.has(u) && (r.reports == nil || r.reports.Worth(u) == 0)
}

// pass recomputes the ranks. Links added during the pass are processed next, the last ones with the lock held, so that
// none is missed.
func (r *Ranker) pass(ctx context.Context) (generation uint64, err error) {
	r.mu.Lock()
	r.iterative.Begin()
	r.mu.Unlock()
	end := int64(0)
	for {
		view := r.log.View(end)
		if end > 0 && view.Len() <= maxLockedLen {
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
	r.warmUpsLeft = max(0, r.warmUpsLeft-1)
	r.generation++
	return r.generation, nil
}
