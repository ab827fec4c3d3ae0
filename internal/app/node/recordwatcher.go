package node

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"kumo/internal/base/wait"
	"kumo/internal/base/weburl"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/member/driver"
	"kumo/internal/cluster/strategy"
)

// errDone ends a node when the crawl is done.
var errDone = errors.New("the crawl is done")

// A recordWatcher applies the crawl's record: it runs or pauses the engine, and admits seeds and scope seeds. Fields
// belong to the loop unless noted.
type recordWatcher struct {
	n         *Node
	record    desired.Record
	rev       uint64
	known     bool  // the record is known, or known not to exist
	ran       bool  // this process has seen the crawl running
	endErr    error // the node is about to end for this reason
	chunks    map[uint64]*chunk
	received  int64        // seeds and scope seeds passed to the engine
	admitting atomic.Int64 // of these, not yet admitted

	kick             chan struct{}
	mu               sync.Mutex  // guards below
	newScopeSeeds    []string    // found by the engine, not shared yet
	sharedScopeSeeds *weburl.Set // in the registry
}

// A chunk is a chunk of seeds. The seeds stay in the registry, from which they are read when they are admitted.
type chunk struct {
	present   bool
	admitted  bool // to the scope
	taken     bool // the responsible node has durably enqueued them
	admitting bool // by this node
}

func newRecordWatcher(n *Node) *recordWatcher {
	return &recordWatcher{n: n, record: desired.Record{State: desired.Waiting}, chunks: map[uint64]*chunk{},
		kick: make(chan struct{}, 1), sharedScopeSeeds: weburl.NewSet()}
}

func (f *recordWatcher) start() {
	f.n.cfg.Engine.Pause(true)
	follow := func(key string, synced func(), told func(bus.Entry)) {
		f.n.tasks.Go(func(ctx context.Context) {
			f.n.watchKey(ctx, key, func() { f.n.call(ctx, synced) }, func(e bus.Entry) { f.n.call(ctx, func() { told(e) }) })
		})
	}
	follow(RecordKey, func() { f.known = true; f.update() }, f.recordChanged)
	follow(seedsPrefix, func() {}, f.seedsChanged)
	follow(scopeSeedsPrefix, func() {}, f.scopeSeedsChanged)
	follow(DrainKey(f.n.self), func() {}, func(e bus.Entry) {
		if e.Value != nil && e.Key == DrainKey(f.n.self) && f.n.cfg.Drain != nil {
			f.n.log.Info("this node was asked to leave", "by", string(e.Value))
			f.n.cfg.Drain()
		}
	})
	f.n.tasks.Go(f.shareScopeSeeds)
}

func (f *recordWatcher) recordChanged(e bus.Entry) {
	if e.Revision <= f.rev {
		return
	}
	r, err := desired.Parse(e.Value)
	if err != nil {
		f.n.fail(err)
		return
	}
	if r.State != f.record.State {
		f.n.log.Info("the crawl is "+string(r.State), "was", f.record.State)
	}
	if f.rev > 0 { // the first record is not a change
		for _, c := range r.Since(&f.record) {
			f.n.log.Info("the crawl was changed: "+c.What, "by", c.By, "at", c.Time.Format(time.RFC3339))
		}
	}
	settings := f.record.Settings
	f.record, f.rev = r, e.Revision
	if f.n.cfg.ApplySettings != nil && !maps.EqualFunc(settings, r.Settings, slices.Equal) {
		f.n.driver.InLane("settings", "apply the crawl's settings",
			func(context.Context) error { f.n.cfg.ApplySettings(r.Settings); return nil })
	}
	f.update()
}

func (f *recordWatcher) seedsChanged(e bus.Entry) {
	name, taken := strings.CutSuffix(strings.TrimPrefix(e.Key, seedsPrefix), takenSuffix)
	number, err := strconv.ParseUint(name, 10, 64)
	if err != nil || e.Value == nil {
		return
	}
	c := f.chunks[number]
	if c == nil {
		c = new(chunk)
		f.chunks[number] = c
	}
	if taken {
		c.taken = true
	} else {
		c.present = true
	}
	f.update()
}

