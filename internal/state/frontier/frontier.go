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

// A Frontier has the pending URLs by host. It takes the lock and calls its parts, each of which owns its state: see the
// package comment. Its methods may be called by many goroutines at once.
type Frontier struct {
	cfg    Config
	slices *item.Slices
	leader *leader

	mu         sync.Mutex // guards all below; nobody waits for the disk with it held
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
	keepOpen   bool // Next waits when there is nothing to come

	disk        *virtualizer // nil, with those below, if all stays in memory
	cold        *coldHosts
	pages       *pager
	checkpoints *checkpointer
}

// Slices returns the slices of hosts, nil if hosts are not divided.
func (f *Frontier) Slices() *item.Slices { return f.slices }

// Inspector returns the methods that only look.
func (f *Frontier) Inspector() *Inspector { return f.inspector }

// Push adds items of one host, except those that are Refused. It cannot fail, and does not wait for the disk: where the
// disk fails, or does not keep up, items stay in memory. Next returns the error, and Room waits.
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

// Restore adds items that were pending when an earlier process ended. As nobody knows when the host's last request was,
// it owes a full delay from now, and so does a host that is new meanwhile. A Ranker is asked for the items' ranks when
// the host is visited. Unlike Push it waits for Room.
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
		h.clock.postpone(now.Add(f.polite.delayOf(&h.clock))) // a longer wait may be in the checkpoint
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

