package sim

import (
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// emptyView is the view of a node that is not a member yet.
type emptyView struct{}

func (emptyView) Epoch() uint64                                { return 0 }
func (emptyView) IsMember() bool                               { return false }
func (emptyView) Until() time.Time                             { return time.Time{} }
func (emptyView) Owner(string) (strategy.Node, strategy.State) { return "", strategy.Unknown }
func (emptyView) Ours(string) bool                             { return false }
func (emptyView) MayFetch(string, time.Time) bool              { return false }

// A visit is a worker's work on one URL, from the check of the lease to the end of the request.
type visit struct {
	p            *process
	hold         *heldHost
	page         url
	leaseChecked moment   // when the lease was checked
	sent         bool     // the request was sent
	ends         moment   // end of the request, as the host sees it
	ended        bool     // finished or abandoned
	slipped      bool     // the process was paused between the check and the end
	onEnd        []func() // called at the end
}

func (v *visit) site() *site { return &v.p.w.web.hosts[v.page.host()] }

// workers are the workers of a process.
type workers struct {
	busy         int
	queue        []*heldHost // hosts whose time has come, while all workers are busy
	visits       []*visit    // in flight or about to be sent
	visitWaiters []func()    // called when visits end
	fetched      int         // since the last load report
	pages        int64
	rate         float64 // recent pages per second
	scratch      []url   // buffer
}

// isVisiting reports whether a visit to one of the selected hosts is in progress.
func (s *workers) isVisiting(of func(string) bool) bool {
	return slices.ContainsFunc(s.visits, func(v *visit) bool { return of(v.site().name) })
}

// wakeWaiters calls the functions that wait for visits to end.
func (s *workers) wakeWaiters() {
	waiting := s.visitWaiters
	s.visitWaiters = nil
	for _, again := range waiting {
		again()
	}
}

// removeVisit removes a visit; false if it was abandoned before.
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

// retryDelay is when a host that may not be fetched from now is tried again.
const retryDelay = time.Second

// scheduleHost schedules the host's next request if it has pending pages.
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

// startVisits gives queued hosts to free workers.
func (p *process) startVisits() {
	for p.busy < p.w.cfg.Workers && len(p.queue) > 0 {
		h := p.queue[0]
		p.queue = p.queue[1:]
		p.startVisit(h)
	}
}

// startVisit lets a worker take a page of a host: it checks that the node may fetch it, and sends the request a moment
// later.
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

// maxFetchTime bounds a fetch. It is shorter than the time for which a host's handover waits.
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

// finishVisit ends a successful request: it journals the page as done, with its links.
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

// endVisit ends a visit and gives its worker the next host; false if it was abandoned before.
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

// cancelAtExpiry abandons the requests that are in flight when the lease ends.
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

// abandon marks a request as one whose answer is not read.
func (w *world) abandon(v *visit) {
	if v.sent {
		w.checker.allowRepeat(v.page)
		v.ends = min(v.ends, w.k.now)
	}
}

// scheduleHosts schedules the hosts of new links.
func (p *process) scheduleHosts(links []url) {
	for _, u := range links {
		if h := p.state.hosts[u.host()]; h != nil {
			p.scheduleHost(h)
		}
	}
}

// fetchTime draws the duration of a request. Most take well under a second, some take seconds.
func (w *world) fetchTime(machine int, host int32) time.Duration {
	base := 20*time.Millisecond + time.Duration(hash(w.web.seed, 4, uint64(host),
		uint64(machine))%uint64(200*time.Millisecond))
	if w.k.chance(0.01) {
		return base + w.k.exponential(5*time.Second)
	}
	return base + w.k.exponential(50*time.Millisecond)
}
