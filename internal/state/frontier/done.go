package frontier

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// An Outcome is how a visit went, as far as its host is concerned.
type Outcome uint8

// The outcomes.
const (
	NoRequest Outcome = iota // none was made: the host owes no delay
	Answered                 // any answer but a call to slow down
	Throttled                // 429 or 503: the host is to be left alone for a while
	Failed                   // no answer
)

// A Result gives a visit back.
type Result struct {
	Outcome    Outcome
	RetryAfter time.Duration // what a Throttled answer asked for, 0 if nothing
	Took       time.Duration // by the exchange alone, without waits of this process; 0: since the visit was handed out
	Again      []Item        // items of the host that wait again: the visit's own to be retried, say
}

// Done gives a visit back. It returns for how long the host is left alone because of that.
func (f *Frontier) Done(v *Visit, r Result) (wait time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := v.host
	f.back(v)
	if r.Outcome != NoRequest {
		wait = f.judge(h, v, r)
	} else if h.next.Equal(v.set) {
		h.next = v.due // no request was made, and no other visit has set the clock since
	}
	for _, it := range r.Again {
		f.enqueueAgain(v, it)
	}
	f.place(h)
	f.shrink()
	return wait
}

// enqueueAgain puts an item of a visit back, unless the host was removed meanwhile.
func (f *Frontier) enqueueAgain(v *Visit, it Item) {
	switch {
	case v.life != v.host.life:
	case !Belongs(v.Host, it.URL):
		f.refused++
	case it.Seq == v.item.Seq && v.item.Late && !it.Late: // it stays behind
		it.Late, it.Rank = true, v.item.Rank
		f.add(v.host, &it)
	default:
		f.rankAgain(v.host, &it)
		f.enqueue(v.host, it)
	}
}

// judge sets the host's next time and its standing.
func (f *Frontier) judge(h *host, v *Visit, r Result) (wait time.Duration) {
	now := f.cfg.Now()
	wait = f.delay(h)
	h.ended = now
	switch r.Outcome {
	case Answered:
		h.failures, h.throttles = backoff{}, backoff{}
		h.doubtful = cmp.Or(r.Took, now.Sub(v.Started)) > f.cfg.SlowAfter
	case Throttled:
		h.failures = backoff{}
		h.throttles.count(v.Started, now)
		wait = max(wait, min(r.RetryAfter, f.cfg.MaxWait))
		if r.RetryAfter == 0 || h.throttles.n > 1 {
			wait = max(wait, h.throttles.wait(max(f.cfg.RetryWait, f.delay(h)), f.cfg.MaxWait))
		}
	case Failed:
		h.doubtful = true
		h.failures.count(v.Started, now)
		wait = max(wait, h.failures.wait(f.cfg.RetryWait, f.cfg.MaxWait))
	}
	if next := now.Add(wait); h.next.Equal(v.set) && f.staysFirst(h, wait) { // no other visit has set the clock since
		h.next = v.due
	} else if next.After(h.next) {
		h.next = next
	}
	if r.Outcome >= Throttled {
		f.setBacking(h, true)
	}
	return wait
}

// burst is how many visits in a row a host may have that owes no delay.
const burst = 8

// staysFirst reports whether a host that has just been visited goes before the others once more. Without a delay all
// hosts are due at all times; if they took turns for each URL, the connection to one would be gone by the time that it
// is its turn again.
func (f *Frontier) staysFirst(h *host, wait time.Duration) bool {
	if wait > 0 || f.delay(h) > 0 || h.inflight > 0 || h.row == burst-1 {
		h.row = 0
		return false
	}
	h.row++
	return true
}

// Postpone gives a visit back untouched, to be handed out again after wait.
func (f *Frontier) Postpone(v *Visit, wait time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.postpone(v, f.cfg.Now().Add(wait))
}

func (f *Frontier) postpone(v *Visit, until time.Time) {
	h := v.host
	f.back(v)
	f.enqueueAgain(v, v.Item)
	if h.next.Equal(v.set) {
		h.next = v.due
	}
	if until.After(h.next) {
		h.next = until
	}
	f.place(h)
}

// maxTake is how many items of a host Take looks at.
const maxTake = 10_000

