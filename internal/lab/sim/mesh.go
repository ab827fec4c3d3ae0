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
	Nodes   int           // at the start; 10
	Hosts   int           // of the web; 6 a node; negative: none
	Pages   int           // of a host, on average; 16, at most 32
	Delay   time.Duration // of a host, on average; 2s
	Backups int           // of a host; 3
	Shuffle bool          // each node fetches the pages of a host in an order of its own
	Polite  bool          // requests to a host while another node is there are judged, but after cuts and pauses
	Busy    bool          // nodes say that they are the bottleneck: load is given to others

	// every fourth host takes so long for an answer at most, and half of it at least; 0: all answer within 400ms
	Slow time.Duration

	Loss float64 // share of messages that are lost; negative: none; 0.05
	// share of messages that come once more, within ReplayAfter, to whatever process the receiver is by then; 10m
	Replay      float64
	ReplayAfter time.Duration
	Leap        time.Duration // now and then the clock of a node goes ahead by so much; 0: none does
	Least       time.Duration // that a message takes; 10ms
	Most        time.Duration // 300ms, but for 10 % more now and then
	// latency as measured, instead
	Matrix    *Matrix
	Bandwidth float64 // bytes a second between two nodes; 5e6

	Spread     time.Duration // within which nodes are started; a second for three, 10 s at least
	Forming    bool          // the crawl begins with the first node, and Quiet too, while the others come
	Quiet      time.Duration // until the first fault, after that; 20s
	FaultEvery time.Duration // between two faults, on average; 8s. Negative: there are none
	// how long a node stays, on average; 0: as faults have it. Of the nodes that go half lose their disk, and a new one
	// comes in place of each; the others come back after a quarter of that time, on average
	Stay time.Duration
	// nodes bring their record files to a place, and what others had fetched and not brought there when they were lost
	// with their disks is fetched again. Judged is, too, that of each page there is a record
	Place     bool
	LostAfter time.Duration // as in mesh.Config; 40s
	NoCuts    bool          // the network is never cut in two
	Wipes     int           // nodes that lose their disks at once by a fault, fewer than Backups; 1
	Repair    time.Duration // between two such faults, at least; 1m
	Turmoil   time.Duration // how long things go wrong; 4m
	Limit     time.Duration // until all must be at rest after that; 1h

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
	mend  func(p *meshProcess, a peer.Action) bool // does something in place of an action; false: nothing
	hasty bool                                     // pages are Finished when they are fetched
}

func (c MeshConfig) withDefaults() MeshConfig {
	c.Nodes, c.Pages, c.Delay = cmp.Or(c.Nodes, 10), cmp.Or(c.Pages, 16), cmp.Or(c.Delay, 2*time.Second)
	c.Hosts, c.Backups = cmp.Or(c.Hosts, 6*c.Nodes), cmp.Or(c.Backups, 3)
	c.Bandwidth = cmp.Or(c.Bandwidth, 5e6)
	c.Loss, c.Least, c.Most = cmp.Or(c.Loss, 0.05), cmp.Or(c.Least, 10*time.Millisecond),
		cmp.Or(c.Most, 300*time.Millisecond)
	c.Spread = cmp.Or(c.Spread, max(10*time.Second, time.Duration(c.Nodes)*time.Second/3))
	c.Quiet, c.FaultEvery = cmp.Or(c.Quiet, 20*time.Second), cmp.Or(c.FaultEvery, 8*time.Second)
	c.Wipes, c.ReplayAfter = cmp.Or(c.Wipes, 1), cmp.Or(c.ReplayAfter, 10*time.Minute)
	c.Repair, c.Turmoil, c.Limit = cmp.Or(c.Repair, time.Minute), cmp.Or(c.Turmoil, 4*time.Minute),
		cmp.Or(c.Limit, time.Hour)
	c.Interval, c.LostAfter = cmp.Or(c.Interval, 30*time.Second), cmp.Or(c.LostAfter, 40*time.Second)
	return c
}

// MeshFigures are what a run came to.
type MeshFigures struct {
	Virtual    time.Duration // from the first seed to the last page
	Events     uint64
	Faults     int
	Joined     int // nodes that have come, and disks that were lost
	Wiped      int
	NodeTime   time.Duration // that processes ran, in all
	Pages      int           // that can be reached
	Lost       int           // of these: never fetched
	Requests   int
	Duplicates [causes]int // requests beyond the first of a page, by cause
	Early      int         // times that a node took the crawl for ended though pages were left
	Slips      int         // requests to a host at which another node was just then
	Hasty      int         // and at which another node had been too lately
	Messages   [kindsOfMessages]int
	Bytes      [kindsOfMessages]int
	LookUps    overlay.Stats
	Replayed   int           // messages that came once more, long after
	Leaps      int           // of clocks
	Bare       int           // pages of which no record is left
	Again      int           // pages of lost nodes that were offered once more, by each of their keepers
	Recorded   int           // URLs that were entered into histories, or said to be done
	Given      int           // hosts that went to nodes that had less to do
	Processor  time.Duration // that the nodes' own code took, if it is measured
}

