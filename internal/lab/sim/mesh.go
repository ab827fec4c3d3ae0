package sim

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/member/peer"
	"kumo/internal/cluster/overlay"
	"kumo/internal/cluster/strategy"
)

// MeshConfig describes a run of a mesh crawl, which has no central nodes. The nodes run the real overlay and mesh
// (member/peer) on a network and a web generated from a seed. The run checks that nothing is lost: each reachable page
// is fetched, and the crawl comes to rest. Repeated fetches and requests that violate a delay are counted; with
// JudgeDelay the latter are violations. Comments on the fields end with the default.
type MeshConfig struct {
	Nodes      int           // at the start; 10
	Hosts      int           // of the web; 6 per node; negative: none
	Pages      int           // per host, on average; 16, at most 32
	Delay      time.Duration // of a host, on average; 2s
	Backups    int           // backups of a host; 3
	Shuffle    bool          // each node fetches a host's pages in its own order
	JudgeDelay bool          // report delay violations, except shortly after partitions, pauses and starts
	Busy       bool          // nodes are the bottleneck, so that load is balanced

	// longest answer of every fourth host, the shortest being half of it; 0: all answer within 400ms
	SlowAnswer time.Duration

	Loss float64 // share of messages lost; negative: none; 0.05
	// share of messages delivered again within ReplayAfter, even to a later process of the receiver; ReplayAfter: 10m
	Replay      float64
	ReplayAfter time.Duration
	ClockLeap   time.Duration // how far the clock of a node jumps now and then; 0: never
	MinLatency  time.Duration // of a message; 10ms
	MaxLatency  time.Duration // before a random addition of 10 % on average; 300ms
	// measured latencies to use instead
	Matrix    *Matrix
	Bandwidth float64 // bytes per second between two nodes; 5e6

	Spread time.Duration // time within which the nodes start; a second for three nodes, at least 10s
	// add the seeds when the first node starts, and count FaultDelay from there; otherwise both wait for all nodes
	SeedFirst  bool
	FaultDelay time.Duration // time before faults begin; without SeedFirst, also before the seeds are added; 20s
	FaultEvery time.Duration // average time between two faults; 8s; negative: no faults
	// average stay of a node; 0: nodes only leave by faults. Half of the nodes that leave lose their disk and are
	// replaced by new ones. The others come back after a quarter of MeanStay, on average.
	MeanStay time.Duration
	// Nodes upload their record files to a storage location. Pages whose records were lost with a disk before the
	// upload are fetched again. The run also checks that each page has a record.
	Storage      bool
	LostAfter    time.Duration // as in mesh.Config; 40s
	NoCuts       bool          // no partitions
	WipesAtOnce  int           // most disks that a fault takes at once, fewer than Backups; 1
	WipeInterval time.Duration // minimum time between two such faults; 1m
	FaultTime    time.Duration // how long faults occur; 4m
	RestLimit    time.Duration // time to come to rest after that; 1h

	Rates    []MeshRate    // of the nodes in the order of joining; later nodes have none
	Paper    bool          // the strategy mesh/paper
	Partial  bool          // with Paper, as in mesh.BalanceConfig
	Block    int           // with Paper: URLs per block of load; 20
	Interval time.Duration // between two checks of a node's load; 1s, with Paper 30s

	ShareCookies bool // as in mesh.Config

	Overlay overlay.Config // of each node, without Self and Seed

	// returns the CPU time of this process, to measure the nodes' code; nil: not measured
	Processor func() time.Duration

	parts meshParts
}

// meshParts are the parts of the simulation that tests replace with broken ones.
type meshParts struct {
	replace     func(p *meshProcess, a peer.Action) bool // handles an action; false: it does not
	finishEarly bool                                     // pages are finished as soon as they are fetched
}

