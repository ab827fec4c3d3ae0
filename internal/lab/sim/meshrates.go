package sim

import (
	"fmt"
	"math/bits"
	"time"

	"kumo/internal/cluster/member/mesh"
)

// A MeshRate says how much a node without a centre fetches, and how much comes to it.
type MeshRate struct {
	Fetch   float64       // URLs a second that it fetches at most, one after another; 0: as many as hosts let it
	Arrive  float64       // URLs a second, on average, that come of hosts whose target it is, in RunMeshRates
	Area    int           // blocks that it works on; 0: as many as its rates make
	JoinsAt time.Duration // when it comes, in RunMeshRates; 0: it is there at the beginning
}

// MeshRates is an experiment: nodes with rates, for a time, and nothing goes wrong. Either a web is crawled, or URLs
// come to nodes at their rates, as a Poisson process; any node finds them, and they take the way of all links.
type MeshRates struct {
	Nodes    []MeshRate
	Hosts    int // of a web of which all roots are seeds; 0: there is none
	Pages    int // of a host, on average
	HostURLs int // URLs that come of a host before others come of the next; 1, at most 64
	Balance  bool
	// as in mesh.Config
	AllOrNothing bool
	Block        int
	Interval     time.Duration // in which nodes look at their load
	Sample       time.Duration // between two samples
	Samples      int
	Processor    func() time.Duration // as in MeshConfig
}

// MeshSamples are what a run came to: those of all nodes at the end of each interval, and what has been sent by then.
type MeshSamples struct {
	Nodes   [][]NodeSample // by sample; nodes in their order, those that have not come yet are missing
	Figures []MeshFigures  // by sample, since the first began
}

// A NodeSample is what a node is at at a moment.
type NodeSample struct {
	Waiting int // URLs
	Fetched int // since it began
	Level   int // of its load, as it saw it last
	Area    int // blocks
}

// settling is how long nodes that are there at the beginning have to find each other.
const formingTime = time.Minute

// RunMeshRates runs an experiment.
func RunMeshRates(cfg MeshRates, seed uint64) (s MeshSamples) {
	c := MeshConfig{Rates: cfg.Nodes, Hosts: cfg.Hosts, Pages: cfg.Pages, Busy: cfg.Balance, Block: cfg.Block,
		Interval: cfg.Interval, AllOrNothing: cfg.AllOrNothing, Loss: -1, Processor: cfg.Processor}
	if cfg.Hosts == 0 {
		c.Hosts = -1
	}
	w := newMeshWorld(c.withDefaults(), seed)
	if cfg.Hosts == 0 {
		w.web.linksPerPage = noLinks
	}
	for i, r := range cfg.Nodes {
		at := time.Duration(i) * time.Second
		if r.JoinsAt > 0 {
			at = formingTime + r.JoinsAt
		}
		w.k.after(at, func() { w.join() })
	}
	w.runUntil(formingTime)
	before := w.currentFigures()
	w.seedHosts(len(w.web.hosts))
	for i, r := range cfg.Nodes {
		if r.Arrive > 0 {
			a := &arrivals{w: w, to: i, mean: time.Duration(float64(time.Second) / r.Arrive), perHost: max(cfg.HostURLs, 1)}
			a.next()
		}
	}
	for i := range cfg.Samples {
		w.runUntil(formingTime + time.Duration(i+1)*cfg.Sample)
		var nodes []NodeSample
		for _, n := range w.nodes {
			if n.proc.began < w.k.now { // else it comes with the next sample
				nodes = append(nodes, n.sample())
			}
		}
		s.Nodes = append(s.Nodes, nodes)
		s.Figures = append(s.Figures, w.currentFigures().minus(before))
	}
	return s
}

func (n *meshNode) sample() NodeSample {
	b := n.proc.peer.Machine().Balance()
	s := NodeSample{Fetched: n.proc.fetches.fetched, Level: b.Level, Area: b.Area}
	for _, e := range n.disk.engine {
		s.Waiting += bits.OnesCount64(e.known &^ (e.unfinished | e.finished))
	}
	return s
}

// currentFigures is what has been counted, the processes that run included.
func (w *meshWorld) currentFigures() MeshFigures {
	f := w.figures
	for _, p := range w.live {
		f.addProcess(p)
	}
	return f
}

// since is what was counted after a moment. Of what is the web's and not the run's it says nothing.
func (f MeshFigures) minus(g MeshFigures) MeshFigures {
	f.NodeTime -= g.NodeTime
	f.Requests -= g.Requests
	f.Recorded -= g.Recorded
	f.MovedHosts -= g.MovedHosts
	f.Faults -= g.Faults
	f.Processor -= g.Processor
	f.LookUps.LookUps -= g.LookUps.LookUps
	f.LookUps.Asked -= g.LookUps.Asked
	f.LookUps.Hops -= g.LookUps.Hops
	for i := range f.Messages {
		f.Messages[i] -= g.Messages[i]
		f.Bytes[i] -= g.Bytes[i]
	}
	return f
}

