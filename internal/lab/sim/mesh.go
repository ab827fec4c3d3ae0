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

// MeshConfig says how a crawl without a centre is run: the very overlays and machines of its nodes (member/peer), over
// a network and a web that are made from a seed. Judged is that nothing is lost: each page that can be reached is
// fetched, and the crawl comes to rest. Pages that are fetched twice, and requests to a host at which another node is,
// are counted; the latter are judged, too, with Polite.
type MeshConfig struct {
	Nodes      int           // at the start; 10
	Hosts      int           // of the web; 6 a node; negative: none
	Pages      int           // of a host, on average; 16, at most 32
	Delay      time.Duration // of a host, on average; 2s
	Backups    int           // of a host; 3
	Shuffle    bool          // each node fetches the pages of a host in an order of its own
	JudgeDelay bool          // requests to a host while another node is there are judged, but after cuts and pauses
	Busy       bool          // nodes say that they are the bottleneck: load is given to others

	// every fourth host takes so long for an answer at most, and half of it at least; 0: all answer within 400ms
	SlowAnswer time.Duration

	Loss float64 // share of messages that are lost; negative: none; 0.05
	// share of messages that come once more, within ReplayAfter, to whatever process the receiver is by then; 10m
	Replay      float64
	ReplayAfter time.Duration
	ClockLeap   time.Duration // now and then the clock of a node goes ahead by so much; 0: none does
	MinLatency  time.Duration // that a message takes; 10ms
	MaxLatency  time.Duration // 300ms, but for 10 % more now and then
	// latency as measured, instead
	Matrix    *Matrix
	Bandwidth float64 // bytes a second between two nodes; 5e6

	Spread     time.Duration // within which nodes are started; a second for three, 10 s at least
	SeedFirst  bool          // the crawl begins with the first node, and Quiet too, while the others come
	FaultDelay time.Duration // until the first fault, after that; 20s
	FaultEvery time.Duration // between two faults, on average; 8s. Negative: there are none
	// how long a node stays, on average; 0: as faults have it. Of the nodes that go half lose their disk, and a new one
	// comes in place of each; the others come back after a quarter of that time, on average
	MeanStay time.Duration
	// nodes bring their record files to a place, and what others had fetched and not brought there when they were lost
	// with their disks is fetched again. Judged is, too, that of each page there is a record
	Storage      bool
	LostAfter    time.Duration // as in mesh.Config; 40s
	NoCuts       bool          // the network is never cut in two
	WipesAtOnce  int           // nodes that lose their disks at once by a fault, fewer than Backups; 1
	WipeInterval time.Duration // between two such faults, at least; 1m
	FaultTime    time.Duration // how long things go wrong; 4m
	RestLimit    time.Duration // until all must be at rest after that; 1h

	Rates    []MeshRate    // of the nodes in the order in which they come; those beyond have none
	Block    int           // URLs of a block of load; 20
	Interval time.Duration // in which nodes look at their load; 30s

	AllOrNothing bool // as in mesh.Config

	Overlay overlay.Config // of each node: all but Self and Seed

	// the processor's time that this process has taken so far, so that what nodes take can be measured; nil: it is not
	Processor func() time.Duration

	parts meshParts
}

// meshParts are what runs of broken variants replace.
type meshParts struct {
	replace     func(p *meshProcess, a peer.Action) bool // does something in place of an action; false: nothing
	finishEarly bool                                     // pages are Finished when they are fetched
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
	c.Interval, c.LostAfter = cmp.Or(c.Interval, 30*time.Second), cmp.Or(c.LostAfter, 40*time.Second)
	return c
}

// MeshFigures are what a run came to.
type MeshFigures struct {
	Virtual       time.Duration // from the first seed to the last page
	Events        uint64
	Faults        int
	Joined        int // nodes that have come, and disks that were lost
	Wiped         int
	NodeTime      time.Duration // that processes ran, in all
	Pages         int           // that can be reached
	Lost          int           // of these: never fetched
	Requests      int
	Duplicates    [causeCount]int // requests beyond the first of a page, by cause
	EarlyEnds     int             // times that a node took the crawl for ended though pages were left
	Overlapping   int             // requests to a host at which another node was just then
	TooEarly      int             // and at which another node had been too lately
	Messages      [messageKindCount]int
	Bytes         [messageKindCount]int
	LookUps       overlay.Stats
	Replayed      int           // messages that came once more, long after
	Leaps         int           // of clocks
	WithoutRecord int           // pages of which no record is left
	Refetches     int           // pages of lost nodes that were offered once more, by each of their keepers
	Recorded      int           // URLs that were entered into histories, or said to be done
	MovedHosts    int           // hosts that went to nodes that had less to do
	Processor     time.Duration // that the nodes' own code took, if it is measured
}