func (c MeshConfig) withDefaults() MeshConfig {
	c.Nodes, c.Pages, c.Delay = cmp.Or(c.Nodes, 10), cmp.Or(c.Pages, 16), cmp.Or(c.Delay, 2*time.Second)
	c.Hosts, c.Backups = cmp.Or(c.Hosts, 6*c.Nodes), cmp.Or(c.Backups, 3)
	c.Bandwidth = cmp.Or(c.Bandwidth, 5e6)
	c.Loss, c.MinLatency, c.MaxLatency = cmp.Or(c.Loss, 0.05), cmp.Or(c.MinLatency, 10*time.Millisecond),
		cmp.Or(c.MaxLatency, 300*time.Millisecond)
	c.Spread = cmp.Or(c.Spread, max(10*time.Second, time.Duration(c.Nodes)*time.Second/3))
	c.FaultDelay, c.FaultEvery = cmp.Or(c.FaultDelay, 20*time.Second), cmp.Or(c.FaultEvery, 8*time.Second)
	c.WipesAtOnce, c.ReplayAfter = cmp.Or(c.WipesAtOnce, 1), cmp.Or(c.ReplayAfter, 10*time.Minute)
	c.WipeInterval, c.FaultTime, c.RestLimit = cmp.Or(c.WipeInterval, time.Minute), cmp.Or(c.FaultTime, 4*time.Minute),
		cmp.Or(c.RestLimit, time.Hour)
	if c.Paper {
		c.Interval = cmp.Or(c.Interval, 30*time.Second)
	}
	balance := mesh.BalanceConfig{Interval: c.Interval}
	c.Interval, c.LostAfter = balance.LoadInterval(), cmp.Or(c.LostAfter, 40*time.Second)
	return c
}

// MeshFigures are the results of a run.
type MeshFigures struct {
	Virtual       time.Duration // from the start of the crawl to the last fetch
	Events        uint64
	Faults        int
	Joined        int // nodes that joined; Wiped: disks lost
	Wiped         int
	NodeTime      time.Duration // total running time of all processes
	Pages         int           // reachable
	Lost          int           // reachable pages that were never fetched
	Requests      int
	Duplicates    [causeCount]int // requests for pages that had been fetched, by cause
	EarlyEnds     int             // how often a node detected the end while running nodes could know pending pages
	Overlapping   int             // requests to a host while another node's was in flight
	TooEarly      int             // requests to a host within its delay after another node's
	Messages      [messageKindCount]int
	Bytes         [messageKindCount]int
	LookUps       overlay.Stats
	Replayed      int           // messages delivered a second time
	Leaps         int           // clock jumps
	WithoutRecord int           // pages without a record
	Refetches     int           // pages of lost nodes enqueued again, counted for each backup of their risk lists
	Recorded      int           // history updates: URLs recorded or marked done
	MovedHosts    int           // hosts moved to nodes with less load
	Moves         mesh.Moves    // of history
	Processor     time.Duration // CPU time of the nodes' code, if measured
	Sessions      int           // requests to a host without the cookie that each host sets
}

// Causes of repeated fetches.
const (
	causeDeath     = iota // the fetching process died before it finished the page
	causeUnclaimed        // the page's links were not yet claimed when its host moved
	causeLostMark         // the page was finished, but no running node has the done mark
	causePartition        // a node has the done mark, but the network is or was recently partitioned
	causeOther            // a node has the done mark
	causeCount
)

// Kinds of messages: indexes into MeshFigures.Messages and Bytes.
const (
	OverlayMessage = iota
	MeshMessage
	LinksMessage
	messageKindCount
)

// MessageKinds are the names of the kinds.
var MessageKinds = [messageKindCount]string{"overlay", "mesh", "links"}

// A meshWorld is one run.
type meshWorld struct {
	runLog
	cfg   MeshConfig
	web   *web
	net   *network
	nodes []*meshNode // all nodes so far
	named map[strategy.Node]*meshNode
	live  []*meshProcess

	coverage    coverage
	lastFetcher [][]*meshProcess         // process that last requested a page, by host and page
	lastVisit   []*meshVisit             // last request, by host
	lastFetch   moment                   // time of the last request
	records     map[url][]recordLocation // where each page's records are, with Storage
	lastWipe    moment                   // when a disk was last lost
	lastHeal    moment                   // when the last partition ended
	// the longest time for which a host with pending pages was not fetched from, beyond its delay
	longestStall time.Duration
	faultsEnded  bool // the phase of faults is over
	namesTried   int  // generated host names tried so far

	figures   MeshFigures
	endsFound []moment // when nodes detected the end of the crawl
	gathered  []mesh.Tally
}

