package frontier

import (
	"container/heap"
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
	Again      []Item        // items of the host that wait again: the visit's own to be retried, say
}

// Done gives a visit back.
func (f *Frontier) Done(v *Visit, r Result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := v.host
	f.back(v)
	if r.Outcome != NoRequest {
		f.judge(h, v, r)
	} else if h.next.Equal(v.set) {
		h.next = v.due // no request was made, and no other visit has set the clock since
	}
	for _, it := range r.Again {
		f.enqueue(h, it)
	}
	f.place(h)
}

// judge sets the host's next time and its standing.
func (f *Frontier) judge(h *host, v *Visit, r Result) {
	now := f.cfg.Now()
	wait := f.delay(h)
	h.ended = now
	switch r.Outcome {
	case Answered:
		h.failures, h.throttles = backoff{}, backoff{}
		h.doubtful = now.Sub(v.Started) > f.cfg.SlowAfter
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
	if next := now.Add(wait); next.After(h.next) {
		h.next = next
	}
	if r.Outcome >= Throttled {
		f.backing[h] = struct{}{}
	}
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
	f.enqueue(h, v.Item)
	if h.next.Equal(v.set) {
		h.next = v.due
	}
	if until.After(h.next) {
		h.next = until
	}
	f.place(h)
}

// Take removes the items that match from a host's queue and returns them.
func (f *Frontier) Take(key string, match func(*Item) bool) []Item {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.host(key)
	var taken []Item
	keep := func(it *Item) bool {
		if match(it) {
			taken = append(taken, *it)
			return true
		}
		return false
	}
	h.robots = slices.DeleteFunc(h.robots, keep)
	h.waiting = slices.DeleteFunc(h.waiting, keep)
	heap.Init(&h.waiting)
	f.waiting -= len(taken)
	f.place(h)
	f.signal()
	return taken
}

// Park keeps a host's ordinary items back until Unpark is called for the same origin: its rules are not known yet.
func (f *Frontier) Park(key, origin string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.host(key)
	if h.parked == nil {
		h.parked = make(map[string]bool, 1)
	}
	h.parked[origin] = true
	f.place(h)
}

// Unpark lets a host's items go, unless it is parked for another origin.
func (f *Frontier) Unpark(key, origin string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.host(key)
	delete(h.parked, origin)
	f.place(h)
}

// SetDelay sets the delay that a host asks for; Config.MaxDelay bounds it, and Config.Delay holds where it is longer.
func (f *Frontier) SetDelay(key string, delay time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.host(key)
	h.delay = min(delay, max(f.cfg.MaxDelay, 0))
	if next := h.ended.Add(f.delay(h)); !h.ended.IsZero() && next.After(h.next) {
		h.next = next
	}
	f.place(h)
}

// Restore adds an item that waited when an earlier process ended. As nobody knows when the host's last request was, it owes a
// full delay from now.
func (f *Frontier) Restore(key string, it Item) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.host(key)
	h.next = f.cfg.Now().Add(f.delay(h))
	f.enqueue(h, it)
	f.place(h)
}