// update brings the engine in line with the record and the chunks.
func (f *recordWatcher) update() {
	for number, c := range f.chunks {
		mine := !c.taken && f.isResponsible(number)
		if c.present && !c.admitting && (!c.admitted || mine) {
			c.admitting = true
			f.admit(number, c, mine)
		}
	}
	if !f.known || f.endErr != nil {
		return
	}
	running := f.record.State == desired.Running
	f.ran = f.ran || running
	f.n.cfg.Engine.Pause(!running || !f.allAdmitted())
	switch {
	case f.record.State == desired.Done:
		f.end(errDone)
		f.n.cfg.Engine.Finish()
	case f.record.State == desired.Stopping && f.ran:
		if limit := f.record.AtLimit(); limit != nil {
			f.end(fmt.Errorf("%w: %w", ErrStopped, limit))
			return
		}
		f.end(ErrStopped)
	}
}

var _ driver.Record = (*recordWatcher)(nil)

// Seeded returns the record's revision if the crawl is running and all its seeds were enqueued.
func (f *recordWatcher) Seeded() (revision uint64, ok bool) {
	return f.rev, f.record.State == desired.Running && f.allTaken()
}

// Idle reports whether the crawl is running, all seeds are in scope, and none is being admitted.
func (f *recordWatcher) Idle() bool {
	return f.record.State == desired.Running && f.admitting.Load() == 0 && f.allAdmitted()
}

// Received counts seeds and scope seeds.
func (f *recordWatcher) Received() int64 { return f.received }

// Admitting reports whether seeds or scope seeds are being admitted.
func (f *recordWatcher) Admitting() bool { return f.admitting.Load() > 0 }

// Finish returns a function that marks the crawl as done in the record, unless the record has changed since the
// revision.
func (f *recordWatcher) Finish(revision uint64) (write func(context.Context)) {
	r := f.record
	r.ForceState(desired.Done, "")
	return func(ctx context.Context) {
		one, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if err := (Control{Registry: f.n.cfg.Bus}).write(one, r, revision); err != nil && !errors.Is(err, bus.ErrStale) {
			f.n.log.Debug("the result of a write is unknown", "key", RecordKey, "err", err)
		}
	}
}

// end ends the node after a delay, so that nodes that reach the registry through this process learn of the end, too.
func (f *recordWatcher) end(why error) {
	f.endErr = why
	f.n.tasks.Go(func(ctx context.Context) {
		if wait.For(ctx, 2*f.n.cfg.Timing.Beat) == nil {
			f.n.fail(why)
		}
	})
}

// allAdmitted reports whether all seeds are in scope. Links found earlier could be mistaken for links out of scope.
func (f *recordWatcher) allAdmitted() bool { return f.all(func(c *chunk) bool { return c.admitted }) }

// allTaken reports whether all chunks of seeds were enqueued by some node.
func (f *recordWatcher) allTaken() bool { return f.all(func(c *chunk) bool { return c.taken }) }

func (f *recordWatcher) all(is func(*chunk) bool) bool {
	for number := range f.record.Seeds {
		if c := f.chunks[number]; c == nil || !is(c) {
			return false
		}
	}
	return true
}

// isResponsible reports whether this node should enqueue the seeds of a chunk: the member with the greatest hash does.
// If it fails before, another member becomes responsible.
func (f *recordWatcher) isResponsible(number uint64) bool {
	if !f.n.cfg.Router.Member() {
		return false
	}
	key := seedsKey(number)
	hash := func(m strategy.Member) uint64 { return xxhash.Sum64String(string(m.Node) + "\x00" + key) }
	taker := slices.MaxFunc(f.n.cfg.Member.Members().Members, func(a, b strategy.Member) int {
		return cmp.Compare(hash(a), hash(b))
	})
	return taker.Node == f.n.self
}

// admit adds a chunk to the scope. The responsible node also enqueues its seeds, like links, so that those of other
// nodes' hosts are sent there.
func (f *recordWatcher) admit(number uint64, c *chunk, mine bool) {
	f.received++
	f.admitting.Add(1)
	lane := "seeds/" + strconv.FormatUint(number%seedLanes, 10)
	f.n.driver.InLane(lane, "admit seeds", func(ctx context.Context) error {
		defer f.admitting.Add(-1)
		seeds, err := f.read(ctx, number)
		if err != nil {
			return err
		}
		if err := f.n.cfg.Engine.AddSeeds(ctx, seeds, func(string) bool { return mine }); err != nil {
			return err
		}
		if mine {
			f.persist(ctx, seedsKey(number)+takenSuffix, []byte(f.n.self))
		}
		f.n.tasks.Go(func(ctx context.Context) {
			f.n.call(ctx, func() {
				c.admitted, c.admitting, c.taken = true, false, c.taken || mine
				f.update()
			})
		})
		return nil
	})
}