// Why a page was fetched again.
const (
	byDeath = iota // who fetched it died before it had said so
	byLinks        // links on it were not claimed yet when its host went to another node
	byMark         // word that it was fetched had not come to a backup
	bySplit        // a backup knew it; the network was cut not long ago, and each part of it crawls
	byOther        // a backup knew it
	causes
)

// What messages are about: the places in MeshFigures.
const (
	OverlayMessage = iota
	MeshMessage
	LinksMessage
	kindsOfMessages
)

// MessageKinds are their names.
var MessageKinds = [kindsOfMessages]string{"overlay", "mesh", "links"}

// A meshWorld is one run.
type meshWorld struct {
	narrative
	cfg   MeshConfig
	web   *web
	net   *network
	nodes []*meshNode // all that ever were
	named map[strategy.Node]*meshNode
	live  []*meshProcess

	sites   demands
	last    [][]*meshProcess    // who asked for a page, the last time, by host and page
	at      []*meshVisit        // the last one, by host
	fetch   moment              // when something was fetched, the last time
	records map[url][]meshPlace // where each page's records are, with a place
	wiped   moment              // when a disk was lost, the last time
	healed  moment              // when the network was whole again, the last time
	stall   time.Duration       // the longest that a host with something to do was not asked, beyond its delay
	calm    bool                // nothing goes wrong any more
	tried   int                 // names of hosts that were made up

	figures  MeshFigures
	ended    []moment // when a node took the crawl for ended
	gathered []mesh.Tally
}

// A meshVisit is a request.
type meshVisit struct {
	by   *meshProcess
	ends moment
}

func newMeshWorld(cfg MeshConfig, seed uint64) *meshWorld {
	w := &meshWorld{cfg: cfg, narrative: narrative{k: newKernel(seed), focus: -1}, named: map[strategy.Node]*meshNode{},
		web: newWeb(Config{Hosts: max(cfg.Hosts, 0), Pages: cfg.Pages, Delay: cfg.Delay}, hash(seed, 1))}
	w.net = &network{k: w.k, band: cfg.Bandwidth, loss: max(cfg.Loss, 0), slow: 1}
	// a map's corners are 1.41 times as far from each other as its sides
	w.net.latency = plane{seed: seed, least: cfg.Least, width: (cfg.Most - cfg.Least) * 5 / 7}
	if cfg.Matrix != nil {
		w.net.latency = cfg.Matrix
	}
	w.sites = make(demands, len(w.web.hosts))
	w.at = make([]*meshVisit, len(w.web.hosts))
	for _, s := range w.web.hosts {
		w.last = append(w.last, make([]*meshProcess, s.pages))
	}
	w.figures.Pages, w.records = w.web.pages, map[url][]meshPlace{}
	return w
}

func (w *meshWorld) run() {
	cfg := w.cfg
	for i := range cfg.Nodes {
		w.k.after(time.Duration(i)*cfg.Spread/time.Duration(cfg.Nodes), func() { w.join() })
	}
	begins := cfg.Spread + cfg.Quiet
	if cfg.Forming {
		begins = cfg.Quiet
		w.pass(0)
		w.seed()
	}
	w.pass(begins)
	if !cfg.Forming {
		w.seed()
	}
	faults := meshFaults{w: w}
	faults.begin()
	w.pass(begins + cfg.Turmoil)
	faults.end()
	w.tell("the faults end")
	rest := 0 // looks that have found all at rest, one after the other
	for end := begins + cfg.Turmoil + cfg.Limit; rest < 5; w.pass(w.k.now + 2*time.Second) {
		if rest++; w.unrest(1) != "" {
			rest = 0
		}
		if w.k.now > end {
			w.violate("not at rest %v after the last fault, nothing was fetched for %v: %s", cfg.Limit, w.k.now-w.fetch,
				w.unrest(20))
			break
		}
	}
	w.judge(begins)
}

func (w *meshWorld) pass(until moment) { w.k.run(until, func() bool { return false }) }

func (w *meshWorld) seed() { w.give(w.web.seeds) }

func (w *meshWorld) give(hosts int) {
	for i := range hosts {
		p := w.live[i%len(w.live)]
		w.sites.found([]url{at(int32(i), 0)}, w.k.now)
		p.offer(at(int32(i), 0))
		p.pump()
	}
	w.live[0].tell(mesh.Change{Data: []byte("has seeds")})
}

