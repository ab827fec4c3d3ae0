package frontier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

func (f *Frontier) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Next waits for a host whose time has come and hands out a URL of it. It returns ErrDry when there is nothing more to
// come, the context's error, or that of a failing disk: nothing is lost then, but memory grows with each Push. Next may
// be called again when there is room, say.
func (f *Frontier) Next(ctx context.Context) (*Visit, error) {
	for {
		v, err := f.await(ctx)
		if v != nil || err != nil {
			return v, err
		}
		if err := f.serve(); err != nil {
			return nil, err
		}
	}
}

// await waits for a visit, or for work on the disk: then it returns neither that nor an error, and the caller holds the
// disk.
func (f *Frontier) await(ctx context.Context) (*Visit, error) {
	select {
	case f.lead <- struct{}{}:
		defer func() { <-f.lead }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var timer *time.Timer // most calls have nothing to wait for
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		v, work, wait, err := f.poll()
		if v != nil || work || err != nil {
			return v, err
		}
		if timer == nil {
			timer = time.NewTimer(wait)
			defer timer.Stop()
		} else {
			timer.Reset(wait)
		}
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-f.wake:
		}
	}
}

// poll hands out a visit, or has the caller hold the disk for work that is due there, or says how long to wait.
func (f *Frontier) poll() (v *Visit, work bool, wait time.Duration, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.cfg.Now()
	f.err = nil // it may have been overcome: what failed is tried again
	f.shrink()
	for {
		// A host that has nothing to hand out may have left something to do on the disk: that is looked at anew.
		idle, work, behind := f.diskWork(now)
		switch {
		case work:
			return nil, true, 0, nil
		case behind:
			return nil, false, idle, nil // until who holds the disk gives it back
		}
		if f.waiting == 0 && f.inflight == 0 {
			if f.stays {
				return nil, false, time.Hour, nil
			}
			return nil, false, 0, ErrDry
		}
		h := f.first(now)
		switch {
		case h == nil:
			return nil, false, idle, f.err
		case h.next.After(now):
			return nil, false, min(idle, h.next.Sub(now)), f.err
		}
		if v := f.handOut(h, now); v != nil {
			return v, false, 0, nil
		}
		if f.err != nil {
			return nil, false, 0, f.err
		}
	}
}

// diskWork takes the disk if there is work; otherwise it says after which time there will be, and whether nothing may
// be handed out before who holds the disk has written more.
func (f *Frontier) diskWork(now time.Time) (idle time.Duration, work, behind bool) {
	d := f.disk
	if d == nil {
		return time.Hour, false, false
	}
	tick := d.tick(now)
	for c := range d.calendars {
		d.calendars[c].advance(tick, maxAhead.Milliseconds())
	}
	switch {
	case !d.hasWork(tick):
		return d.nextWork(now), false, false
	case f.tryDisk():
		return 0, true, false
	}
	return time.Hour, false, d.isBehind()
}

// first returns the host that is next in the classes that may have a place, nil if there is none. It is the one with the
// least next time. Of hosts whose time has come, those in a session go before inactive ones, and where hosts go by rank,
// that decides.
func (f *Frontier) first(now time.Time) *host {
	if f.ranksHosts() {
		if h := f.firstReady(now); h != nil {
			return h
		}
	}
	active, other := f.soonest(now, sound, busy, suspect), f.soonest(now, inactive)
	switch {
	case other == nil:
		return active
	case active == nil:
		return other
	case other.next.Before(active.next) && (active.in == suspect || active.next.After(now)):
		return other
	}
	return active
}

// soonest returns the host with the least next time in those of the classes that may have a place.
func (f *Frontier) soonest(now time.Time, classes ...class) (best *host) {
	for _, c := range classes {
		q := f.heaps[c]
		if len(q) > 0 && f.hasPlace(c, now) && (best == nil || q[0].next.Before(best.next)) {
			best = q[0]
		}
	}
	return best
}

