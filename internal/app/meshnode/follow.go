package meshnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
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
)

// ErrStopped means that the crawl was stopped. It also is policy.ErrLimit if the limit was the reason.
var ErrStopped = errors.New("the crawl was stopped")

// errDone ends a node when the crawl is done.
var errDone = errors.New("the crawl is done")

// The first byte of a chunk, which is followed by lines.
const (
	kindSeeds      = 's' // URLs from the user
	kindScopeSeeds = 'r' // redirect targets of seeds, which belong to the scope, too
)

const (
	seedLanes      = 8                      // chunks that are admitted concurrently, to share the engine's commits
	scopeSeedDelay = 200 * time.Millisecond // to collect new scope seeds before sharing them
	maxScopeSeeds  = 1000                   // per chunk
	limitInterval  = 3 * time.Second        // between checks of the limits of bytes and time
	endDelay       = 3 * time.Second        // so that other nodes learn of the end through this node
)

// A recordWatcher applies the crawl's record and chunks: it runs or pauses the engine, admits seeds and scope seeds,
// and ends the crawl. All nodes add all seeds and scope seeds to their scope. The node closest to a chunk's ID also
// offers its seeds to the nodes that remember their hosts; if it fails first, the next closest node does. Fields belong
// to the loop unless noted.
type recordWatcher struct {
	l             *loop
	queries       *queries
	known         atomic.Pointer[knownRecord]
	synced        chan struct{} // closed when this process has caught up with the other nodes
	chunks        map[mesh.ChunkID]*chunk
	seeds         atomic.Int64 // chunks of seeds
	taking        int
	openChunks    int          // chunks that this node has yet to admit
	received      atomic.Int64 // chunks and scope seeds passed to the engine
	dirty         bool         // update must run
	ran           bool         // this process has seen the crawl running
	resultsShared time.Time    // when all nodes last got the report of all
	endTimer      *time.Timer  // ends the node
	started       time.Time    // identifies the start of the run that runBegan belongs to
	runBegan      time.Time    // when this process saw the crawl running
	limitChecked  time.Time    // time of the last check
	counting      bool         // a count of bytes is in progress
	pageLimit     int64        // that the peer knows; negative: it has not been told

	sharedScopeSeeds *weburl.Set // known to other nodes

	mu            sync.Mutex // guards below
	newScopeSeeds []string   // found by the engine, not shared yet
	newSince      time.Time  // when the first of these was found

	// no visit that is due will be dispatched in the run that began at a time; safe for concurrent use
	dueIdle func(started time.Time) bool

	settings map[string][]string // for Config.ApplySettings; nil: unchanged
	changed  chan struct{}       // capacity 1: signals new settings
}

type knownRecord struct {
	record  desired.Record
	version uint64
}

type chunk struct {
	kind     byte
	admitted bool // to the scope, by this process
	taken    bool // this node has offered its seeds
	over     bool // known before the crawl was done, so its seeds have been offered
	taking   bool
}

func newRecordWatcher(l *loop, queries *queries, all []savedChunk, r mesh.RecordVersion) *recordWatcher {
	f := &recordWatcher{l: l, queries: queries, synced: make(chan struct{}), chunks: map[mesh.ChunkID]*chunk{},
		sharedScopeSeeds: weburl.NewSet(), dirty: true, pageLimit: -1, changed: make(chan struct{}, 1)}
	for _, c := range all {
		f.chunks[c.id] = &chunk{kind: c.kind, taken: c.taken}
		if c.kind == kindSeeds {
			f.seeds.Add(1)
		}
	}
	first, err := desired.Parse(r.Data)
	if err != nil {
		l.cfg.Log.Warn("ignoring the stored record of the crawl, which cannot be read", "by", r.By, "err", err)
		first = desired.Record{State: desired.Waiting}
	}
	f.known.Store(&knownRecord{first, r.Version})
	return f
}

