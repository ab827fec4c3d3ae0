package frontier

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"kumo/internal/base/item"
)

// ErrDrained is returned by Next when no item is pending and no visit is under way.
var ErrDrained = errors.New("the frontier is empty")

// A Frontier holds the pending URLs by host. It takes the lock and calls its parts, which own their state: see the
// package comment. Its methods may be called concurrently.
type Frontier struct {
	cfg    Config
	slices *item.Slices
	leader *leader

	mu         sync.Mutex // guards all below; never held while waiting for the disk
	polite     *politeness
	addrs      *addresses
	filter     *filter
	suppressed *suppression
	ranking    *ranking
	bench      *workbench
	dispatcher *dispatcher
	removals   *removals
	worker     *diskWorker
	inspector  *Inspector
	keepOpen   bool // Next waits instead of returning ErrDrained

	disk        *virtualizer // nil, with those below, if all is in memory
	cold        *coldHosts
	pages       *pager
	checkpoints *checkpointer
}

// Slices returns the slices of hosts, nil if hosts are not divided.
func (f *Frontier) Slices() *item.Slices { return f.slices }

// Inspector returns the read-only methods.
func (f *Frontier) Inspector() *Inspector { return f.inspector }

// Push adds items of one host, except those that are Refused. It cannot fail, and does not wait for the disk. If the
// disk fails or is behind, items stay in memory; Next returns the error, and WaitForRoom waits.
func (f *Frontier) Push(key string, items ...Item) {
	f.mu.Lock()
	defer f.mu.Unlock()
	given := len(items)
	if items = f.filter.admitted(key, items); len(items) < given && len(items) == 0 {
		return
	}
	if id := f.disk.find(key); id != 0 {
		f.disk.push(id, key, items)
	} else {
		f.bench.push(f.bench.host(key), items)
	}
	f.disk.shrink()
}

// Restore adds items that were pending when an earlier process ended. The time of the host's last request is unknown,
// so the host waits its full delay from now, and so does a host that is new meanwhile. The Ranker supplies the items'
// ranks when the host is visited. Unlike Push, Restore waits like WaitForRoom.
func (f *Frontier) Restore(key string, items ...Item) {
	f.mu.Lock()
	now := f.cfg.Now()
	if f.polite.resumed.IsZero() {
		f.polite.resumed = now
	}
	items = f.filter.admitted(key, items)
	if id := f.disk.find(key); id != 0 {
		f.cold.restartDelay(id, key, now)
		f.disk.push(id, key, items)
	} else {
		h := f.bench.host(key)
		h.clock.postpone(now.Add(f.polite.delayOf(&h.clock))) // the checkpoint may contain a longer wait
		if h.queue.ranks != nil {
			h.queue.ranks.generation = generationBefore
		}
		f.bench.push(h, items)
	}
	f.disk.shrink()
	behind := f.disk.isBehind()
	f.mu.Unlock()
	if behind {
		f.WaitForRoom(context.Background())
	}
}

// Import adds items from another node in their order, with that node's data of the host: the delay that the host
// requests, and the time until its next visit. There may be no items.
func (f *Frontier) Import(key string, asked, wait time.Duration, items ...Item) {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked = f.polite.bound(asked)
	next := f.cfg.Now().Add(min(max(wait, 0), f.cfg.MaxWait))
	items = f.filter.admitted(key, items)
	for i := range items {
		f.suppressed.clear(items[i].URL) // of an item that was here before the other node had the host
	}
	if id := f.disk.find(key); id != 0 {
		f.cold.setRequestedDelay(id, key, asked)
		f.cold.clearAway(id)
		f.cold.postpone(id, next)
		f.disk.push(id, key, items)
	} else {
		h := f.bench.host(key)
		h.clock.requestedDelay, h.away = asked, false
		h.clock.postpone(next)
		f.bench.push(h, items)
	}
	f.disk.shrink()
}

