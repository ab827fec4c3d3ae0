package sim

import (
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// emptyView is the view of a node that is no member yet.
type emptyView struct{}

func (emptyView) Epoch() uint64                                { return 0 }
func (emptyView) IsMember() bool                               { return false }
func (emptyView) Until() time.Time                             { return time.Time{} }
func (emptyView) Owner(string) (strategy.Node, strategy.State) { return "", strategy.Unknown }
func (emptyView) Ours(string) bool                             { return false }
func (emptyView) MayFetch(string, time.Time) bool              { return false }

// A visit is a worker's way with one URL, from the look at the lease to the end of the request.
type visit struct {
	p            *process
	hold         *heldHost
	page         url
	leaseChecked moment   // when the lease was looked at
	sent         bool     // the request is
	ends         moment   // of the request, as the host sees it
	ended        bool     // it has ended, or was given up
	slipped      bool     // the process stood still between the look and the end
	onEnd        []func() // is done when it is over
}

func (v *visit) site() *site { return &v.p.w.web.hosts[v.page.host()] }

// workers are what fetches at a process.
type workers struct {
	busy         int
	queue        []*heldHost // hosts whose time has come, while all workers are busy
	visits       []*visit    // requests under way, or about to be
	visitWaiters []func()    // until visits are over
	fetched      int         // since that was asked for
	pages        int64
	rate         float64 // pages a second, lately
	scratch      []url   // room
}

// isVisiting reports whether a visit is under way to some hosts.
func (s *workers) isVisiting(of func(string) bool) bool {
	return slices.ContainsFunc(s.visits, func(v *visit) bool { return of(v.site().name) })
}

// wakeWaiters has those look again who wait until visits are over.
func (s *workers) wakeWaiters() {
	waiting := s.visitWaiters
	s.visitWaiters = nil
	for _, again := range waiting {
		again()
	}
}

// removeVisit takes a visit off the list; false if it was given up before.
func (s *workers) removeVisit(v *visit) bool {
	i, last := slices.Index(s.visits, v), len(s.visits)-1
	if i < 0 {
		return false
	}
	s.visits[i] = s.visits[last]
	s.visits = s.visits[:last]
	s.busy--
	return true
}

// retryDelay is how long a host waits that may not be asked now.
const retryDelay = time.Second

// arm gives a host its place in the order of requests, if something of it waits.
func (p *process) scheduleHost(h *heldHost) {
	if h.scheduled || h.visiting || h.waiting == 0 {
		return
	}
	h.scheduled = true
	p.after(max(0, h.nextRequest-p.w.k.now), func() {
		p.queue = append(p.queue, h)
		p.startVisits()
	})
}

// startVisits gives hosts whose time has come to workers, until all are busy: of some there is nothing to be asked any more.
func (p *process) startVisits() {
	for p.busy < p.w.cfg.Workers && len(p.queue) > 0 {
		h := p.queue[0]
		p.queue = p.queue[1:]
		p.startVisit(h)
	}
}

// startVisit has a worker take one of a host's URLs, look whether it may be asked for, and a moment later send the request.
func (p *process) startVisit(h *heldHost) {
	h.scheduled = false
	if p.state.hosts[h.host] != h || h.waiting == 0 {
		return
	}
	if !p.view.MayFetch(p.w.web.hosts[h.host].name, p.now()) {
		h.nextRequest = p.w.k.now + retryDelay
		p.scheduleHost(h)
		return
	}
	h.visiting = true
	p.busy++
	v := &visit{p: p, hold: h, page: at(h.host, lowest(h.waiting)), leaseChecked: p.w.k.now}
	p.visits = append(p.visits, v)
	p.after(p.w.k.exponential(p.w.cfg.parts.leaseGap), func() { p.request(v) })
}

// maxFetchTime is for how long a fetcher waits for a page, at most: less than hosts that move are waited for.
const maxFetchTime = 45 * time.Second

func (p *process) request(v *visit) {
	if v.ended {
		return
	}
	v.sent = true
	took := p.w.fetchTime(p.m.index, v.page.host())
	if slow := p.m.slowness * p.m.throttled; slow > 1 {
		took = min(time.Duration(float64(took)*slow), max(took, maxFetchTime))
	}
	v.ends = p.w.k.now + took
	p.w.checker.addRequest(v)
	p.after(took, func() { p.finishVisit(v) })
}

// finishVisit is the end of a request: the page is done, and its links are entered with that.
func (p *process) finishVisit(v *visit) {
	if !p.endVisit(v) {
		return
	}
	p.fetched++
	p.pages++
	p.m.visited(v, p.w.k.now)
	e := &entry{kind: entryDone, page: v.page}
	p.scratch = p.w.web.linksOf(v.page, p.scratch[:0])
	p.w.checker.coverage.addLinks(p.scratch, p.w.k.now)
	p.routeLinks(e, p.scratch)
	p.enter(e)
	p.scheduleHosts(e.links)
	p.scheduleHost(v.hold)
	p.wakeWaiters()
}

// endVisit ends a visit, and lets workers take the next hosts; false if it was given up before.
func (p *process) endVisit(v *visit) bool {
	v.ended = true
	if !p.removeVisit(v) {
		return false
	}
	v.hold.visiting = false
	v.hold.nextRequest = p.w.k.now + v.site().delay
	for _, f := range v.onEnd {
		f()
	}
	if len(p.queue) > 0 {
		p.after(0, p.startVisits)
	}
	return true
}

// cancelAtExpiry cuts requests off that are under way when the lease ends.
func (p *process) cancelAtExpiry() {
	if p.expiryScheduled {
		return
	}
	p.expiryScheduled = true
	p.after(p.untilClock(p.view.Until()), func() {
		p.expiryScheduled = false
		if p.view.Until().After(p.now()) {
			p.cancelAtExpiry()
			return
		}
		for len(p.visits) > 0 {
			v := p.visits[0]
			p.endVisit(v)
			p.w.abandon(v)
			p.scheduleHost(v.hold)
		}
		p.wakeWaiters()
	})
}

// abandon ends a request whose answer nobody reads.
func (w *world) abandon(v *visit) {
	if v.sent {
		w.checker.allowRepeat(v.page)
		v.ends = min(v.ends, w.k.now)
	}
}

// scheduleHosts gives hosts their place that have come to something.
func (p *process) scheduleHosts(links []url) {
	for _, u := range links {
		if h := p.state.hosts[u.host()]; h != nil {
			p.scheduleHost(h)
		}
	}
}

// fetchTime draws how long a host takes to answer a machine: most answer soon, some take seconds.
func (w *world) fetchTime(machine int, host int32) time.Duration {
	base := 20*time.Millisecond + time.Duration(hash(w.web.seed, 4, uint64(host),
		uint64(machine))%uint64(200*time.Millisecond))
	if w.k.chance(0.01) {
		return base + w.k.exponential(5*time.Second)
	}
	return base + w.k.exponential(50*time.Millisecond)
}
