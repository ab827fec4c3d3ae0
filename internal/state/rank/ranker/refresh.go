package ranker

import (
	"context"
	"math"

	"kumo/internal/state/rank"
	"kumo/internal/state/rank/ids"
)

// A Change is a URL that waits and belongs elsewhere in its host's queue than it did.
type Change struct {
	Key      ids.Key
	From, To rank.Place // without lifts
}

// A Refreshed is what a refresh has done.
type RefreshStats struct {
	Generation uint64  // how many there were since the ranker was opened
	Change     float64 // the sum over all URLs of the differences of importance, by its sum
	Places     int     // how many changes were told
}

// changeBatch is how many changes are told at once, about.
const changeBatch = 4096

// maxLockedLen is how many bytes of links may be gone through with the lock held.
const maxLockedLen = 32 << 10

// Due reports whether links have become more by enough for a refresh. Orders that need none are never due.
func (r *Ranker) Due() bool {
	if r.iterative == nil {
		return false
	}
	end := r.log.Size().Bytes
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.warmUpsLeft > 0 || float64(end-r.refreshed) > max(minGrowth, r.cfg.Growth*float64(r.refreshed))
}

// Generation changes with each refresh: while it is the same, only what Fetched and Give have told has changed.
func (r *Ranker) Generation() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.generation
}

// Refresh makes a pass over all links, beside other methods, and calls changed with batches, each valid during the
// call. It ends early with an error of the disk, of ctx or of changed; ranks are new from the first call on.
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

// compareBatch is how many URLs are compared before others are let in.
const compareBatch = 1 << 15

// compare notes which URLs have another place after a pass, and returns by how much importance changed. It goes through
// URLs by their numbers, which is how ranks lie in memory.
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

// changesOf appends what a part of the table has of the changes that were noted.
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

// pass makes ranks anew. What comes while it goes through the links it goes through next, the last of it with the lock
// held, so that no link is left out.
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