// A meshVisit is a request.
type meshVisit struct {
	by   *meshProcess
	ends moment
}

func newMeshWorld(cfg MeshConfig, seed uint64) *meshWorld {
	w := &meshWorld{cfg: cfg, runLog: runLog{k: newKernel(seed), focus: -1}, named: map[strategy.Node]*meshNode{},
		web: newWeb(Config{Hosts: max(cfg.Hosts, 0), Pages: cfg.Pages, Delay: cfg.Delay}, hash(seed, 1))}
	w.net = &network{k: w.k, bandwidth: cfg.Bandwidth, loss: max(cfg.Loss, 0), slowdown: 1}
	// the diagonal of the map is 1.41 times its side
	w.net.latency = planeLatency{seed: seed, least: cfg.MinLatency, width: (cfg.MaxLatency - cfg.MinLatency) * 5 / 7}
	if cfg.Matrix != nil {
		w.net.latency = cfg.Matrix
	}
	w.coverage = make(coverage, len(w.web.hosts))
	w.lastVisit = make([]*meshVisit, len(w.web.hosts))
	for _, s := range w.web.hosts {
		w.lastFetcher = append(w.lastFetcher, make([]*meshProcess, s.pages))
	}
	w.figures.Pages, w.records = w.web.pages, map[url][]recordLocation{}
	return w
}

func (w *meshWorld) run() {
	cfg := w.cfg
	for i := range cfg.Nodes {
		w.k.after(time.Duration(i)*cfg.Spread/time.Duration(cfg.Nodes), func() { w.join() })
	}
	begins := cfg.Spread + cfg.FaultDelay
	if cfg.SeedFirst {
		begins = cfg.FaultDelay
		w.runUntil(0)
		w.seed()
	}
	w.runUntil(begins)
	if !cfg.SeedFirst {
		w.seed()
	}
	faults := meshFaults{w: w}
	faults.begin()
	w.runUntil(begins + cfg.FaultTime)
	faults.end()
	w.logEvent("the faults end")
	rest := 0 // consecutive checks that found the crawl at rest
	for end := begins + cfg.FaultTime + cfg.RestLimit; rest < 5; w.runUntil(w.k.now + 2*time.Second) {
		if rest++; w.pendingWork(1) != "" {
			rest = 0
		}
		if w.k.now > end {
			w.violate("not at rest %v after the last fault, %v after the last fetch: %s", cfg.RestLimit, w.k.now-w.lastFetch,
				w.pendingWork(20))
			break
		}
	}
	w.judge(begins)
}

func (w *meshWorld) runUntil(until moment) { w.k.run(until, func() bool { return false }) }

func (w *meshWorld) seed() { w.seedHosts(w.web.seeds) }

func (w *meshWorld) seedHosts(hosts int) {
	for i := range hosts {
		p := w.live[i%len(w.live)]
		w.coverage.addLinks([]url{at(int32(i), 0)}, w.k.now)
		p.addLink(at(int32(i), 0))
		p.pump()
	}
	w.live[0].deliver(mesh.Change{Data: []byte("has seeds")})
}

// pendingWork describes the unfinished work of up to most nodes; "" if there is none.
func (w *meshWorld) pendingWork(most int) string {
	var all []string
	for _, p := range w.live {
		if s := p.pendingWork(); s != "" {
			if all = append(all, string(p.n.name)+": "+s); len(all) == most {
				break
			}
		}
	}
	return strings.Join(all, "; ")
}

func (p *meshProcess) pendingWork() string {
	switch {
	case p.paused:
		return "is paused"
	case p.leaving:
		return "is leaving: " + p.peer.Machine().BusyReason()
	case p.out.Len() > 0:
		return fmt.Sprintf("%d links are not claimed", p.out.Len())
	}
	for h, e := range p.n.disk.engine {
		if e.known&^e.finished != 0 {
			return fmt.Sprintf("%s waits", p.w.web.hosts[h].name)
		}
	}
	return p.peer.Machine().BusyReason()
}

func (w *meshWorld) judge(began moment) {
	lost, u := w.coverage.missing(w.web)
	if w.figures.Lost = lost; lost > 0 {
		w.violateHost(u.host(), "%s was never fetched: %s", w.web.name(u), w.describePage(u))
	}
	w.checkRecords()
	w.figures.Virtual = w.lastFetch - began
	w.figures.Events = w.k.eventCount
	for _, p := range w.live {
		w.figures.addProcess(p)
	}
}

