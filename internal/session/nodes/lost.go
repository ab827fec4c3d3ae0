package nodes

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"kumo/internal/away"
	"kumo/internal/bus"
	"kumo/internal/job"
	"kumo/internal/node"
	"kumo/internal/recovery"
	"kumo/internal/store"
	"kumo/internal/strategy"
)

// placesOfDead finds out what of a dead node's record files has reached its place.
type placesOfDead struct {
	*Node
	bus bus.Bus
}

// findLost has what a dead node fetched be fetched again where its record files went to a place, and have not come
// there. Its log is sealed by now. Where there is no place nothing is: its records are on its disk, or nowhere.
func (s *failedNodes) findLost(ctx context.Context, e *failedState, dead strategy.Node) error {
	at, err := s.bus.Get(ctx, node.PlaceKey(dead))
	if err != nil || at.Value == nil {
		return err
	}
	there, err := s.places.read(ctx, dead, string(at.Value))
	if err != nil {
		return err
	}
	archive, lines := s.job.Writes(job.WARC), s.job.Writes(job.JSONL)
	e.lost = &recovery.Lost{Disk: s.disk, File: filepath.Join(e.dir, "again"), Safe: func(grown []store.Mark) bool {
		switch {
		case archive:
			return warcsThere(there, grown)
		case lines:
			return linesThere(there, grown)
		}
		return true
	}}
	return nil
}

// warcsThere reports whether the WARC files that have grown are in a place, with their indexes: they are brought there
// when they are closed.
func warcsThere(there *away.Manifest, grown []store.Mark) bool {
	for _, m := range grown {
		if !strings.HasPrefix(m.Name, "warc/") {
			continue
		}
		if _, is := there.Get(strings.TrimSuffix(m.Name, ".open")); !is {
			return false
		}
	}
	return true
}

// linesThere reports the same of pages.jsonl, in a crawl without WARC files. It is brought there as it is when a run
// ends.
func linesThere(there *away.Manifest, grown []store.Mark) bool {
	length, grew := store.Find(grown, "pages.jsonl")
	e, is := there.Get("pages.jsonl")
	return !grew || is && e.Size >= length
}

// read reads what is in a dead node's place. One that cannot be read is waited for, but not for ever, however often the
// fold is begun: the hosts of the dead node wait meanwhile. Then nobody knows what is there, and all is fetched again.
func (p placesOfDead) read(ctx context.Context, dead strategy.Node, place string) (*away.Manifest, error) {
	end := p.dead.waitedSince(dead).Add(p.PlaceWait)
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		there, err := p.There(ctx, place)
		if err == nil {
			p.dead.canBeRead(dead)
		}
		if err == nil || ctx.Err() != nil {
			return there, err
		}
		left := time.Until(end)
		if left <= 0 {
			p.Log.Error("the place of a dead node cannot be read, and is waited for no more: all that the node has fetched is "+
				"fetched again, be it there or not", "node", dead, "place", place, "why", err)
			return away.NewManifest(), nil
		}
		pause = min(pause, left)
		p.Log.Warn("the place of a dead node cannot be read, to see which of its records are there: its hosts wait", "node", dead,
			"place", place, "next_try_in", pause.Round(time.Millisecond), "at_most_for", left.Round(time.Second), "why", err)
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// note says how many pages of a dead node are fetched again.
func (p placesOfDead) note(ctx context.Context, dead strategy.Node, lost *recovery.Lost) {
	if lost == nil {
		return
	}
	n := lost.Pages()
	p.dead.fetchedAgain(dead, n)
	p.Log.Info("what a dead node has fetched and brought to its place is kept; the rest is fetched again", "node", dead,
		"pages_fetched_again", n)
	if n == 0 {
		return
	}
	if err := (node.Totals{Registry: p.bus}).AddAgain(ctx, node.Pages{dead: n}); err != nil {
		p.Log.Warn("the cluster's status does not say how many pages are fetched again", "node", dead, "pages", n, "why", err)
	}
}

// Again is how many pages that dead nodes had fetched are fetched again, as far as this process has found: their records
// were lost.
func (n *Node) Again() (all int64) {
	n.dead.mu.Lock()
	defer n.dead.mu.Unlock()
	for _, pages := range n.dead.again {
		all += pages
	}
	return all
}

// foldedNodes is what is to be known of dead nodes that this process folds: some more than once, as a fold is begun anew
// where it fails.
type foldedNodes struct {
	mu    sync.Mutex // guards what follows
	since map[strategy.Node]time.Time
	again map[strategy.Node]int64
}

// waitedSince is since when a dead node's place is waited for.
func (f *foldedNodes) waitedSince(dead strategy.Node) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, is := f.since[dead]
	if !is {
		if f.since == nil {
			f.since = map[strategy.Node]time.Time{}
		}
		at = time.Now()
		f.since[dead] = at
	}
	return at
}

func (f *foldedNodes) canBeRead(dead strategy.Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.since, dead)
}

func (f *foldedNodes) fetchedAgain(dead strategy.Node, pages int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.again == nil {
		f.again = map[strategy.Node]int64{}
	}
	f.again[dead] = pages
}