// seedLanes is the number of chunks that are admitted concurrently, so that they share the commits for which they wait.
const seedLanes = 8

// read reads a chunk's seeds, with retries until ctx ends.
func (f *recordWatcher) read(ctx context.Context, number uint64) (seeds []weburl.URL, err error) {
	for again := 100 * time.Millisecond; ; again = min(2*again, 5*time.Second) {
		one, cancel := context.WithTimeout(ctx, 5*time.Second)
		e, err := f.n.cfg.Bus.Get(one, seedsKey(number))
		cancel()
		if err == nil && e.Value != nil {
			return f.parse(string(e.Value)), nil
		}
		f.n.log.Debug("retrying to read seeds", "chunk", number, "err", err)
		if err := wait.For(ctx, again); err != nil {
			return nil, err
		}
	}
}

func (f *recordWatcher) parse(lines string) (seeds []weburl.URL) {
	for line := range strings.SplitSeq(lines, "\n") {
		u, err := weburl.Parse(line)
		if err != nil {
			f.n.log.Warn("a seed is skipped: it is not a URL", "seed", line, "why", err)
			continue
		}
		seeds = append(seeds, u)
	}
	return seeds
}

// persist creates a key; an existing one already has the right value. It retries until ctx ends.
func (f *recordWatcher) persist(ctx context.Context, key string, value []byte) {
	for again := 100 * time.Millisecond; ; again = min(2*again, 5*time.Second) {
		one, cancel := context.WithTimeout(ctx, 5*time.Second)
		_, err := f.n.cfg.Bus.Put(one, key, value, 0)
		cancel()
		if err == nil || errors.Is(err, bus.ErrStale) || ctx.Err() != nil {
			return
		}
		f.n.log.Debug("retrying a write", "key", key, "err", err)
		if wait.For(ctx, again) != nil {
			return
		}
	}
}

// addScopeSeed records the redirect target of a seed. It is safe for concurrent use.
func (f *recordWatcher) addScopeSeed(url string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.sharedScopeSeeds.Add(url) {
		return
	}
	f.newScopeSeeds = append(f.newScopeSeeds, url)
	f.admitting.Add(1)
	wait.Wake(f.kick)
}

// scopeSeedDelay is the time to collect new scope seeds before sharing them.
const scopeSeedDelay = 200 * time.Millisecond

// shareScopeSeeds writes new scope seeds to the registry until the node ends.
func (f *recordWatcher) shareScopeSeeds(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.kick:
		}
		if wait.For(ctx, scopeSeedDelay) != nil {
			return
		}
		f.mu.Lock()
		news := f.newScopeSeeds[:min(len(f.newScopeSeeds), 1000)]
		if f.newScopeSeeds = f.newScopeSeeds[len(news):]; len(f.newScopeSeeds) > 0 {
			wait.Wake(f.kick)
		}
		f.mu.Unlock()
		lines := strings.Join(slices.Sorted(slices.Values(news)), "\n")
		sum := sha256.Sum256([]byte(lines))
		f.persist(ctx, scopeSeedsPrefix+hex.EncodeToString(sum[:12]), []byte(lines))
		f.admitting.Add(-int64(len(news)))
	}
}

func (f *recordWatcher) scopeSeedsChanged(e bus.Entry) {
	var urls []weburl.URL
	f.mu.Lock()
	for line := range strings.SplitSeq(string(e.Value), "\n") {
		if line == "" || f.sharedScopeSeeds.Has(line) {
			continue
		}
		if u, err := weburl.Parse(line); err == nil {
			f.sharedScopeSeeds.Add(line)
			urls = append(urls, u)
		}
	}
	f.mu.Unlock()
	if len(urls) == 0 {
		return
	}
	f.received++
	f.admitting.Add(1)
	f.n.driver.InLane("seeds", "admit the redirect targets of seeds", func(context.Context) error {
		defer f.admitting.Add(-1)
		for _, u := range urls {
			if err := f.n.cfg.Engine.AddScopeSeed(u); err != nil {
				return fmt.Errorf("%s: %w", u, err)
			}
		}
		return nil
	})
}