// Move changes the places of a host's items in its queue. It ignores URLs that are not pending there. Without
// Config.Ranker it does nothing.
func (f *Frontier) Move(key string, moves []Move) {
	if f.cfg.Ranker == nil || len(moves) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if id := f.disk.find(key); id != 0 {
		f.disk.move(id, moves)
	} else if f.inspector.has(key) {
		h := f.bench.host(key)
		if f.ranking.move(&h.queue, moves) {
			f.worker.reads.rerankIfNeeded(h)
		}
		f.bench.place(h)
	}
	f.disk.shrink()
}

// Suppress drops the next item of a URL instead of handing it out. It is used when a journal that is newer than the
// checkpoint contains that the URL is done or excluded.
func (f *Frontier) Suppress(url string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.suppressed.add(hashURL(url))
}

// TakeMatching removes the matching items from a host's queue and returns them. It examines the first 10,000. The
// caller must check later items when they are handed out. It waits for the disk if items are not in memory.
func (f *Frontier) TakeMatching(key string, match func(*Item) bool) []Item {
	f.mu.Lock()
	defer f.mu.Unlock()
	h, err := f.holdPrefetched(key)
	if f.worker.fail(err); h == nil {
		return nil
	}
	taken := f.dispatcher.removeMatching(h, match)
	f.bench.release(h)
	f.leader.signal()
	f.disk.shrink()
	return taken
}

// Prefetch reads the first items of a host into memory as far as possible, so that a later TakeMatching need not wait
// for the disk.
func (f *Frontier) Prefetch(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h, _ := f.holdPrefetched(key); h != nil {
		f.bench.release(h)
		f.disk.shrink()
	}
}

// maxTake is the number of items of a host that TakeMatching examines.
const maxTake = 10_000

// holdPrefetched returns a host with its first items in memory, and holds it there until release. After an error there
// may be fewer items, or no host if a cold host cannot be read.
func (f *Frontier) holdPrefetched(key string) (h *host, err error) {
	err = f.pages.run(func() error {
		if h == nil {
			if id := f.disk.find(key); id != 0 {
				if err := f.disk.loadEarly(id); err != nil {
					return err
				}
			}
			h = f.bench.host(key)
			f.bench.hold(h)
		}
		return f.dispatcher.loadFront(h, maxTake)
	})
	return h, err
}

// Remove removes all items of hosts. It keeps the hosts' times, and marks the hosts as away until an item of their own
// is added. A visit under way can be returned as usual, but the items that it returns are dropped.
//
// Remove does not wait for the disk. It detaches the queues; FinishRemove, or a checkpoint's Write, reads them.
func (f *Frontier) Remove(keys ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.removals.remove(keys)
	f.disk.shrink()
}

// FinishRemove reads the queues detached by Remove and releases their space on disk. It returns the robots.txt fetches
// that were among the items, or under way, since the last call. If the disk cannot be read, it may be called again.
func (f *Frontier) FinishRemove() (robots []Item, err error) {
	if err := f.removals.readAll(); err != nil {
		return nil, err
	}
	return f.removals.drain(), nil
}

// Park holds a host's ordinary items back until Unpark is called for the same origin, because its robots.txt is not
// known yet.
func (f *Frontier) Park(key, origin string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id := f.disk.find(key); id != 0 {
		f.cold.park(id, origin)
		return
	}
	h := f.bench.host(key)
	if h.parked == nil {
		h.parked = make(map[string]bool, 1)
	}
	h.parked[origin] = true
	f.bench.place(h)
	f.disk.shrink()
}

// Unpark releases a host's items, unless the host is parked for another origin.
func (f *Frontier) Unpark(key, origin string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id := f.disk.find(key); id != 0 {
		f.cold.unpark(id, origin)
		return
	}
	h := f.bench.host(key)
	if delete(h.parked, origin); len(h.parked) == 0 {
		h.parked = nil
	}
	f.bench.place(h)
	f.disk.shrink()
}

// SetDelay sets the delay that a host requests. Config.MaxDelay bounds it. If Config.Delay is longer, that applies.
func (f *Frontier) SetDelay(key string, delay time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delay = f.polite.bound(scaleDelay(delay, f.cfg.Slices))
	if id := f.disk.find(key); id != 0 {
		f.cold.setRequestedDelay(id, key, delay)
		return
	}
	h := f.bench.host(key)
	f.polite.setRequestedDelay(&h.clock, delay)
	f.bench.place(h)
	f.disk.shrink()
}