// Import adds items, perhaps none, of a host that another node had, in their order, and what that node knew of the
// host: the delay that it asks for, and the time until its next visit.
func (f *Frontier) Import(key string, asked, wait time.Duration, items ...Item) {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked = f.polite.bound(asked)
	next := f.cfg.Now().Add(min(max(wait, 0), f.cfg.MaxWait))
	items = f.filter.admitted(key, items)
	for i := range items {
		f.suppressed.clear(items[i].URL) // of an item that was here before another node had the host
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

// Move moves items of a host in its queue. URLs that are not pending there are ignored. Without Config.Ranker nothing
// is moved.
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

// Suppress drops the next item of a URL instead of handing it out: a journal that is ahead of the checkpoint knows that
// the URL is done, or was excluded.
func (f *Frontier) Suppress(url string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.suppressed.add(hashURL(url))
}

// TakeMatching removes items that match from a host's queue and returns them. It looks at the first 10,000; the caller meets
// matching items beyond them when they are handed out. It waits for the disk where they are not in memory.
func (f *Frontier) TakeMatching(key string, match func(*Item) bool) []Item {
	f.mu.Lock()
	defer f.mu.Unlock()
	h, err := f.holdPrefetched(key)
	if f.worker.fail(err); h == nil {
		return nil
	}
	taken := f.dispatcher.takeMatching(h, match)
	f.bench.release(h)
	f.leader.signal()
	f.disk.shrink()
	return taken
}

// Prefetch reads the first items of a host into memory, as far as possible, so that a Take that follows need not wait for
// the disk.
func (f *Frontier) Prefetch(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h, _ := f.holdPrefetched(key); h != nil {
		f.bench.release(h)
		f.disk.shrink()
	}
}

// maxTake is how many items of a host Take looks at.
const maxTake = 10_000

// gather returns a host with its first items in memory, where it stays until release. After an error there may be fewer
// items, or no host if nothing of a cold one can be read.
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

// Remove removes all items of hosts. The hosts' times are kept, and the hosts are away until an item of theirs is added
// again. A visit under way may be given back as usual, but the items that it gives back are dropped.
//
// It does not wait for the disk: it detaches the queues, and Removed reads them. A checkpoint's Write reads them too.
func (f *Frontier) Remove(keys ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.removals.remove(keys)
	f.disk.shrink()
}

// FinishRemove reads the queues that Remove has detached, releases their room on the disk, and returns the robots.txt
// fetches that were among the items, or under way, since the last call. After an error, of a disk that cannot be read,
// it may be called again.
func (f *Frontier) FinishRemove() (robots []Item, err error) {
	if err := f.removals.readAll(); err != nil {
		return nil, err
	}
	return f.removals.take(), nil
}

// Park keeps a host's ordinary items back until Unpark is called for the same origin: its robots.txt is not known yet.
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

// Unpark releases a host's items, unless it is parked for another origin.
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

// SetDelay sets the delay that a host asks for; Config.MaxDelay bounds it, and Config.Delay applies where it is longer.
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

// SetDelays changes the delays, also of hosts that wait at present: theirs count from the end of their last request. A
// host that backs off still waits at least as long as it was to.
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

// ShareAddresses sets how many frontiers have hosts that may be at the same addresses. Turns are that many times as far
// apart, so that servers get no more requests from all together.
func (f *Frontier) ShareAddresses(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.addrs.set(f.addrs.delay, n)
}

// KeepOpen sets whether Next waits for a Push when there is nothing more to come, instead of returning ErrDrained.
func (f *Frontier) KeepOpen(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.keepOpen = on
	f.leader.signal()
}

// Next waits for a host whose time has come and hands out a URL of it. It returns ErrDrained when there is nothing more to
// come, the context's error, or that of a failing disk: nothing is lost then, but memory grows with each Push. Next may
// be called again, when there is room, say.
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

// poll hands out a visit, or locks the disk for work that is due there, or returns how long to wait.
func (f *Frontier) poll() (v *Visit, work bool, wait time.Duration, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.cfg.Now()
	f.worker.err = nil // the failed work is tried again
	f.disk.shrink()
	for {
		// A host without an item to hand out may have left work on the disk, so each round looks for it.
		work, wait, behind := f.worker.begin(now)
		switch {
		case work:
			return nil, true, 0, nil
		case behind:
			return nil, false, wait, nil // until the holder of the disk unlocks it
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

// pending is the number of items in queues.
func (f *Frontier) pending() int {
	if f.disk == nil {
		return f.bench.pending
	}
	return f.bench.pending + f.cold.pending
}

// WaitForRoom waits while the disk does not keep up with Push: it writes, or waits for the caller that does. A caller that
// pushes much without calling Next calls it now and then, as Push never waits. Where the disk fails it returns at once,
// and Next returns the error.
func (f *Frontier) WaitForRoom(ctx context.Context) { f.worker.waitForRoom(ctx) }

// Reserve asks for the visit's turn at the address of its host. Hosts that share an address take turns,
// Config.AddrDelay apart from start to start, or a multiple of it (ShareAddresses); a host alone at its address needs
// no turn, nor do its slices. When it returns false, the turn is later: the visit is over, and its item is handed out
// again at its turn.
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

// Done gives a visit back. It returns the host's wait that this causes.
func (f *Frontier) Done(v *Visit, r Result) (wait time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	wait = f.dispatcher.done(v, r, f.cfg.Now())
	f.disk.shrink()
	return wait
}

// Postpone gives a visit back without a request; its item is handed out again after wait.
func (f *Frontier) Postpone(v *Visit, wait time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dispatcher.postpone(v, f.cfg.Now().Add(wait))
}

// Iterate begins an iteration over the hosts with pending items, or visits under way, for which want is true. It calls
// want with the frontier locked.
func (f *Frontier) Iterate(want func(key string) bool) *HostIterator {
	return f.inspector.iterate(want)
}

// Cut begins a checkpoint of all that was pushed and of all visits under way. The caller sees to it that at this moment
// no item is on its way from the journal to Push. It takes a short time, and does not wait for the disk; Write does the
// work, and must be called before the next Cut.
func (f *Frontier) Cut() (*Cut, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.disk == nil {
		return nil, ErrInMemory
	}
	return f.checkpoints.cut()
}

// Checkpoint makes a checkpoint of this moment: Cut and Write in one.
func (f *Frontier) Checkpoint(note []byte) error {
	c, err := f.Cut()
	if err != nil {
		return err
	}
	return c.Write(note)
}

// Err is the disk's error since the last call of Next, nil if there was none. Nothing was lost by it, but memory may
// have grown beyond the limit.
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

// Counts summarizes the frontier.
type Counts struct {
	URLs         int // pending, without suppressed ones
	Active       int // hosts with a request under way
	Waiting      int // hosts with URLs whose time has not come, or that have no slot yet
	Backing      int // hosts that back off, after failures or at their request
	Hosts        int // ever met
	AddressQueue AddressQueue
}

// Counts returns the present counts.
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

// IsDrained reports whether no item is pending and no visit under way. moves changes when an item was pushed or a visit given
// back since an earlier call.
func (f *Frontier) IsDrained() (dry bool, moves uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.isDrained(), f.ranking.age
}

// IsStuck reports whether items are pending that will never be handed out: no visit is under way, and no host is to come,
// now or later. The items are parked then, and nobody may unpark them.
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

// Refused is how many items were not admitted, or not handed out, because their URLs cannot be fetched at their host.
func (f *Frontier) Refused() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.filter.refused
}

// Has reports whether a host was ever met.
func (f *Frontier) Has(key string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.inspector.has(key)
}

// Host returns the state of a host; false if it was never met.
func (f *Frontier) Host(key string) (HostInfo, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.inspector.host(key)
}
