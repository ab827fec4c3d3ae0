package ranker

import (
	"context"

	"kumo/internal/state/rank"
)

// A RemoteURL is a URL of another node.
type RemoteURL struct {
	URL
	Address string // canonical; matches the key
}

// remoteBatch is the maximum number of other nodes' URLs per batch.
const remoteBatch = 256

// ReportAgain must be called after a refresh. It calls f with batches of other nodes' URLs whose importance should be
// reported again with ReportDelta: as many as [rank.Reports] allows. They are read from the log's directory; without
// one, or without an iterative order, there are none. It stops at an error of the disk, of ctx or of f.
func (r *Ranker) ReportAgain(ctx context.Context, f func([]RemoteURL) error) error {
	r.refreshing.Lock()
	defer r.refreshing.Unlock()
	places := r.changeThreshold()
	if places > mostPlaces {
		return nil
	}
	var batch []RemoteURL
	err := r.log.Others(ctx, func(u rank.ID, url []byte, depth int32) error {
		if !r.hasChanged(u, places) {
			return nil
		}
		address := string(url)
		batch = append(batch, RemoteURL{URL{Key: r.KeyOf(address), Depth: depth}, address})
		if len(batch) < remoteBatch {
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

// changeThreshold returns by how many places URLs must have changed to be reported again.
func (r *Ranker) changeThreshold() (places int) {
	var histogram rank.Histogram
	for u := 0; ; {
		r.mu.Lock()
		if r.reports == nil || r.iterative == nil || r.warmUpsLeft > 0 {
			r.mu.Unlock()
			return mostPlaces + 1
		}
		n := min(u+compareBatch, r.table.Len())
		for ; u < n; u++ {
			r.reports.Count(&histogram, rank.ID(u), r.cfg.Order.Worth(rank.ID(u)))
		}
		if u == r.table.Len() {
			places = r.reports.Threshold(&histogram)
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
	return r.reports.Changed(u, r.cfg.Order.Worth(u), places)
}
