package frontier

import (
	"container/heap"
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

// Done gives a visit back. It reports whether the host is given up: it failed, or asked to be left alone, too often in a row;
// its items are then the caller's, by Drop.
func (f *Frontier) Done(v *Visit, r Result) (giveUp bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := v.host
	f.back(v)
	if r.Outcome != NoRequest {
		f.judge(h, v, r)
	} else if h.inflight == 0 {
		h.next = v.due
	}
	for _, it := range r.Again {
		f.enqueue(h, it)
	}
	f.place(h)
	return h.failures.n >= f.cfg.Tries || h.throttles.n >= f.cfg.Throttles
}

// judge sets the host's next time and its standing.
func (f *Frontier) judge(h *host, v *Visit, r Result) {
	now := f.cfg.Now()
	wait := f.delay(h)
	switch r.Outcome {
	case Answered:
		h.failures, h.throttles = backoff{}, backoff{}
		h.doubtful = now.Sub(v.started) > f.cfg.SlowAfter
	case Throttled:
		h.failures = backoff{}
		h.throttles.count(v.started, now)
		wait = max(wait, min(r.RetryAfter, f.cfg.MaxWait))
		if r.RetryAfter == 0 || h.throttles.n > 1 {
			wait = max(wait, h.throttles.wait(max(f.cfg.RetryWait, f.delay(h)), f.cfg.MaxWait))
		}
	case Failed:
		h.doubtful = true
		h.failures.count(v.started, now)
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
	f.back(v)
	f.enqueue(v.host, v.Item)
	v.host.next = until
	f.place(v.host)
}

// Drop gives a host up: it returns the items that wait there, and Push takes no more.
func (f *Frontier) Drop(key string) []Item {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.host(key)
	h.dead = true
	delete(f.backing, h)
	return f.empty(h)
}

// Shed returns the ordinary items that wait at a host, which stays as it is.
func (f *Frontier) Shed(key string) []Item {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.empty(f.host(key))
}

func (f *Frontier) empty(h *host) []Item {
	var items []Item
	for len(h.waiting) > 0 {
		items = append(items, *heap.Pop(&h.waiting).(*Item))
	}
	f.waiting -= len(items)
	if h.dead {
		f.waiting -= len(h.robots)
		h.robots = nil
	}
	f.place(h)
	f.signal()
	return items
}

// Park keeps a host's ordinary items back until Unpark: its rules are not known yet.
func (f *Frontier) Park(key string) { f.setParked(key, true) }

// Unpark lets a host's items go.
func (f *Frontier) Unpark(key string) { f.setParked(key, false) }

func (f *Frontier) setParked(key string, parked bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.host(key)
	h.parked = parked
	f.place(h)
}

// SetDelay sets the delay that a host asks for; Config.MaxDelay bounds it, and Config.Delay holds where it is longer.
func (f *Frontier) SetDelay(key string, delay time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.host(key).delay = min(delay, f.cfg.MaxDelay)
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
