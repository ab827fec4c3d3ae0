package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/app/node"
	"kumo/internal/archive/away"
	"kumo/internal/base/wait"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
	"kumo/internal/state/recovery"
	"kumo/internal/state/store"
)

// failedPlaces finds out what of a dead node's record files has reached its place.
type failedPlaces struct {
	*Node
	bus bus.Bus
}

// findPlace looks into a dead node's place, if it has one: for a checkpoint of its state, which it copies, and for what
// the node fetched that has not come there, so that it is fetched again. Its log is sealed by now. unread is why there
// is a checkpoint that cannot be read: as long as the log goes back to its beginning it is not needed.
func (s *failedNodes) findPlace(ctx context.Context, e *failedState, dead strategy.Node) (unread, err error) {
	at, err := s.bus.Get(ctx, node.PlaceKey(dead))
	if err != nil || at.Value == nil {
		return nil, err
	}
	place := string(at.Value)
	if s.places.CopyState == nil {
		return nil, s.findLost(ctx, e, dead, place)
	}
	unread, err = s.places.retry(ctx, dead, place, "to go on from what it held", func() error {
		state, err := s.places.CopyState(ctx, place, s.disk, e.partialDir())
		if e.hasCheckpoint = err == nil && state != nil; e.hasCheckpoint {
			s.places.Log.Info("what a dead node held is taken from the checkpoint in its place, and the rest of its journal",
				"node", dead, "files", len(state.Files))
		}
		return err
	})
	if err == nil && e.hasCheckpoint {
		err = errors.Join(os.MkdirAll(e.dir, 0o755), os.Rename(e.partialDir(), e.stateDir()))
	}
	if err == nil {
		err = s.findLost(ctx, e, dead, place)
	}
	return unread, err
}

// findLost has what a dead node fetched be fetched again where its record files have not come to its place. Where there
// is no place nothing is: its records are on its disk, or nowhere.
func (s *failedNodes) findLost(ctx context.Context, e *failedState, dead strategy.Node, place string) error {
	there, err := s.places.read(ctx, dead, place)
	if err != nil {
		return err
	}
	archive, lines := s.job.Writes(job.WARC), s.job.Writes(job.JSONL)
	e.uploaded = func(grown []store.Mark) bool {
		switch {
		case archive:
			return warcsUploaded(there, grown)
		case lines:
			return pagesUploaded(there, grown)
		}
		return true
	}
	return nil
}

// warcsUploaded reports whether the WARC files that have grown are in a place, with their indexes: they are brought there
// when they are closed.
func warcsUploaded(there *away.Manifest, grown []store.Mark) bool {
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

// pagesUploaded reports the same of pages.jsonl, in a crawl without WARC files.
func pagesUploaded(there *away.Manifest, grown []store.Mark) bool {
	length, grew := store.FindMark(grown, "pages.jsonl")
	return !grew || there.Length("pages.jsonl") >= length
}

// read reads what is in a dead node's place. If it cannot be read, nobody knows what is there, and all is fetched
// again.
func (p failedPlaces) read(ctx context.Context, dead strategy.Node, place string) (there *away.Manifest, err error) {
	unread, err := p.retry(ctx, dead, place, "to see which of its records are there", func() (err error) {
		there, err = p.ReadManifest(ctx, place)
		return err
	})
	if unread == nil || err != nil {
		return there, err
	}
	p.Log.Error("the place of a dead node cannot be read, and is waited for no more: all that the node has fetched is "+
		"fetched again, be it there or not", "node", dead, "place", place, "why", unread)
	return away.NewManifest(), nil
}

// retry reads something in a dead node's place. What cannot be read is waited for, but not for ever, however often the
// fold is begun: the hosts of the dead node wait meanwhile. unread is why it could not be had.
func (p failedPlaces) retry(ctx context.Context, dead strategy.Node, place, what string, f func() error) (unread,
	err error) {
	end := p.dead.waitedSince(dead).Add(p.PlaceWait)
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		if unread = f(); unread == nil {
			p.dead.clearWait(dead)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		left := time.Until(end)
		if unread == nil || left <= 0 {
			return unread, nil
		}
		pause = min(pause, left)
		p.Log.Warn("the place of a dead node cannot be read, "+what+": its hosts wait", "node", dead,
			"place", place, "next_try_in", pause.Round(time.Millisecond), "at_most_for", left.Round(time.Second), "why", unread)
		if err := wait.For(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// dropState removes from a dead node's place what it has of its state.
func (p failedPlaces) dropState(ctx context.Context, dead strategy.Node) error {
	at, err := p.bus.Get(ctx, node.PlaceKey(dead))
	if err != nil || at.Value == nil || p.DropState == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, dropPatience)
	defer cancel()
	if err := p.DropState(ctx, string(at.Value)); err != nil {
		return fmt.Errorf("remove its state from %s: %w", at.Value, err)
	}
	return nil
}

// dropPatience is how long one try to remove a dead node's state may take.
const dropPatience = 30 * time.Second

func (p failedPlaces) note(ctx context.Context, dead strategy.Node, lost *recovery.LostRecords) {
	if lost == nil {
		return
	}
	n := lost.Pages()
	p.dead.addRefetched(dead, n)
	p.Log.Info("what a dead node has fetched and brought to its place is kept; the rest is fetched again", "node", dead,
		"pages_fetched_again", n)
	if n == 0 {
		return
	}
	if err := (node.Totals{Registry: p.bus}).AddRefetched(ctx, node.Pages{dead: n}); err != nil {
		p.Log.Warn("the cluster's status does not say how many pages are fetched again", "node", dead, "pages", n, "why", err)
	}
}

// Refetched is how many pages that dead nodes had fetched are fetched again, as far as this process has found: their
// records were lost.
func (n *Node) Refetched() (all int64) {
	n.dead.mu.Lock()
	defer n.dead.mu.Unlock()
	for _, pages := range n.dead.refetched {
		all += pages
	}
	return all
}

// takeovers is what is to be known of dead nodes that this process folds: some more than once, as a fold is begun
// anew where it fails.
type takeovers struct {
	mu        sync.Mutex // guards what follows
	since     map[strategy.Node]time.Time
	refetched map[strategy.Node]int64
}

// waitedSince is since when a dead node's place is waited for.
func (f *takeovers) waitedSince(dead strategy.Node) time.Time {
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

func (f *takeovers) clearWait(dead strategy.Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.since, dead)
}

func (f *takeovers) addRefetched(dead strategy.Node, pages int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refetched == nil {
		f.refetched = map[strategy.Node]int64{}
	}
	f.refetched[dead] = pages
}
