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
	"kumo/internal/content/policy"
)

// errDone ends a node whose crawl is done.
var errDone = errors.New("the crawl is done")

// A recordWatcher does what the crawl's record says: it runs or pauses the engine, and takes seeds and roots in. All of
// it but what is said to be otherwise is the loop's.
type recordWatcher struct {
	n         *Node
	record    desired.Record
	rev       uint64
	known     bool  // the record, or that there is none
	ran       bool  // this process has seen it run
	endErr    error // that the node is about to end
	chunks    map[uint64]*chunk
	received  int64        // seeds and roots that were given to the engine
	admitting atomic.Int64 // of these, not yet taken in

	kick             chan struct{}
	mu               sync.Mutex  // guards below
	newScopeSeeds    []string    // roots that the engine has found and others do not know
	sharedScopeSeeds *weburl.Set // roots in the registry
}

// A chunk is one of seeds. The seeds themselves stay in the registry, and are read there when they are taken in.
type chunk struct {
	present   bool
	admitted  bool // to the scope
	taken     bool // for good, by the node whose task it was
	admitting bool // by this one
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
	if f.rev > 0 { // or it is how things were when this node came
		for _, c := range r.Since(&f.record) {
			f.n.log.Info("the crawl is steered: "+c.What, "by", c.By, "at", c.Time.Format(time.RFC3339))
		}
	}
	settings := f.record.Settings
	f.record, f.rev = r, e.Revision
	if f.n.cfg.ApplySettings != nil && !maps.EqualFunc(settings, r.Settings, slices.Equal) {
		f.n.driver.InLane("settings", "go by the crawl's settings",
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

// look does what is to be done, whatever has changed.
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
	case f.record.State == desired.Stopping && f.ran && f.record.Why == desired.WhyLimit:
		f.end(fmt.Errorf("%w: %w", ErrStopped, policy.ErrLimit))
	case f.record.State == desired.Stopping && f.ran:
		f.end(ErrStopped)
	}
}

var _ driver.Record = (*recordWatcher)(nil)

// Seeded is the record's revision, if the crawl runs and all its seeds were taken in.
func (f *recordWatcher) Seeded() (revision uint64, ok bool) {
	return f.rev, f.record.State == desired.Running && f.allTaken()
}

// Idle reports whether the crawl runs, all seeds are in scope, and none is being taken in.
func (f *recordWatcher) Idle() bool {
	return f.record.State == desired.Running && f.admitting.Load() == 0 && f.allAdmitted()
}

// Received counts seeds and roots.
func (f *recordWatcher) Received() int64 { return f.received }

// Admitting reports whether seeds and roots are being taken in.
func (f *recordWatcher) Admitting() bool { return f.admitting.Load() > 0 }

// Finish says in the record that the crawl is done, unless that has changed since a revision.
func (f *recordWatcher) Finish(revision uint64) (write func(context.Context)) {
	r := f.record
	r.ForceState(desired.Done, "")
	return func(ctx context.Context) {
		one, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if err := (Control{Registry: f.n.cfg.Bus}).write(one, r, revision); err != nil && !errors.Is(err, bus.ErrStale) {
			f.n.log.Debug("a write is in doubt", "key", RecordKey, "err", err)
		}
	}
}

// end ends the node, a little later: others who reach the registry through this process are to hear of it, too.
func (f *recordWatcher) end(why error) {
	f.endErr = why
	f.n.tasks.Go(func(ctx context.Context) {
		if wait.For(ctx, 2*f.n.cfg.Timing.Beat) == nil {
			f.n.fail(why)
		}
	})
}

// allAdmitted reports whether all seeds are in scope. A link that is met before would be taken for one that leads away.
func (f *recordWatcher) allAdmitted() bool { return f.all(func(c *chunk) bool { return c.admitted }) }

// allTaken reports whether some node has taken each of the seeds in.
func (f *recordWatcher) allTaken() bool { return f.all(func(c *chunk) bool { return c.taken }) }

func (f *recordWatcher) all(is func(*chunk) bool) bool {
	for number := range f.record.Seeds {
		if c := f.chunks[number]; c == nil || !is(c) {
			return false
		}
	}
	return true
}

// isResponsible reports whether it is this node's task to take a chunk in: it has the greatest hash with it. If it dies before
// it is done, another has.
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

// take takes a chunk in: into scope, and where it is this node's task all of it, through the door by which links come,
// so that what is others' goes there.
func (f *recordWatcher) admit(number uint64, c *chunk, mine bool) {
	f.received++
	f.admitting.Add(1)
	lane := "seeds/" + strconv.FormatUint(number%seedLanes, 10)
	f.n.driver.InLane(lane, "take seeds in", func(ctx context.Context) error {
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

// seedLanes is how many chunks are taken in at once: each waits until it is durable, and they share their commits.
const seedLanes = 8

// read gets a chunk's seeds. It tries until ctx ends.
func (f *recordWatcher) read(ctx context.Context, number uint64) (seeds []weburl.URL, err error) {
	for again := 100 * time.Millisecond; ; again = min(2*again, 5*time.Second) {
		one, cancel := context.WithTimeout(ctx, 5*time.Second)
		e, err := f.n.cfg.Bus.Get(one, seedsKey(number))
		cancel()
		if err == nil && e.Value != nil {
			return f.parse(string(e.Value)), nil
		}
		f.n.log.Debug("seeds are read again", "chunk", number, "err", err)
		if err := wait.For(ctx, again); err != nil {
			return nil, err
		}
	}
}

func (f *recordWatcher) parse(lines string) (seeds []weburl.URL) {
	for line := range strings.SplitSeq(lines, "\n") {
		u, err := weburl.Parse(line)
		if err != nil {
			f.n.log.Warn("a seed is left out", "seed", line, "why", err)
			continue
		}
		seeds = append(seeds, u)
	}
	return seeds
}

// persist writes a key that, if it is there, is as it should be. It tries until ctx ends.
func (f *recordWatcher) persist(ctx context.Context, key string, value []byte) {
	for again := 100 * time.Millisecond; ; again = min(2*again, 5*time.Second) {
		one, cancel := context.WithTimeout(ctx, 5*time.Second)
		_, err := f.n.cfg.Bus.Put(one, key, value, 0)
		cancel()
		if err == nil || errors.Is(err, bus.ErrStale) || ctx.Err() != nil {
			return
		}
		f.n.log.Debug("a write is tried again", "key", key, "err", err)
		if wait.For(ctx, again) != nil {
			return
		}
	}
}

// addScopeSeed is told what a seed redirects to, by any goroutine.
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

// scopeSeedDelay is how long new roots are gathered before others are told.
const scopeSeedDelay = 200 * time.Millisecond

// shareScopeSeeds puts new roots into the registry until the node ends.
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
	f.n.driver.InLane("seeds", "take in where seeds redirect to", func(context.Context) error {
		defer f.admitting.Add(-1)
		for _, u := range urls {
			if err := f.n.cfg.Engine.AddScopeSeed(u); err != nil {
				return fmt.Errorf("%s: %w", u, err)
			}
		}
		return nil
	})
}
