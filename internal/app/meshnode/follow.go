package meshnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/app/meshnode/control"
	"kumo/internal/base/wait"
	"kumo/internal/base/weburl"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/content/policy"
)

// ErrStopped says that the crawl was stopped. It is policy.ErrLimit, too, if it was because of its limit.
var ErrStopped = errors.New("the crawl was stopped")

// errDone ends a node whose crawl is done.
var errDone = errors.New("the crawl is done")

// A chunk is lines, behind a byte that says what they are.
const (
	kindSeeds      = 's' // URLs that a person gave
	kindScopeSeeds = 'r' // URLs to which seeds redirect: the scope has them, too
)

const (
	seedLanes      = 8                      // chunks that are taken in at once: they share the engine's commits
	scopeSeedDelay = 200 * time.Millisecond // for which new roots are gathered before others are told
	maxScopeSeeds  = 1000                   // of a chunk
	limitInterval  = 3 * time.Second        // between two looks whether the crawl has its pages
	endDelay       = 3 * time.Second        // until a node ends whose crawl has: others are to hear of it by way of this one
)

// A follower does what the crawl's record and chunks ask for: it runs or pauses the engine, takes seeds and roots in,
// and ends the crawl. All nodes admit all seeds and roots to their scope; the seeds of a chunk are offered, to who
// remembers their hosts, by the node closest to the chunk's id. If that one is gone before, the next does it again.
// What is not said to be otherwise is the loop's.
type recordWatcher struct {
	l             *loop
	queries       *queries
	known         atomic.Pointer[knownRecord]
	synced        chan struct{} // closed when this process has heard what it has missed
	chunks        map[mesh.ChunkID]*chunk
	seeds         atomic.Int64 // chunks of seeds
	taking        int
	openChunks    int          // chunks that wait for this node to take them in
	received      atomic.Int64 // chunks and roots that were given to the engine
	dirty         bool         // the follower must look again
	ran           bool         // this process has seen the crawl run
	endTimer      *time.Timer  // the node ends when it fires
	limitChecked  time.Time    // for the limit
	countingPages bool         // the pages are being counted

	sharedScopeSeeds *weburl.Set // roots that others know

	mu            sync.Mutex // guards below
	newScopeSeeds []string   // roots that the engine has found and others do not know
	newSince      time.Time  // when the first of these came

	settings map[string][]string // that Settle is to be told of; nil: none
	changed  chan struct{}       // has room for one word that there are some
}

type knownRecord struct {
	record  desired.Record
	version uint64
}

type chunk struct {
	kind     byte
	admitted bool // to the scope, by this process
	taken    bool // by this node: its seeds have been offered
	over     bool // the crawl is done, and this node knew the chunk before: whoever was to offer its seeds has
	taking   bool
}

func newRecordWatcher(l *loop, queries *queries, all []savedChunk, r mesh.RecordVersion) *recordWatcher {
	f := &recordWatcher{l: l, queries: queries, synced: make(chan struct{}), chunks: map[mesh.ChunkID]*chunk{},
		sharedScopeSeeds: weburl.NewSet(), dirty: true, changed: make(chan struct{}, 1)}
	for _, c := range all {
		f.chunks[c.id] = &chunk{kind: c.kind, taken: c.taken}
		if c.kind == kindSeeds {
			f.seeds.Add(1)
		}
	}
	first, err := desired.Parse(r.Data)
	if err != nil {
		l.cfg.Log.Warn("the version of the crawl's record that was kept cannot be read", "by", r.By, "err", err)
		first = desired.Record{State: desired.Waiting}
	}
	f.known.Store(&knownRecord{first, r.Version})
	return f
}

func (f *recordWatcher) recordChanged(v mesh.RecordVersion) {
	f.l.store.putRecord(v)
	was := f.known.Load().record
	r, err := desired.Parse(v.Data)
	if err != nil { // a newer kumo's, or not a node's that means well: what is known goes on to hold
		f.l.msgs.warnUnreadable(v.By, fmt.Errorf("read the crawl's record: %w", err))
		r = was
	}
	f.known.Store(&knownRecord{r, v.Version})
	if r.State != was.State {
		f.l.cfg.Log.Info("the crawl is "+string(r.State), "was", was.State)
		for _, c := range f.chunks {
			c.over = c.admitted && r.State == desired.Done
		}
	}
	for _, c := range r.Since(&was) {
		f.l.cfg.Log.Info("the crawl is steered: "+c.What, "by", c.By, "at", c.Time.Format(time.RFC3339))
	}
	if f.l.cfg.ApplySettings != nil && !maps.EqualFunc(was.Settings, r.Settings, slices.Equal) {
		f.mu.Lock()
		f.settings = cloneSettings(r.Settings)
		f.mu.Unlock()
		wait.Wake(f.changed)
	}
	if f.l.cfg.Changed != nil {
		f.l.cfg.Changed()
	}
	f.dirty = true
}