func (f *recordWatcher) recordChanged(v mesh.RecordVersion) {
	f.l.store.putRecord(v)
	was := f.known.Load().record
	r, err := desired.Parse(v.Data)
	if err != nil { // from a newer kumo or a faulty node: the current record remains in effect
		f.l.msgs.warnUnreadable(v.By, fmt.Errorf("read the crawl's record: %w", err))
		r = was
	}
	f.known.Store(&knownRecord{r, v.Version})
	if r.State != was.State {
		f.l.cfg.Log.Info("the crawl is "+string(r.State), "was", was.State)
		for _, c := range f.chunks {
			c.over = c.admitted && r.State == desired.Done
		}
		if r.State == desired.Running {
			f.l.results.reset()
		}
	}
	for _, c := range r.Since(&was) {
		f.l.cfg.Log.Info("the crawl was changed: "+c.What, "by", c.By, "at", c.Time.Format(time.RFC3339))
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

// record returns a copy of the record, and its version. It is safe for concurrent use.
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

// setState changes the state. An error stops the node.
func (f *recordWatcher) setState(to func(r *desired.Record)) {
	err := f.change(func(r *desired.Record, _ uint64) error {
		to(r)
		return nil
	})
	if err != nil {
		f.l.tasks.stop(err)
	}
}

// add adds a chunk. It returns false if there are too many.
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

// markSynced is called when this process has caught up with the other nodes, or when there are none.
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

// tick performs time-based checks.
func (f *recordWatcher) tick(now time.Time) {
	m := f.l.peer.Machine()
	if !f.isSynced() && f.l.peer.Overlay().Len() == 0 && m.DetectsEnd() {
		f.markSynced()
	}
	f.shareScopeSeeds(now)
	f.shareResults(now)
	if f.l.engine.get() != nil && f.l.cfg.Limits != nil && m.DetectsEnd() && now.Sub(f.limitChecked) >= limitInterval &&
		!f.counting {
		f.limitChecked = now
		f.checkLimit()
	}
}

// update brings the engine in line with the record and the chunks.
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
	if running && (f.runBegan.IsZero() || !f.started.Equal(r.Started)) {
		f.started, f.runBegan = r.Started, time.Now()
	}
	f.setPageLimit(&r)
	e.Pause(!running || admitted < r.Seeds || !f.isSynced())
	switch {
	case running:
		f.cancelEnd()
	case r.State == desired.Done && !m.AloneSince().IsZero(): // the others ended it, including this node's share
		f.end(errDone)
	case r.State == desired.Done && (mine || !e.Idle()):
		// Seeds were added while it ended, or this node was away and has work that the others did not know of.
		if f.isSynced() && m.KnowsPlace() {
			f.l.cfg.Log.Info("the crawl is not done: this node still has work")
			f.setState(func(r *desired.Record) { r.ForceState(desired.Running, "") })
		}
	case r.State == desired.Done:
		f.end(errDone)
	case r.State == desired.Stopping && f.ran:
		if limit := r.AtLimit(); limit != nil {
			f.end(fmt.Errorf("%w: %w", ErrStopped, limit))
			return
		}
		f.end(ErrStopped)
	}
}

// end ends the node after a delay, which gives failed nodes time to return, unless all are gone: a returning node that
// finds no other would resume a finished crawl.
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

// cancelEnd cancels the end of a node because the crawl continues.
func (f *recordWatcher) cancelEnd() {
	if f.endTimer != nil {
		f.endTimer.Stop()
		f.endTimer = nil
	}
}

// admit adds a chunk to the scope and, if offers is true, offers its seeds.
func (f *recordWatcher) admit(e Engine, id mesh.ChunkID, c *chunk, offers bool) {
	c.taking = true
	f.taking++
	f.received.Add(1)
	f.l.tasks.run("admit seeds", func(ctx context.Context) error {
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
			f.l.cfg.Log.Warn("a seed is skipped: it is not a URL", "seed", line, "why", err)
			continue
		}
		all = append(all, u)
	}
	return all
}

// addScopeSeed records the redirect target of a seed. It is safe for concurrent use.
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

// shareScopeSeeds sends new scope seeds to the other nodes, once this process knows all existing ones.
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
			f.l.cfg.Log.Warn("cannot share the redirect targets of seeds with other nodes", "urls", len(part), "err", ErrTooMany)
		}
	}
}