// SetDelays changes the delays. They also apply to hosts that wait, from the end of their last request. A host that
// backs off does not wait less than before.
func (f *Frontier) SetDelays(d Delays) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.addrs.set(d.AddrDelay, f.addrs.sharers)
	if before, changed := f.polite.set(d); changed {
		f.bench.retime(before)
		if f.disk != nil {
			f.disk.retime(before)
		}
	}
	f.leader.signal()
}

// ShareAddresses sets the number of frontiers that may have hosts at the same addresses. It multiplies the time between
// turns, so that servers get no more requests in total.
func (f *Frontier) ShareAddresses(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.addrs.set(f.addrs.delay, n)
}

// KeepOpen sets whether Next waits for a Push, instead of returning ErrDrained, when no work is left.
func (f *Frontier) KeepOpen(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.keepOpen = on
	f.leader.signal()
}

// Next waits for a host that is due and hands out one of its URLs. It returns ErrDrained when no work is left, the
// context's error, or a disk error. After a disk error nothing is lost, but memory grows with each Push; Next may be
// called again, for example when there is space.
func (f *Frontier) Next(ctx context.Context) (v *Visit, err error) {
	for {
		work := false
		err := f.leader.run(ctx, func() (done bool, wait time.Duration, err error) {
			v, work, wait, err = f.poll()
			return v != nil || work, wait, err
		})
		if err != nil || !work {
			return v, err
		}
		if err := f.worker.work(); err != nil {
			return nil, err
		}
	}
}

// poll hands out a visit, or acquires the disk lock for work on disk, or returns how long to wait.
func (f *Frontier) poll() (v *Visit, work bool, wait time.Duration, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.cfg.Now()
	f.worker.err = nil // work that failed is retried
	f.disk.shrink()
	for {
		// handOut may return no visit but leave work on disk, so each round checks for work.
		work, wait, behind := f.worker.begin(now)
		switch {
		case work:
			return nil, true, 0, nil
		case behind:
			return nil, false, wait, nil // until the disk lock is released
		case f.isDrained() && f.keepOpen:
			return nil, false, time.Hour, nil
		case f.isDrained():
			return nil, false, 0, ErrDrained
		}
		h := f.bench.schedule.next(now)
		switch {
		case h == nil:
			return nil, false, wait, nil
		case h.clock.next.After(now):
			return nil, false, min(wait, h.clock.next.Sub(now)), nil
		}
		if v, err := f.dispatcher.handOut(h, now); v != nil || err != nil {
			f.worker.fail(err)
			return v, false, 0, err
		}
	}
}

func (f *Frontier) isDrained() bool { return f.pending() == 0 && f.dispatcher.inFlight == 0 }

// pending returns the number of items in queues.
func (f *Frontier) pending() int {
	if f.disk == nil {
		return f.bench.pending
	}
	return f.bench.pending + f.cold.pending
}

// WaitForRoom waits while the disk is behind. It writes, or waits for the caller that does. Since Push never waits, a
// caller that pushes many items without calling Next should call WaitForRoom now and then. If the disk fails it returns
// at once, and Next returns the error.
func (f *Frontier) WaitForRoom(ctx context.Context) { f.worker.waitForRoom(ctx) }