func cloneSettings(all map[string][]string) map[string][]string {
	all = maps.Clone(all)
	for k, v := range all {
		all[k] = slices.Clone(v)
	}
	return all
}

func (f *recordWatcher) applySettings(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.changed:
		}
		f.mu.Lock()
		all := f.settings
		f.settings = nil
		f.mu.Unlock()
		if all != nil {
			f.l.cfg.ApplySettings(all)
		}
	}
}

// record returns a copy of the record, and its version. Any goroutine may call it.
func (f *recordWatcher) record() (desired.Record, uint64) {
	k := f.known.Load()
	r := k.record
	r.Settings = cloneSettings(r.Settings)
	return r, k.version
}

func (f *recordWatcher) change(to func(r *desired.Record, version uint64) error) error {
	r, version := f.record()
	if err := to(&r, version); err != nil {
		return err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f.l.step(mesh.Change{Data: data})
	return nil
}

// setState changes the state; there is always a way.
func (f *recordWatcher) setState(to func(r *desired.Record)) {
	err := f.change(func(r *desired.Record, _ uint64) error {
		to(r)
		return nil
	})
	if err != nil {
		f.l.tasks.stop(err)
	}
}

// add adds a chunk. It returns false if there may be no more.
func (f *recordWatcher) add(kind byte, lines string) bool {
	data := append([]byte{kind}, lines...)
	f.l.step(mesh.Add{Data: data})
	return f.chunks[mesh.ChunkIDOf(data)] != nil
}

func (f *recordWatcher) added(data []byte) {
	id := mesh.ChunkIDOf(data)
	f.l.store.putChunk(id, data)
	if f.chunks[id] = (&chunk{kind: data[0]}); data[0] == kindSeeds {
		f.seeds.Add(1)
	}
	f.dirty = true
}

// markSynced is told that this process has heard what it has missed, or that nobody is there who could know.
func (f *recordWatcher) markSynced() {
	select {
	case <-f.synced:
	default:
		close(f.synced)
		f.dirty = true
	}
}

func (f *recordWatcher) isSynced() bool {
	select {
	case <-f.synced:
		return true
	default:
		return false
	}
}

// tick looks for what comes with time alone.
func (f *recordWatcher) tick(now time.Time) {
	m := f.l.peer.Machine()
	if !f.isSynced() && f.l.peer.Overlay().Len() == 0 && m.DetectsEnd() {
		f.markSynced()
	}
	f.shareScopeSeeds(now)
	if f.l.engine.get() != nil && f.l.cfg.Limit != nil && m.DetectsEnd() && now.Sub(f.limitChecked) >= limitInterval &&
		!f.countingPages {
		f.limitChecked = now
		f.checkLimit()
	}
}

// update does what is to be done, whatever has changed.
func (f *recordWatcher) update() {
	f.dirty = false
	e, m := f.l.engine.get(), f.l.peer.Machine()
	if e == nil || f.l.cfg.Dir == "" {
		return
	}
	f.openChunks = 0
	admitted, mine := uint64(0), false
	for id, c := range f.chunks {
		offers := c.kind == kindSeeds && !c.taken && !c.over && m.Closest(id)
		mine = mine || offers
		if c.kind == kindSeeds && c.admitted {
			admitted++
		}
		if c.admitted && !offers {
			continue
		}
		f.openChunks++
		if !c.taking && f.taking < seedLanes {
			f.admit(e, id, c, offers)
		}
	}
	r := f.known.Load().record
	running := r.State == desired.Running
	f.ran = f.ran || running
	e.Pause(!running || admitted < r.Seeds || !f.isSynced())
	switch {
	case running:
		f.cancelEnd()
	case r.State == desired.Done && !m.AloneSince().IsZero(): // the others have ended it, what this node had to do among it
		f.end(errDone)
	case r.State == desired.Done && (mine || !e.Idle()):
		// seeds came while it ended, or this node was away and has something that the others did not know of
		if f.isSynced() && m.KnowsPlace() {
			f.l.cfg.Log.Info("the crawl is not done: this node has something to do")
			f.setState(func(r *desired.Record) { r.ForceState(desired.Running, "") })
		}
	case r.State == desired.Done:
		f.end(errDone)
	case r.State == desired.Stopping && f.ran && r.Why == desired.WhyLimit:
		f.end(fmt.Errorf("%w: %w", ErrStopped, policy.ErrLimit))
	case r.State == desired.Stopping && f.ran:
		f.end(ErrStopped)
	}
}

// end ends the node, a little later, and not before those who died lately had time to come back, unless they all have
// gone: who finds nobody goes on with a crawl that is done.
func (f *recordWatcher) end(why error) {
	if f.endTimer != nil {
		return
	}
	after, m := endDelay, f.l.peer.Machine()
	if m.AloneSince().IsZero() {
		after = max(after, f.l.until(m.AwaitedUntil()))
	}
	var t *time.Timer
	t = time.AfterFunc(after, func() {
		f.l.inbox.post(func() {
			if f.endTimer != t {
				return
			}
			if errors.Is(why, errDone) {
				f.l.engine.get().Finish()
			}
			f.l.tasks.stop(why)
		})
	})
	f.endTimer = t
}

// cancelEnd lets a node go on whose crawl goes on after all.
func (f *recordWatcher) cancelEnd() {
	if f.endTimer != nil {
		f.endTimer.Stop()
		f.endTimer = nil
	}
}

// take takes a chunk in: into scope, and if this node is to offer its seeds these, too.
func (f *recordWatcher) admit(e Engine, id mesh.ChunkID, c *chunk, offers bool) {
	c.taking = true
	f.taking++
	f.received.Add(1)
	f.l.tasks.run("take seeds in", func(ctx context.Context) error {
		data, err := f.l.store.chunk(id)
		if err != nil {
			return err
		}
		urls := f.parse(string(data[1:]))
		switch c.kind {
		case kindSeeds:
			err = e.AddSeeds(ctx, urls, func(string) bool { return offers })
		case kindScopeSeeds:
			for _, u := range urls {
				f.sharedScopeSeeds.Add(u.String())
				if err = e.AddScopeSeed(u); err != nil {
					break
				}
			}
		}
		if err != nil {
			return err
		}
		f.received.Add(1)
		if offers {
			f.l.store.putTaken(id)
		}
		f.l.inbox.post(func() {
			c.admitted, c.taking, c.taken = true, false, c.taken || offers
			f.taking--
			f.dirty = true
		})
		return nil
	})
}

func (f *recordWatcher) parse(lines string) (all []weburl.URL) {
	for line := range strings.SplitSeq(lines, "\n") {
		u, err := weburl.Parse(line)
		if err != nil {
			f.l.cfg.Log.Warn("a seed is left out", "seed", line, "why", err)
			continue
		}
		all = append(all, u)
	}
	return all
}

// addScopeSeed is told what a seed redirects to, by any goroutine.
func (f *recordWatcher) addScopeSeed(url string) {
	if f.sharedScopeSeeds.Has(url) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.newScopeSeeds) == 0 {
		f.newSince = time.Now()
	}
	f.newScopeSeeds = append(f.newScopeSeeds, url)
}

