package sim

import (
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// nowhere is the view of a node that is no member yet.
type nowhere struct{}

func (nowhere) Epoch() uint64                                { return 0 }
func (nowhere) IsMember() bool                               { return false }
func (nowhere) Until() time.Time                             { return time.Time{} }
func (nowhere) Owner(string) (strategy.Node, strategy.State) { return "", strategy.Unknown }
func (nowhere) Ours(string) bool                             { return false }
func (nowhere) MayFetch(string, time.Time) bool              { return false }

// A visit is a worker's way with one URL, from the look at the lease to the end of the request.
type visit struct {
	p       *process
	hold    *hold
	page    url
	checked moment   // when the lease was looked at
	sent    bool     // the request is
	ends    moment   // of the request, as the host sees it
	over    bool     // it has ended, or was given up
	slipped bool     // the process stood still between the look and the end
	then    []func() // is done when it is over
}

func (v *visit) site() *site { return &v.p.w.web.hosts[v.page.host()] }

// workers are what fetches at a process.
type workers struct {
	busy    int
	queue   []*hold  // hosts whose time has come, while all workers are busy
	visits  []*visit // requests under way, or about to be
	waiting []func() // until visits are over
	fetched int      // since that was asked for
	pages   int64
	rate    float64 // pages a second, lately
	links   []url   // room
}

// asks reports whether a visit is under way to some hosts.
func (s *workers) asks(of func(string) bool) bool {
	return slices.ContainsFunc(s.visits, func(v *visit) bool { return of(v.site().name) })
}

// drained has those look again who wait until visits are over.
func (s *workers) drained() {
	waiting := s.waiting
	s.waiting = nil
	for _, again := range waiting {
		again()
	}
}

// leave takes a visit off the list; false if it was given up before.
func (s *workers) leave(v *visit) bool {
	i, last := slices.Index(s.visits, v), len(s.visits)-1
	if i < 0 {
		return false
	}
	s.visits[i] = s.visits[last]
	s.visits = s.visits[:last]
	s.busy--
	return true
}

// postpone is how long a host waits that may not be asked now.
const postpone = time.Second

// arm gives a host its place in the order of requests, if something of it waits.
func (p *process) arm(h *hold) {
	if h.armed || h.visiting || h.waiting == 0 {
		return
	}
	h.armed = true
	p.after(max(0, h.due-p.w.k.now), func() {
		p.queue = append(p.queue, h)
		p.work()
	})
}

// work gives hosts whose time has come to workers, until all are busy: of some there is nothing to be asked any more.
func (p *process) work() {
	for p.busy < p.w.cfg.Workers && len(p.queue) > 0 {
		h := p.queue[0]
		p.queue = p.queue[1:]
		p.visit(h)
	}
}

// visit has a worker take one of a host's URLs, look whether it may be asked for, and a moment later send the request.
func (p *process) visit(h *hold) {
	h.armed = false
	if p.state.hosts[h.host] != h || h.waiting == 0 {
		return
	}
	if !p.view.MayFetch(p.w.web.hosts[h.host].name, p.now()) {
		h.due = p.w.k.now + postpone
		p.arm(h)
		return
	}
	h.visiting = true
	p.busy++
	v := &visit{p: p, hold: h, page: at(h.host, lowest(h.waiting)), checked: p.w.k.now}
	p.visits = append(p.visits, v)
	p.after(p.w.k.about(p.w.cfg.parts.dawdle), func() { p.request(v) })
}

// longest is for how long a fetcher waits for a page, at most: less than hosts that move are waited for.
const longest = 45 * time.Second

func (p *process) request(v *visit) {
	if v.over {
		return
	}
	v.sent = true
	took := p.w.fetchTime(p.m.index, v.page.host())
	if slow := p.m.slowness * p.m.throttled; slow > 1 {
		took = min(time.Duration(float64(took)*slow), max(took, longest))
	}
	v.ends = p.w.k.now + took
	p.w.score.request(v)
	p.after(took, func() { p.answered(v) })
}

// answered is the end of a request: the page is done, and its links are entered with that.
func (p *process) answered(v *visit) {
	if !p.done(v) {
		return
	}
	p.fetched++
	p.pages++
	p.m.visited(v, p.w.k.now)
	e := &entry{kind: entryDone, page: v.page}
	p.links = p.w.web.linksOf(v.page, p.links[:0])
	p.w.score.sites.found(p.links, p.w.k.now)
	p.route(e, p.links)
	p.enter(e)
	p.offered(e.links)
	p.arm(v.hold)
	p.drained()
}

// done ends a visit, and lets workers take the next hosts; false if it was given up before.
func (p *process) done(v *visit) bool {
	v.over = true
	if !p.leave(v) {
		return false
	}
	v.hold.visiting = false
	v.hold.due = p.w.k.now + v.site().delay
	for _, f := range v.then {
		f()
	}
	if len(p.queue) > 0 {
		p.after(0, p.work)
	}
	return true
}

// expire cuts requests off that are under way when the lease ends.
func (p *process) expire() {
	if p.expiring {
		return
	}
	p.expiring = true
	p.after(p.until(p.view.Until()), func() {
		p.expiring = false
		if p.view.Until().After(p.now()) {
			p.expire()
			return
		}
		for len(p.visits) > 0 {
			v := p.visits[0]
			p.done(v)
			p.w.abandon(v)
			p.arm(v.hold)
		}
		p.drained()
	})
}

// abandon ends a request whose answer nobody reads.
func (w *world) abandon(v *visit) {
	if v.sent {
		w.score.excuse(v.page)
		v.ends = min(v.ends, w.k.now)
	}
}

// offered gives hosts their place that have come to something.
func (p *process) offered(links []url) {
	for _, u := range links {
		if h := p.state.hosts[u.host()]; h != nil {
			p.arm(h)
		}
	}
}

// fetchTime draws how long a host takes to answer a machine: most answer soon, some take seconds.
func (w *world) fetchTime(machine int, host int32) time.Duration {
	base := 20*time.Millisecond + time.Duration(hash(w.web.seed, 4, uint64(host),
		uint64(machine))%uint64(200*time.Millisecond))
	if w.k.chance(0.01) {
		return base + w.k.about(5*time.Second)
	}
	return base + w.k.about(50*time.Millisecond)
}
