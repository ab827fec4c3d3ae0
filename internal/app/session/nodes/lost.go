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

// A failedPlaces determines which record files of a dead node are uploaded.
type failedPlaces struct {
	*Node
	bus bus.Bus
}

// findPlace reads a dead node's storage location, if it has one. It copies the checkpoint of the node's state, and
// determines which fetched pages are not uploaded and must be fetched again. The node's log is already sealed. unread
// is the reason why an existing checkpoint cannot be read; it is not needed while the log is complete.
func (s *failedNodes) findPlace(ctx context.Context, e *failedState, dead strategy.Node) (unread, err error) {
	at, err := s.bus.Get(ctx, node.PlaceKey(dead))
	if err != nil || at.Value == nil {
		return nil, err
	}
	place := string(at.Value)
	if s.places.CopyState == nil {
		return nil, s.findLost(ctx, e, dead, place)
	}
	unread, err = s.places.retry(ctx, dead, place, "for its checkpoint", func() error {
		state, err := s.places.CopyState(ctx, place, s.disk, e.partialDir())
		if e.hasCheckpoint = err == nil && state != nil; e.hasCheckpoint {
			s.places.Log.Info("recovering a dead node from its uploaded checkpoint and the rest of its journal",
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

// findLost schedules fetched pages of a dead node for another fetch if their record files are not uploaded. Without a
// storage location there are none: the records are on the node's disk, or lost.
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

// warcsUploaded reports whether the grown WARC files are uploaded. They are uploaded with their indexes when they are
// closed.
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

// pagesUploaded reports the same for pages.jsonl, in a crawl without WARC files.
func pagesUploaded(there *away.Manifest, grown []store.Mark) bool {
	length, grew := store.FindMark(grown, pagesName)
	return !grew || there.Length(pagesName) >= length
}

// read reads the manifest of a dead node's storage location. If that fails, the location counts as empty, and all pages
// are fetched again.
func (p failedPlaces) read(ctx context.Context, dead strategy.Node, place string) (there *away.Manifest, err error) {
	unread, err := p.retry(ctx, dead, place, "for its record files", func() (err error) {
		there, err = p.ReadManifest(ctx, place)
		return err
	})
	if unread == nil || err != nil {
		return there, err
	}
	p.Log.Error("cannot read the storage location of a dead node; giving up: all its fetched pages are "+
		"fetched again, even if they were uploaded", "node", dead, "place", place, "why", unread)
	return away.NewManifest(), nil
}

// retry reads something in a dead node's storage location, with retries for PlaceWait in total over all attempts to
// recover the node, because its hosts wait meanwhile. unread is the reason of the failure.
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
		p.Log.Warn("cannot read the storage location of a dead node "+what+"; its hosts wait", "node", dead,
			"place", place, "next_try_in", pause.Round(time.Millisecond), "at_most_for", left.Round(time.Second), "why", unread)
		if err := wait.For(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// dropState deletes a dead node's uploaded state.
func (p failedPlaces) dropState(ctx context.Context, dead strategy.Node) error {
	at, err := p.bus.Get(ctx, node.PlaceKey(dead))
	if err != nil || at.Value == nil || p.DropState == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, dropPatience)
	defer cancel()
	if err := p.DropState(ctx, string(at.Value)); err != nil {
		return fmt.Errorf("delete its state from %s: %w", at.Value, err)
	}
	return nil
}

// dropPatience limits one attempt to delete a dead node's state.
const dropPatience = 30 * time.Second

func (p failedPlaces) add(ctx context.Context, dead strategy.Node, lost *recovery.LostRecords) {
	if lost == nil {
		return
	}
	n := lost.Pages()
	p.dead.addRefetched(dead, n)
	p.Log.Info("pages of a dead node are kept if their records are uploaded, and in the sinks; the rest is fetched "+
		"again", "node", dead,
		"pages_fetched_again", n)
	if n == 0 {
		return
	}
	if err := (node.Totals{Registry: p.bus}).AddRefetched(ctx, node.Pages{dead: n}); err != nil {
		p.Log.Warn("cannot record in the cluster's status how many pages are fetched again", "node", dead, "pages", n, "why",
			err)
	}
}

// Refetched returns the number of dead nodes' pages that are fetched again because their records were lost, as far as
// this process knows.
func (n *Node) Refetched() (all int64) {
	n.dead.mu.Lock()
	defer n.dead.mu.Unlock()
	for _, pages := range n.dead.refetched {
		all += pages
	}
	return all
}

// takeovers records data on dead nodes that this process recovers. A failed recovery is attempted again.
type takeovers struct {
	mu        sync.Mutex // guards the fields below
	since     map[strategy.Node]time.Time
	refetched map[strategy.Node]int64
}

// waitedSince returns when waiting for a dead node's storage location began.
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