// addProcess adds the figures of a process.
func (f *MeshFigures) addProcess(p *meshProcess) {
	f.NodeTime += p.w.k.now - p.began
	f.Moves = f.Moves.Add(p.peer.Machine().Moves())
	s := p.peer.Overlay().Stats()
	f.LookUps.LookUps += s.LookUps
	f.LookUps.Asked += s.Asked
	f.LookUps.Hops += s.Hops
}

func (w *meshWorld) describePage(u url) (s string) {
	for _, n := range w.nodes {
		if n.disk == nil {
			continue
		}
		r, e := n.disk.history[u.host()], n.disk.engine[u.host()]
		if r != nil && (r.open|r.done)&u.bit() != 0 || e != nil && e.known&u.bit() != 0 {
			s += fmt.Sprintf("%s (runs %v)", n.name, n.proc != nil)
			if r != nil {
				s += fmt.Sprintf(" open %v done %v", r.open&u.bit() != 0, r.done&u.bit() != 0)
			}
			if e != nil {
				s += fmt.Sprintf(" engine known %v unfinished %v finished %v", e.known&u.bit() != 0, e.unfinished&u.bit() != 0,
					e.finished&u.bit() != 0)
			}
			s += "; "
		}
	}
	return s + "no other disk has it"
}

func (w *meshWorld) request(p *meshProcess, u url, takes time.Duration) {
	h := u.host()
	w.logHost(h, "%s requests %s", p.n.name, w.web.name(u))
	visit := &meshVisit{p, w.k.now + takes}
	may := moment(0)
	if v := w.lastVisit[h]; v != nil {
		may = v.ends + w.web.hosts[h].delay
		w.checkDelay(h, v, visit)
	}
	w.lastVisit[h] = visit
	w.figures.Requests++
	w.lastFetch = w.k.now
	last := &w.lastFetcher[h][u&63]
	if w.coverage[h].fetched&u.bit() != 0 {
		w.figures.Duplicates[w.duplicateCause(*last, u)]++
	}
	w.longestStall = max(w.longestStall, w.coverage[h].addFetch(u, w.k.now, may))
	*last = p
}

// checkDelay checks that the host's delay has passed since the last request. Violations are only counted after a
// partition, pause or start of a process, because it takes a while until all nodes agree again on the owner.
func (w *meshWorld) checkDelay(h int32, last, v *meshVisit) {
	site, counted := &w.web.hosts[h], &w.figures.TooEarly
	switch {
	case last.by == v.by || last.by.ended || last.ends+site.delay <= w.k.now+time.Millisecond:
		return
	case last.ends > w.k.now:
		counted = &w.figures.Overlapping
	}
	*counted++
	lately := max(last.by.resumedAt, v.by.resumedAt, last.by.began, v.by.began, w.lastHeal)
	if w.cfg.JudgeDelay && len(w.net.partitions) == 0 && w.k.now-lately > agreementTime {
		w.violateHost(h, "%s requests from %s, where a request of %s ends %v later: the delay is %v", v.by.n.name, site.name,
			last.by.n.name, last.ends-w.k.now, site.delay)
	}
}

// agreementTime is how long two nodes may both own a host after a partition, pause or start.
const agreementTime = time.Minute

// isSplit reports whether the network is partitioned, or was so recently that its parts may not know of each other.
func (w *meshWorld) isSplit() bool {
	return len(w.net.partitions) > 0 || w.lastHeal > 0 && w.k.now-w.lastHeal < 30*time.Second
}

// duplicateCause returns why a page is fetched again that the given process has fetched.
func (w *meshWorld) duplicateCause(by *meshProcess, u url) int {
	for _, p := range w.live {
		r := p.n.disk.history[u.host()]
		switch known := r != nil && r.done&u.bit() != 0; {
		case known && w.isSplit():
			return causePartition
		case known:
			return causeOther
		}
	}
	switch {
	case by.finished[u.host()]&u.bit() != 0:
		return causeLostMark
	case by.ended:
		return causeDeath
	}
	return causeUnclaimed
}
