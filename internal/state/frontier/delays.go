package frontier

import (
	"container/heap"
	"time"
)

// Delays are what of Config can be other at any time.
type Delays struct {
	Delay     time.Duration
	AddrDelay time.Duration
	MaxDelay  time.Duration
	Overrides func(host string) HostConfig
}

// SetDelays has hosts wait otherwise from now on, those too that wait at present: what they owe is counted anew from
// the end of their last request. A host that is left alone after a failure, or at its own wish, stays so at least as
// long as it was to be.
func (f *Frontier) SetDelays(d Delays) {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.cfg
	f.cfg.Delay, f.cfg.AddrDelay, f.cfg.MaxDelay, f.cfg.Overrides = d.Delay, d.AddrDelay, d.MaxDelay, d.Overrides
	def(&f.cfg.MaxDelay, defaultMaxDelay)
	f.cfg.Delay, f.cfg.MaxDelay = times(f.cfg.Delay, f.cfg.Slices), times(f.cfg.MaxDelay, f.cfg.Slices)
	f.addrDelay = f.cfg.AddrDelay * time.Duration(max(f.sharers, 1))
	// what a host asks for beyond the old bound is not known here
	if f.cfg.Delay == was.Delay && f.cfg.MaxDelay >= was.MaxDelay && was.Overrides == nil && d.Overrides == nil {
		f.signal()
		return
	}
	f.unready()
	for _, h := range f.hosts {
		before := was.Delay
		if h.own.HasDelay {
			before = h.own.Delay
		}
		h.own = HostConfig{}
		f.override(h)
		f.retime(h, max(before, h.delay))
	}
	for c := range f.heaps {
		heap.Init(&f.heaps[c])
	}
	for _, h := range f.hosts {
		if h.in != f.classOf(h) { // it may have more connections now, or fewer
			f.place(h)
		}
	}
	if f.disk != nil {
		f.retimeCold(was.Delay)
	}
	f.signal()
}

// Has reports whether a host is known.
func (f *Frontier) Has(key string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hosts[key] != nil || f.disk != nil && f.disk.table.find(f.disk.table.identity(key)) != 0
}

// bound is how much is obeyed of a delay that a host asks for.
func (f *Frontier) bound(asked time.Duration) time.Duration {
	return min(asked, max(f.cfg.MaxDelay, 0))
}

// retime moves the time of a host in memory that was set with another delay. The heaps are not in order afterwards.
func (f *Frontier) retime(h *host, was time.Duration) {
	f.touch(h)
	h.delay = f.bound(h.delay)
	switch delay := f.delay(h); {
	case h.inflight > 0: // what is owed is counted from its end; the time that is set is that of another request beside it
		h.next = h.next.Add(min(delay-was, 0))
	case h.backing, !h.slot.IsZero() && h.slot.Equal(h.next):
		if !h.ended.IsZero() && h.next.Before(h.ended.Add(delay)) {
			h.next = h.ended.Add(delay)
		}
	case !h.ended.IsZero() && (delay > was || h.next.Equal(h.ended.Add(was))):
		h.next = h.ended.Add(delay)
	}
}

// retimeCold is retime for all hosts that are not in memory. If they are due sooner now their buckets are read, one
// after the other, and laid where their times are; if later, they are put off when their buckets are read.
func (f *Frontier) retimeCold(was time.Duration) {
	d := f.disk
	sooner := false
	for id := uint32(1); id <= d.table.n; id++ {
		r := d.table.at(id)
		if r.is(isHot) || r.delay&hasOwnDelay != 0 { // it goes by its own when it comes into memory
			continue
		}
		before := max(was, r.requestedDelay())
		wish := f.bound(r.requestedDelay())
		more := int64((max(f.cfg.Delay, wish) - before) / time.Millisecond)
		s := unpack(r.state)
		if more == 0 && wish == r.requestedDelay() || s.next == 0 {
			continue
		}
		r = f.changed(id)
		r.setRequestedDelay(wish, r.away())
		if more < 0 && s.flags&(isBacking|hasTurn) != 0 {
			continue
		}
		s.next = max(s.next+more, 1)
		r.state = s.pack()
		sooner = sooner || more < 0
	}
	if !sooner {
		return
	}
	for c := range d.calendars {
		d.calendars[c].hurry()
	}
}

// hurry has all buckets read as soon as there is room for what they have.
func (c *calendar) hurry() {
	for _, e := range c.early {
		c.due = append(c.due, e.bucket)
	}
	for _, s := range c.slots {
		c.due = append(c.due, s.buckets...)
	}
	c.early, c.slots, c.look = nil, nil, 0
}