// Why a page was fetched again.
const (
	causeDeath     = iota // who fetched it died before it had said so
	causeUnclaimed        // links on it were not claimed yet when its host went to another node
	causeLostMark         // word that it was fetched had not come to a backup
	causePartition        // a backup knew it; the network was cut not long ago, and each part of it crawls
	causeOther            // a backup knew it
	causeCount
)

// Message messages are about: the places in MeshFigures.
const (
	OverlayMessage = iota
	MeshMessage
	LinksMessage
	messageKindCount
)

// MessageKinds are their names.
var MessageKinds = [messageKindCount]string{"overlay", "mesh", "links"}

// A meshWorld is one run.
type meshWorld struct {
	runLog
	cfg   MeshConfig
	web   *web
	net   *network
	nodes []*meshNode // all that ever were
	named map[strategy.Node]*meshNode
	live  []*meshProcess

	coverage     coverage
	lastFetcher  [][]*meshProcess         // who asked for a page, the last time, by host and page
	lastVisit    []*meshVisit             // the last one, by host
	lastFetch    moment                   // when something was fetched, the last time
	records      map[url][]recordLocation // where each page's records are, with a place
	lastWipe     moment                   // when a disk was lost, the last time
	lastHeal     moment                   // when the network was whole again, the last time
	longestStall time.Duration            // the longest that a host with something to do was not asked, beyond its delay
	faultsEnded  bool                     // nothing goes wrong any more
	namesTried   int                      // names of hosts that were made up

	figures   MeshFigures
	endsFound []moment // when a node took the crawl for ended
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
	// a map's corners are 1.41 times as far from each other as its sides
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
	rest := 0 // looks that have found all at rest, one after the other
	for end := begins + cfg.FaultTime + cfg.RestLimit; rest < 5; w.runUntil(w.k.now + 2*time.Second) {
		if rest++; w.pendingWork(1) != "" {
			rest = 0
		}
		if w.k.now > end {
			w.violate("not at rest %v after the last fault, nothing was fetched for %v: %s", cfg.RestLimit, w.k.now-w.lastFetch,
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

// pendingWork says what nodes have yet to do, for some nodes; "" if that is nothing.
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
		return "stands still"
	case p.leaving:
		return "is about to leave: " + p.peer.Machine().BusyReason()
	case p.out.Len() > 0:
		return fmt.Sprintf("%d links are to be claimed", p.out.Len())
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

// addProcess adds what is counted of a process when it ends.
func (f *MeshFigures) addProcess(p *meshProcess) {
	f.NodeTime += p.w.k.now - p.began
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
				s += fmt.Sprintf(" engine known %v fetched %v said %v", e.known&u.bit() != 0, e.unfinished&u.bit() != 0,
					e.finished&u.bit() != 0)
			}
			s += "; "
		}
	}
	return s + "no other disk has it"
}

func (w *meshWorld) request(p *meshProcess, u url, takes time.Duration) {
	h := u.host()
	w.logHost(h, "%s asks for %s", p.n.name, w.web.name(u))
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

// checkDelay holds a request to the host's delay after the last one. Parts of a network that is cut crawl on their own, and
// it takes a while until they agree again; so does a node that has stood still, whose hosts others have got, or that has
// just begun: what comes of that is counted.
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
		w.violateHost(h, "%s asks %s, where a request of %s ends %v later: the delay is %v", v.by.n.name, site.name,
			last.by.n.name, last.ends-w.k.now, site.delay)
	}
}

// agreementTime is how long nodes may take, after a cut or a pause, until no two of them take a host for their own.
const agreementTime = time.Minute

// isSplit reports whether the network is cut, or parts of it cannot know yet that it is whole again.
func (w *meshWorld) isSplit() bool {
	return len(w.net.partitions) > 0 || w.lastHeal > 0 && w.k.now-w.lastHeal < 30*time.Second
}

// duplicateCause is why a page is fetched again that a process has fetched.
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
