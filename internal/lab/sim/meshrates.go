package sim

import (
	"fmt"
	"math/bits"
	"time"

	"kumo/internal/cluster/member/mesh"
)

// A MeshRate describes how fast a mesh node fetches, and how many URLs arrive at it.
type MeshRate struct {
	Fetch   float64       // most URLs per second; 0: as many as the hosts' delays allow
	Arrive  float64       // average new URLs per second of the hosts that it owns, in RunMeshRates
	Area    int           // size of its work area in blocks; 0: computed from its rates
	JoinsAt time.Duration // when it joins, in RunMeshRates; 0: at the start
}

// MeshRates describes an experiment without faults: nodes with limited rates run for a fixed time. Either they crawl a
// web, or URLs arrive at each node as a Poisson process. Any node may find such a URL; it is then sent like all links.
type MeshRates struct {
	Nodes     []MeshRate
	Hosts     int // of a web whose root pages are all seeds; 0: no web
	Pages     int // per host, on average
	HostURLs  int // URLs that arrive of one host before the next; 1, at most 64
	Balance   bool
	Paper     bool // as in MeshConfig
	Partial   bool
	Block     int
	Interval  time.Duration // between two checks of a node's load
	Sample    time.Duration // between two samples
	Samples   int
	Processor func() time.Duration // as in MeshConfig
}

// MeshSamples are the results of a run: a sample of all nodes after each interval, and the figures so far.
type MeshSamples struct {
	Nodes   [][]NodeSample // by sample, in the order of joining, without nodes that have not joined yet
	Figures []MeshFigures  // by sample, since the start of the first
}

// A NodeSample is the state of a node at one time.
type NodeSample struct {
	Waiting int // URLs
	Fetched int // since its start
	Level   int // of load, as last computed
	Area    int // blocks
}

// formingTime is how long the first nodes have to find each other.
const formingTime = time.Minute

// RunMeshRates runs an experiment.
func RunMeshRates(cfg MeshRates, seed uint64) (s MeshSamples) {
	c := MeshConfig{Rates: cfg.Nodes, Hosts: cfg.Hosts, Pages: cfg.Pages, Busy: cfg.Balance, Block: cfg.Block,
		Interval: cfg.Interval, Paper: cfg.Paper, Partial: cfg.Partial, Loss: -1, Processor: cfg.Processor}
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
			if n.proc.began < w.k.now { // a node that joins right now is part of the next sample
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

// currentFigures returns the figures so far, including those of running processes.
func (w *meshWorld) currentFigures() MeshFigures {
	f := w.figures
	for _, p := range w.live {
		f.addProcess(p)
	}
	return f
}

// minus subtracts earlier figures. Figures of the web are left as they are.
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

// arrivals are the URLs that arrive at a node.
type arrivals struct {
	w       *meshWorld
	to      int
	mean    time.Duration // between two URLs
	perHost int           // most URLs of one host
	host    int32
	added   int // URLs of host so far
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

// newHostOf adds a host that a node owns, by its view. It tries names until one fits.
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

// A fetchQueue is the queue of a node with a limited rate: the hosts with pending URLs, which take turns.
type fetchQueue struct {
	hosts     []queuedHost
	nextFetch moment // earliest time of the next fetch
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

// fetchNext fetches a URL of the first host that may be fetched from now.
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

// Upkeep has the messages of mesh nodes in three phases of a run.
type Upkeep struct {
	Crawl MeshFigures // until the crawl is at rest
	Rest  MeshFigures // idle
	Churn MeshFigures // while nodes leave and join, with an average stay of MeshConfig.MeanStay
	Known float64     // URLs in a node's history after the crawl, on average
}

// RunUpkeep lets nodes crawl a web to the end, then rest, then leave and join, the last two for a given time each. Half
// of the nodes that leave lose their disk and are replaced; the others come back.
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