// runs returns when the present run of the crawl started, and whether it is running. Without a folder, it always is. It
// is safe for concurrent use.
func (f *recordWatcher) runs() (started time.Time, running bool) {
	r := f.known.Load().record
	return r.Started, r.State == desired.Running && f.isSynced() || f.l.cfg.Dir == ""
}

// idle reports whether the crawl is running and nothing remains to be admitted or shared.
func (f *recordWatcher) idle() bool {
	if started, _ := f.runs(); !f.dueIdle(started) {
		return false
	}
	if f.l.cfg.Dir == "" {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known.Load().record.State == desired.Running && f.isSynced() && !f.dirty && f.openChunks == 0 &&
		f.taking == 0 &&
		len(f.newScopeSeeds) == 0
}

// allIdle is called when all nodes were idle at a version of the record.
func (f *recordWatcher) allIdle(e mesh.Ended) {
	if k := f.known.Load(); k.version == e.Version && k.record.State == desired.Running {
		f.setState(func(r *desired.Record) { r.ForceState(desired.Done, "") })
	}
}

// setPageLimit passes the page limit to the peer, before the engine may fetch anything.
func (f *recordWatcher) setPageLimit(r *desired.Record) {
	if f.l.cfg.Limits == nil {
		return
	}
	if limit := f.l.cfg.Limits(r.Settings).Pages; limit != f.pageLimit {
		f.pageLimit = limit
		f.l.step(mesh.PageLimit{Pages: limit})
	}
}

// stopAtLimit stops the crawl because n pages, bytes or seconds have reached a limit.
func (f *recordWatcher) stopAtLimit(why, unit string, n int64) {
	r := f.known.Load().record
	if r.State != desired.Running && r.State != desired.Paused {
		return
	}
	f.l.cfg.Log.Info("the crawl has reached its --"+why, unit, n)
	f.setState(func(r *desired.Record) { r.StopAtLimit(why) })
}

// checkLimit stops the crawl when the bytes of all answering and departed nodes reach a limit, or the longest time that
// any node has seen the crawl run does. Departed nodes have pages of mean size. For the limit of pages, see
// mesh.PageLimit.
func (f *recordWatcher) checkLimit() {
	r := f.known.Load().record
	limits := f.l.cfg.Limits(r.Settings)
	limits.Pages = 0
	if limits == (desired.Limits{}) || r.State != desired.Running && r.State != desired.Paused {
		return
	}
	f.counting = true
	f.queries.gather(false, func(t mesh.Tally) {
		f.counting = false
		bytes, ran := int64(0), time.Duration(0)
		if len(t.Figures) > control.SumBytes {
			present := t.Figures[control.SumPages]
			bytes = t.Figures[control.SumBytes]
			bytes += int64(float64(bytes) / float64(max(present, 1)) * float64(t.DepartedPages))
		}
		if len(t.Max) > control.MaxRunSeconds {
			ran = time.Duration(min(t.Max[control.MaxRunSeconds], math.MaxInt32)) * time.Second
		}
		switch limits.Reached(0, bytes, ran) {
		case desired.WhySize:
			f.stopAtLimit(desired.WhySize, "bytes", bytes)
		case desired.WhyTime:
			f.stopAtLimit(desired.WhyTime, "seconds", int64(ran/time.Second))
		}
	})
}

// runSeconds returns for how long this process has seen the crawl running or paused; 0 if it does neither.
func (f *recordWatcher) runSeconds() uint64 {
	r := f.known.Load().record
	if !f.ran || r.State != desired.Running && r.State != desired.Paused {
		return 0
	}
	return uint64(max(time.Since(f.runBegan).Seconds(), 0))
}