// Reserve reserves the visit's turn at the address of its host. Hosts that share an address take turns. The turns start
// Config.AddrDelay apart, or a multiple of it (ShareAddresses). A host alone at its address needs no turn, nor do its
// slices. If Reserve returns false, the turn is in the future: the visit is over, and its item is handed out again at
// its turn.
func (f *Frontier) Reserve(v *Visit, addr netip.Addr) bool {
	if !addr.IsValid() {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	later := f.addrs.reserve(&v.host.addr, v.host.key, addr, f.cfg.Now())
	if later.IsZero() {
		return true
	}
	f.dispatcher.postpone(v, later)
	return false
}

// Done ends a visit with a result. It returns the host's wait that follows.
func (f *Frontier) Done(v *Visit, r Result) (wait time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	wait = f.dispatcher.done(v, r, f.cfg.Now())
	f.disk.shrink()
	return wait
}

// Postpone ends a visit without a request. Its item is handed out again after wait.
func (f *Frontier) Postpone(v *Visit, wait time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dispatcher.postpone(v, f.cfg.Now().Add(wait))
}

// Iterate starts an iteration over the hosts with pending items or visits under way for which want returns true. It
// calls want with the frontier locked.
func (f *Frontier) Iterate(want func(key string) bool) *HostIterator {
	return f.inspector.iterate(want)
}

// Cut begins a checkpoint of all pushed items and all visits under way. The caller must ensure that at this moment no
// item is between the journal and Push. Cut is short and does not wait for the disk. Write does the work, and must be
// called before the next Cut.
func (f *Frontier) Cut() (*Cut, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.disk == nil {
		return nil, ErrInMemory
	}
	return f.checkpoints.cut()
}

// Checkpoint writes a checkpoint of the current state: Cut and Write in one.
func (f *Frontier) Checkpoint(note []byte) error {
	c, err := f.Cut()
	if err != nil {
		return err
	}
	return c.Write(note)
}

// Err returns the disk error since the last call of Next, nil if there was none. Nothing was lost, but memory may
// exceed the limit.
func (f *Frontier) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.worker.err
}

// Close closes the frontier's files. Changes since the last checkpoint are lost.
func (f *Frontier) Close() error {
	if f.disk == nil {
		return nil
	}
	f.worker.lock.acquire()
	defer f.worker.lock.release()
	return f.worker.writer.close()
}

// Counts contains totals of the frontier.
type Counts struct {
	URLs         int // pending URLs, without suppressed ones
	Active       int // hosts with a request under way
	Waiting      int // hosts with URLs that are not due, or that have no slot yet
	Backing      int // hosts that back off after failures, or at their request
	Hosts        int // all hosts ever seen
	AddressQueue AddressQueue
}

// Counts returns the current totals.
func (f *Frontier) Counts() Counts {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := Counts{URLs: max(0, f.pending()-f.suppressed.total), Active: f.bench.schedule.active, Backing: f.bench.backingOff,
		Hosts: f.bench.unrecorded, Waiting: f.bench.schedule.waiting(), AddressQueue: f.addrs.longestQueue(f.cfg.Now())}
	if f.disk != nil {
		c.Backing += f.cold.backingOff
		c.Hosts += int(f.cold.table.n)
		c.Waiting += f.cold.eligible + len(f.worker.reads.fronts)
	}
	c.Waiting = max(0, c.Waiting-c.Backing)
	return c
}

// IsDrained reports whether no item is pending and no visit is under way. moves changes whenever an item is pushed or a
// visit ends.
func (f *Frontier) IsDrained() (dry bool, moves uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.isDrained(), f.ranking.age
}

// IsStuck reports whether items are pending that will never be handed out: no visit is under way, and no host will
// become due. These items are parked, and possibly nobody will unpark them.
func (f *Frontier) IsStuck() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pending() == 0 || f.dispatcher.inFlight > 0 || !f.bench.schedule.isEmpty() || len(f.worker.reads.fronts) > 0 {
		return false
	}
	if f.disk == nil || f.cold.eligible == 0 {
		return true
	}
	_, some := f.disk.nextDue()
	return !some
}

// Parked returns the origins for which a host is parked, sorted.
func (f *Frontier) Parked(key string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var parked map[string]bool
	if h := f.bench.hosts[key]; h != nil {
		parked = h.parked
	} else if f.disk != nil {
		parked = f.cold.parked[f.cold.find(key)]
	}
	all := make([]string, 0, len(parked))
	for origin := range parked {
		all = append(all, origin)
	}
	slices.Sort(all)
	return all
}

// Refused returns the number of items that were not admitted, or not handed out, because their URLs cannot be fetched
// at their host.
func (f *Frontier) Refused() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.filter.refused
}

// Has reports whether the frontier has ever seen a host.
func (f *Frontier) Has(key string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.inspector.has(key)
}

// Host returns the state of a host, or false if the frontier has never seen it.
func (f *Frontier) Host(key string) (HostInfo, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.inspector.host(key)
}
