package ranker

import (
	"context"

	"kumo/internal/state/rank"
)

// An Other is one of another node's URLs.
type Other struct {
	URL
	Address string // canonical; its key is URL's
}

// othersAtOnce is how many of other nodes' URLs are told at once, at the most.
const othersAtOnce = 256

// Again is to be called after a refresh. It calls f with batches of other nodes' URLs whose importance is told once
// more, by Tell: as many as [rank.Told] allows for. They are read from the log's folder; without one, or with an
// iterative order, there are none. It ends early with an error of the disk, of the context or of f.
func (r *Ranker) Again(ctx context.Context, f func([]Other) error) error {
	r.refreshing.Lock()
	defer r.refreshing.Unlock()
	places := r.choose()
	if places > mostPlaces {
		return nil
	}
	var batch []Other
	err := r.log.Others(ctx, func(u rank.ID, url []byte, depth int32) error {
		if !r.hasChanged(u, places) {
			return nil
		}
		address := string(url)
		batch = append(batch, Other{URL{Key: r.KeyOf(address), Depth: depth}, address})
		if len(batch) < othersAtOnce {
			return nil
		}
		err := f(batch)
		batch = batch[:0]
		return err
	})
	if err == nil && len(batch) > 0 {
		err = f(batch)
	}
	return err
}

// choose says by how many places URLs are to have changed that are told again.
func (r *Ranker) choose() (places int) {
	var census rank.Census
	for u := 0; ; {
		r.mu.Lock()
		if r.told == nil || r.iterative == nil || r.warm > 0 {
			r.mu.Unlock()
			return mostPlaces + 1
		}
		n := min(u+compareAtOnce, r.table.Len())
		for ; u < n; u++ {
			r.told.Count(&census, rank.ID(u), r.cfg.Order.Worth(rank.ID(u)))
		}
		if u == r.table.Len() {
			places = r.told.Choose(&census)
			r.mu.Unlock()
			return places
		}
		r.mu.Unlock()
	}
}

const mostPlaces = 1000

func (r *Ranker) hasChanged(u rank.ID, places int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.told.Changed(u, r.cfg.Order.Worth(u), places)
}