// Take removes items that match from a host's queue and returns them. It looks at the 10,000 that go first; the caller
// meets what may match beyond them when they are handed out. It waits for the disk where they are not in memory.
func (f *Frontier) Take(key string, match func(*Item) bool) []Item {
	f.mu.Lock()
	defer f.mu.Unlock()
	h, err := f.gathered(key)
	if f.fail(err); h == nil {
		return nil
	}
	var taken []Item
	before := len(h.waiting)
	h.waiting = slices.DeleteFunc(h.waiting, func(e entry) bool {
		it, err := f.dec.item(key, &e)
		if err != nil || !match(&it) {
			return false // what cannot be read is said when its turn comes
		}
		it.Late = false
		if !f.isSuppressed(it.URL) {
			taken = append(taken, it)
		}
		f.disk.charge(h, -e.cost())
		return true
	})
	f.waiting -= before - len(h.waiting)
	h.waiting.init()
	f.release(h)
	f.signal()
	f.shrink()
	return taken
}

// Gather brings into memory what goes first at a host, as far as it can be read, so that a Take that follows has not to
// wait for the disk.
func (f *Frontier) Gather(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h, _ := f.gathered(key); h != nil {
		f.release(h)
		f.shrink()
	}
}

// gathered is a host with what goes first in memory, where it stays until release. After an error that may be less;
// there is none if nothing of a cold host can be read.
func (f *Frontier) gathered(key string) (h *host, err error) {
	err = f.paged(func() error {
		if h == nil {
			if id := f.coldID(key); id != 0 {
				if err := f.loadByID(id); err != nil {
					return err
				}
			}
			h = f.host(key)
			f.hold(h)
		}
		f.touch(h)
		return f.gather(h, maxTake)
	})
	return h, err
}

// Park keeps a host's ordinary items back until Unpark is called for the same origin: its rules are not known yet.
func (f *Frontier) Park(key, origin string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id := f.coldID(key); id != 0 {
		f.parkCold(id, origin)
		return
	}
	h := f.host(key)
	if h.parked == nil {
		h.parked = make(map[string]bool, 1)
	}
	h.parked[origin] = true
	f.place(h)
	f.shrink()
}

// Unpark lets a host's items go, unless it is parked for another origin.
func (f *Frontier) Unpark(key, origin string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id := f.coldID(key); id != 0 {
		f.unparkCold(id, origin)
		return
	}
	h := f.host(key)
	if delete(h.parked, origin); len(h.parked) == 0 {
		h.parked = nil
	}
	f.place(h)
	f.shrink()
}

// SetDelay sets the delay that a host asks for; Config.MaxDelay bounds it, and Config.Delay holds where it is longer.
func (f *Frontier) SetDelay(key string, delay time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delay = min(times(delay, f.cfg.Slices), max(f.cfg.MaxDelay, 0))
	if id := f.coldID(key); id != 0 {
		f.delayCold(id, key, delay)
		return
	}
	h := f.host(key)
	h.delay = delay
	if next := h.ended.Add(f.delay(h)); !h.ended.IsZero() && next.After(h.next) {
		h.next = next
	}
	f.place(h)
	f.shrink()
}

// Restore adds items that waited when an earlier process ended. As nobody knows when the host's last request was, it
// owes a full delay from now, and so does a host that is met for the first time meanwhile. A Ranker is asked for their
// ranks when the host is visited. Unlike Push it waits for Room.
func (f *Frontier) Restore(key string, items ...Item) {
	if f.restore(key, items) {
		f.Room(context.Background())
	}
}

// restore reports whether the disk is behind.
func (f *Frontier) restore(key string, items []Item) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.cfg.Now()
	if f.resumed.IsZero() {
		f.resumed = now
	}
	items = f.fitting(key, items)
	if id := f.coldID(key); id != 0 {
		f.putOff(id, key, now)
		f.pushCold(id, key, items)
	} else {
		h := f.host(key)
		if next := now.Add(f.delay(h)); next.After(h.next) { // a longer wait may be known from the checkpoint
			h.next = next
		}
		if h.ranks != nil {
			h.ranks.generation = ofBefore
		}
		f.pushHot(h, items)
	}
	f.shrink()
	return f.disk.isBehind()
}