func (f *Frontier) hasPlace(c class, now time.Time) bool {
	switch c {
	case sound, inactive:
		return f.active < f.cfg.Hosts
	case suspect:
		return f.active < f.cfg.Hosts && (f.doubtful < max(1, f.cfg.Hosts/4) || f.leftOver(now))
	}
	return true
}

// leftOver reports whether there is a place that no sound host wants now, nor will within the time that makes a
// suspect.
func (f *Frontier) leftOver(now time.Time) bool {
	if f.active >= f.cfg.Hosts-max(1, f.cfg.Hosts/spare) {
		return false
	}
	for _, c := range [...]class{sound, inactive} {
		q := f.heaps[c]
		if f.ready[c].Len() > 0 || len(q) > 0 && !q[0].next.After(now.Add(f.cfg.SlowAfter)) {
			return false
		}
	}
	return true
}

// spare is the part of the places, one in so many, that suspects leave free beyond their quarter.
const spare = 16

// handOut takes the host's first item; nil if it has none that is wanted, if that has yet to be read or has lost its
// place, or if the disk fails.
func (f *Frontier) handOut(h *host, now time.Time) *Visit {
	f.touch(h)
	if f.renewRanks(h) {
		f.place(h) // another host may go before it
		return nil
	}
	it := f.take(h)
	if it == nil {
		f.place(h)
		return nil
	}
	v := &Visit{Item: *it, Host: h.key, host: h, item: it, due: h.next, Started: now, life: h.life,
		suspect: h.in == suspect}
	v.Late = false // which it was when it came
	f.inflight++
	if h.inflight == 0 {
		f.active++
	}
	if v.suspect {
		f.doubtful++
	}
	h.inflight++
	if h.session++; h.session > f.cfg.Session {
		h.session = 1
	}
	f.disk.launch(h, it)
	// A second connection keeps the delay, too: from the start of the request before it, as that has not ended.
	h.next = now.Add(f.delay(h))
	v.set = h.next
	f.setBacking(h, false)
	f.place(h)
	return v
}

// take removes the item that goes first.
func (f *Frontier) take(h *host) *Item {
	for {
		if err := f.follow(h); errors.Is(err, errNotResident) {
			f.wantFront(h)
			return nil
		} else if err != nil {
			f.fail(err)
			return nil
		}
		if f.classOf(h) == idle {
			return nil
		}
		if h.movesMatter() {
			f.applyMoves(h)
			continue
		}
		e := h.waiting.pop()
		f.disk.charge(h, -e.cost())
		f.waiting--
		it, err := f.dec.item(h.key, &e)
		if err != nil {
			f.fail(fmt.Errorf("an item of %s: %w", h.key, err))
			return nil
		}
		switch {
		case !Belongs(h.key, it.URL): // an earlier version has let it in
			f.refused++
		case h.isUnderWay(&it):
		case f.hasFallen(h, e, &it):
			return nil
		case it.Robots != "" || !f.isSuppressed(it.URL):
			return &it
		}
	}
}

// isUnderWay reports whether a visit to an item's URL is under way: once is enough, however it came here twice.
func (h *host) isUnderWay(it *Item) bool {
	if h.inflight == 0 || it.Recrawl {
		return false
	}
	return slices.ContainsFunc(h.flying, func(f *Item) bool { return f.URL == it.URL && f.Robots == it.Robots })
}

// back ends a visit; the caller places the host afterwards.
func (f *Frontier) back(v *Visit) {
	h := v.host
	f.touch(h)
	f.disk.land(h, v.item)
	f.inflight--
	h.inflight--
	if h.inflight == 0 {
		f.active--
	}
	if v.suspect {
		f.doubtful--
	}
	f.seq++
	h.seq = f.seq
	f.signal()
}

func (f *Frontier) delay(h *host) time.Duration { return max(f.ownDelay(h), h.delay) }