// unrest says what nodes have yet to do, for some nodes; "" if that is nothing.
func (w *meshWorld) unrest(most int) string {
	var all []string
	for _, p := range w.live {
		if s := p.unrest(); s != "" {
			if all = append(all, string(p.n.name)+": "+s); len(all) == most {
				break
			}
		}
	}
	return strings.Join(all, "; ")
}

func (p *meshProcess) unrest() string {
	switch {
	case p.paused:
		return "stands still"
	case p.leaving:
		return "is about to leave: " + p.peer.Machine().BusyReason()
	case p.out.Len() > 0:
		return fmt.Sprintf("%d links are to be claimed", p.out.Len())
	}
	for h, e := range p.n.disk.engine {
		if e.known&^e.said != 0 {
			return fmt.Sprintf("%s waits", p.w.web.hosts[h].name)
		}
	}
	return p.peer.Machine().BusyReason()
}

func (w *meshWorld) judge(began moment) {
	lost, u := w.sites.missing(w.web)
	if w.figures.Lost = lost; lost > 0 {
		w.violateOf(u.host(), "%s was never fetched: %s", w.web.name(u), w.whatIsKnown(u))
	}
	w.judgeRecords()
	w.figures.Virtual = w.fetch - began
	w.figures.Events = w.k.ran
	for _, p := range w.live {
		w.figures.count(p)
	}
}

// count adds what is counted of a process when it ends.
func (f *MeshFigures) count(p *meshProcess) {
	f.NodeTime += p.w.k.now - p.began
	s := p.peer.Overlay().Stats()
	f.LookUps.LookUps += s.LookUps
	f.LookUps.Asked += s.Asked
	f.LookUps.Hops += s.Hops
}

func (w *meshWorld) whatIsKnown(u url) (s string) {
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
				s += fmt.Sprintf(" engine known %v fetched %v said %v", e.known&u.bit() != 0, e.unsaid&u.bit() != 0,
					e.said&u.bit() != 0)
			}
			s += "; "
		}
	}
	return s + "no other disk has it"
}

func (w *meshWorld) request(p *meshProcess, u url, takes time.Duration) {
	h := u.host()
	w.tellOf(h, "%s asks for %s", p.n.name, w.web.name(u))
	visit := &meshVisit{p, w.k.now + takes}
	may := moment(0)
	if v := w.at[h]; v != nil {
		may = v.ends + w.web.hosts[h].delay
		w.polite(h, v, visit)
	}
	w.at[h] = visit
	w.figures.Requests++
	w.fetch = w.k.now
	last := &w.last[h][u&63]
	if w.sites[h].fetched&u.bit() != 0 {
		w.figures.Duplicates[w.cause(*last, u)]++
	}
	w.stall = max(w.stall, w.sites[h].fetch(u, w.k.now, may))
	*last = p
}

// polite holds a request to the host's delay after the last one. Parts of a network that is cut crawl on their own, and
// it takes a while until they agree again; so does a node that has stood still, whose hosts others have got, or that has
// just begun: what comes of that is counted.
func (w *meshWorld) polite(h int32, last, v *meshVisit) {
	site, counted := &w.web.hosts[h], &w.figures.Hasty
	switch {
	case last.by == v.by || last.by.ended || last.ends+site.delay <= w.k.now+time.Millisecond:
		return
	case last.ends > w.k.now:
		counted = &w.figures.Slips
	}
	*counted++
	lately := max(last.by.resumed, v.by.resumed, last.by.began, v.by.began, w.healed)
	if w.cfg.Polite && len(w.net.cuts) == 0 && w.k.now-lately > agreeing {
		w.violateOf(h, "%s asks %s, where a request of %s ends %v later: the delay is %v", v.by.n.name, site.name,
			last.by.n.name, last.ends-w.k.now, site.delay)
	}
}

// agreeing is how long nodes may take, after a cut or a pause, until no two of them take a host for their own.
const agreeing = time.Minute

// split reports whether the network is cut, or parts of it cannot know yet that it is whole again.
func (w *meshWorld) split() bool {
	return len(w.net.cuts) > 0 || w.healed > 0 && w.k.now-w.healed < 30*time.Second
}

// cause is why a page is fetched again that a process has fetched.
func (w *meshWorld) cause(by *meshProcess, u url) int {
	for _, p := range w.live {
		r := p.n.disk.history[u.host()]
		switch known := r != nil && r.done&u.bit() != 0; {
		case known && w.split():
			return bySplit
		case known:
			return byOther
		}
	}
	switch {
	case by.said[u.host()]&u.bit() != 0:
		return byMark
	case by.ended:
		return byDeath
	}
	return byLinks
}