// shareScopeSeeds tells others of new roots, once this process knows which are new.
func (f *recordWatcher) shareScopeSeeds(now time.Time) {
	if f.openChunks > 0 || f.dirty {
		return
	}
	f.mu.Lock()
	if len(f.newScopeSeeds) == 0 || now.Sub(f.newSince) < scopeSeedDelay {
		f.mu.Unlock()
		return
	}
	news := f.newScopeSeeds
	f.newScopeSeeds = nil
	f.mu.Unlock()
	news = slices.DeleteFunc(news, func(u string) bool { return !f.sharedScopeSeeds.Add(u) })
	slices.Sort(news)
	for part := range slices.Chunk(news, maxScopeSeeds) {
		if !f.add(kindScopeSeeds, strings.Join(part, "\n")) {
			f.l.cfg.Log.Warn("where seeds redirect to stays unknown to other nodes", "urls", len(part), "err", ErrTooMany)
		}
	}
}

// idle reports whether the crawl runs, and nothing is left to be taken in.
func (f *recordWatcher) idle() bool {
	if f.l.cfg.Dir == "" {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known.Load().record.State == desired.Running && f.isSynced() && !f.dirty && f.openChunks == 0 &&
		f.taking == 0 &&
		len(f.newScopeSeeds) == 0
}

// allIdle is told that all nodes have nothing to do under a version of the record.
func (f *recordWatcher) allIdle(e mesh.Ended) {
	if k := f.known.Load(); k.version == e.Version && k.record.State == desired.Running {
		f.setState(func(r *desired.Record) { r.ForceState(desired.Done, "") })
	}
}

// checkLimit stops the crawl if it has its pages: those of the nodes that answer, and of those that have gone.
func (f *recordWatcher) checkLimit() {
	limit := f.l.cfg.Limit(f.known.Load().record.Settings)
	if limit <= 0 || f.known.Load().record.State != desired.Running {
		return
	}
	f.countingPages = true
	f.queries.gather(false, func(t mesh.Tally) {
		f.countingPages = false
		pages := t.DepartedPages
		if len(t.Figures) > control.SumPages {
			pages += t.Figures[control.SumPages]
		}
		if pages < limit {
			return
		}
		f.l.cfg.Log.Info("the crawl has its pages", "pages", pages, "limit", limit)
		f.setState((*desired.Record).StopAtLimit)
	})
}