// arrivals are URLs that come to a node.
type arrivals struct {
	w       *meshWorld
	to      int
	mean    time.Duration // between two
	perHost int           // URLs of a host
	host    int32
	added   int // of the host
}

func (a *arrivals) next() {
	w := a.w
	w.k.after(w.k.exponential(a.mean), func() {
		if a.added == 0 {
			a.host = w.newHostOf(w.nodes[a.to].proc.view)
		}
		p := w.live[w.k.rng.IntN(len(w.live))]
		p.addLink(at(a.host, a.added))
		p.pump()
		a.added = (a.added + 1) % a.perHost
		a.next()
	})
}

// newHostOf makes a host that is a node's to fetch, by its view: names are made up until one is.
func (w *meshWorld) newHostOf(v *mesh.View) int32 {
	for {
		w.namesTried++
		name := fmt.Sprintf("a%d.example", w.namesTried)
		if !v.Ours(name) {
			continue
		}
		h := int32(len(w.web.hosts))
		w.web.hosts = append(w.web.hosts, site{name: name, pages: maxPages})
		w.web.byName[name] = h
		w.coverage = append(w.coverage, hostCoverage{})
		w.lastVisit = append(w.lastVisit, nil)
		w.lastFetcher = append(w.lastFetcher, make([]*meshProcess, maxPages))
		return h
	}
}

// turns are what a node with a rate fetches next: a URL of each host in turn.
type fetchQueue struct {
	hosts     []queuedHost
	nextFetch moment // when the next may be fetched
	scheduled bool
	fetched   int
}

type queuedHost struct {
	host  int32
	state *meshHost
}

func (p *meshProcess) queueHost(h int32, s *meshHost) {
	p.fetches.hosts = append(p.fetches.hosts, queuedHost{h, s})
	p.scheduleFetch(p.fetches.nextFetch)
}

func (p *meshProcess) scheduleFetch(at moment) {
	t := &p.fetches
	if t.scheduled || len(t.hosts) == 0 {
		return
	}
	t.scheduled = true
	p.after(max(at-p.w.k.now, 0), p.fetchNext)
}

// fetchNext fetches a URL of the first host that may be asked.
func (p *meshProcess) fetchNext() {
	t, now := &p.fetches, p.w.k.now
	t.scheduled = false
	for range len(t.hosts) {
		next := t.hosts[0]
		t.hosts = t.hosts[1:]
		s, e := next.state, p.n.disk.engine[next.host]
		if p.hosts[next.host] != s || e == nil {
			continue
		}
		wait := e.known &^ (e.unfinished | e.finished)
		switch {
		case wait == 0:
			s.scheduled = false
		case s.next > now || !p.view.Until().After(p.now()) || !p.view.Ours(p.w.web.hosts[next.host].name):
			t.hosts = append(t.hosts, next)
		default:
			s.scheduled = false
			t.fetched++
			p.fetch(at(next.host, lowest(wait)), s)
			t.nextFetch = now + time.Duration(float64(time.Second)/p.n.rate.Fetch)
			p.scheduleFetch(t.nextFetch)
			return
		}
	}
	p.scheduleFetch(now + time.Second)
}

// Upkeep is what nodes without a centre have sent in three times, one after the other.
type Upkeep struct {
	Crawl MeshFigures // until all is fetched, and nobody has anything to do
	Rest  MeshFigures // while nothing happens
	Churn MeshFigures // while nodes come and go, each staying for MeshConfig.Stay on average
	Known float64     // URLs that a node's history has, on average, when the crawl is over
}

// RunUpkeep lets nodes crawl a web to the end, then rest, then come and go, for a time each. Half of those that go lose
// their disk, and new ones come in their place; the others come back.
func RunUpkeep(cfg MeshConfig, each time.Duration, seed uint64) (u Upkeep) {
	w := newMeshWorld(cfg.withDefaults(), seed)
	cfg = w.cfg
	for i := range cfg.Nodes {
		w.k.after(time.Duration(i)*cfg.Spread/time.Duration(cfg.Nodes), func() { w.join() })
	}
	w.runUntil(cfg.Spread + cfg.FaultDelay)
	phase := func(f func()) MeshFigures {
		before := w.currentFigures()
		f()
		return w.currentFigures().minus(before)
	}
	u.Crawl = phase(func() {
		w.seed()
		for end := w.k.now + cfg.RestLimit; w.k.now < end; {
			if w.runUntil(w.k.now + 2*time.Second); w.pendingWork(1) == "" {
				break
			}
		}
	})
	known := 0
	for _, p := range w.live {
		for _, d := range p.n.disk.history {
			known += bits.OnesCount64(d.open | d.done)
		}
	}
	u.Known = float64(known) / float64(len(w.live))
	u.Rest = phase(func() { w.runUntil(w.k.now + each) })
	faults := meshFaults{w: w}
	faults.churn()
	w.runUntil(w.k.now + 30*time.Second)
	u.Churn = phase(func() { w.runUntil(w.k.now + each) })
	return u
}
