package mesh

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// A world is machines with histories, messages in transit and a clock that the test controls. All nodes know which
// nodes live.
type world struct {
	t      *testing.T
	now    time.Time
	nodes  map[strategy.Node]*worldNode
	live   []strategy.Node
	wires  []wire
	cut    func(from, to strategy.Node) bool // messages that are lost; nil: none
	lives  uint64
	late   map[strategy.Node]time.Duration // how much longer messages to a node take
	sent   int                             // messages
	limits []int64                         // pages of LimitReached actions
	lists  bool                            // the strategy is StrategyPaper
	share  func(strategy.Node) bool        // nodes with ShareCookies; nil: none
}

// A wire is a message in transit.
type wire struct {
	at       time.Time
	from, to strategy.Node
	data     []byte
}

// A worldNode is a node: its history, and the state of its present process.
type worldNode struct {
	name    strategy.Node
	history map[string]map[Hash]Link
	m       *Machine // nil if no process runs
	knows   []strategy.Node
	wake    time.Time
	answers []Answer
	takes   []Enqueue // passed to its engine
	fetched []Hash    // by its engine
	gave    int       // times that its engine has released a host
	busy    bool      // its engine is fetching the host: it releases it later
	routed  int
	pages   int64
	kept    map[strategy.Node]int64 // Counts of its last process
	tallies []Tally
	left    bool
	cookies string // of worldHost
	sent    string // the cookies that its engine had when it got the first links

	risks map[strategy.Node]map[string]int64 // lengths of lists of pages at risk
	safe  []uint64                           // ids of Safe actions
	lost  []strategy.Node                    // nodes of Lost actions
	reads bool                               // a lost node's storage location is being read until the test ends that

	rests    bool // the engine has no pending URLs
	ended    int  // times that it has detected the crawl's end
	doubted  []strategy.Node
	results  []string                 // of GatheredResults actions
	whole    []string                 // of Results actions, with the numbers of nodes
	reported map[strategy.Node]Result // Results of its last process
	limit    *limitedEngine           // nil: the page limit is not tested
}

func (n *worldNode) Closest(id xor.ID, most int) ([]strategy.Node, bool) {
	return everybody{n.name, n.knows}.Closest(id, most)
}
func (n *worldNode) Bucket(i int) []strategy.Node { return everybody{n.name, n.knows}.Bucket(i) }
func (n *worldNode) Occupied() xor.ID             { return everybody{n.name, n.knows}.Occupied() }
func (n *worldNode) Neighbors() []strategy.Node   { return everybody{n.name, n.knows}.Neighbors() }

const (
	worldHost  = "h.test"
	wireTime   = 20 * time.Millisecond
	worldPiece = 2 // links that are read at once
)

// newWorld returns a world of n nodes: the first is worldHost's first backup, the second the next, and so on.
func newWorld(t *testing.T, nodes int) *world { return newWorldWith(t, nodes, nil) }

// newWorldWith returns such a world, in which some nodes share cookies.
func newWorldWith(t *testing.T, nodes int, share func(strategy.Node) bool) *world {
	w := &world{t: t, now: time.Unix(1e9, 0), nodes: map[strategy.Node]*worldNode{}, share: share}
	for i := range nodes {
		name := strategy.Node(fmt.Sprintf("n%d~1", i))
		w.nodes[name] = &worldNode{name: name, history: map[string]map[Hash]Link{}}
		w.live = append(w.live, name)
	}
	w.live, _ = everybody{nodes: w.live}.Closest(xor.Of("backup", worldHost), nodes)
	for _, name := range w.live {
		w.start(name)
	}
	return w
}

// node returns the node at a position by closeness to worldHost; the first backup is 0.
func (w *world) node(i int) *worldNode { return w.nodes[w.live[i]] }

// start starts a process.
func (w *world) start(name strategy.Node) {
	n := w.nodes[name]
	w.lives++
	n.knows = slices.Clone(w.live)
	var terms Terms
	if w.lists {
		terms.Strategy = StrategyPaper
	}
	n.m = New(Config{Terms: terms, ShareCookies: w.share != nil && w.share(name), AbsentWait: 2 * time.Minute,
		Self: name, Overlay: n, Process: w.lives, LostAfter: time.Minute,
		HasPending: func(string) bool { return !n.rests },
		Earlier:    Earlier{MetOthers: len(n.history) > 0, Counts: n.kept, Risks: n.risks, Results: n.reported},
		Pages:      n.limit.config(n), Results: resultsOf(n),
		Status: StatusConfig{Pages: func() int64 { return n.pages },
			Figures: func() ([]int64, []uint64) { return []int64{n.pages}, nil }}})
	w.carry(n, n.m.Start(w.now, nil))
	for _, host := range sortedKeys(n.history) {
		links := n.history[host]
		open := 0
		for _, k := range links {
			if k.State == Dispatched {
				open++
			}
		}
		w.tell(n, Opened{Host: host, Open: open})
	}
	w.tell(n, NeighborsChanged{}, Fresh{w.now.Add(1000 * time.Hour)})
}

// gone notifies the other nodes that a node is gone.
func (w *world) gone(name strategy.Node, left bool) {
	w.nodes[name].m = nil
	w.live = slices.DeleteFunc(slices.Clone(w.live), func(n strategy.Node) bool { return n == name })
	w.meet(NodeGone{Node: name, Left: left, Near: true})
}

// come starts a node, and notifies the others.
func (w *world) come(name strategy.Node) {
	if w.nodes[name] == nil {
		w.nodes[name] = &worldNode{name: name, history: map[string]map[Hash]Link{}}
	}
	w.live, _ = everybody{nodes: append(w.live, name)}.Closest(xor.Of("backup", worldHost), len(w.live)+1)
	w.start(name)
	w.meet()
}

// meet updates all nodes' knowledge of the live ones.
func (w *world) meet(e ...Event) {
	for _, name := range w.live {
		n := w.nodes[name]
		n.knows = slices.Clone(w.live)
		w.tell(n, append(e, NeighborsChanged{})...)
	}
}

func (w *world) tell(n *worldNode, e ...Event) {
	if n.m != nil {
		w.carry(n, n.m.Step(w.now, e, nil))
	}
}

// pass advances the time.
func (w *world) pass(d time.Duration) {
	for end := w.now.Add(d); w.now.Before(end); w.now = w.now.Add(wireTime / 2) {
		due := 0
		for due < len(w.wires) && !w.wires[due].at.After(w.now) {
			due++
		}
		came := slices.Clone(w.wires[:due])
		w.wires = slices.Delete(w.wires, 0, due)
		for _, x := range came {
			if n := w.nodes[x.to]; n != nil && (w.cut == nil || !w.cut(x.from, x.to)) {
				w.tell(n, Message{x.from, x.data})
			}
		}
		for _, name := range w.live {
			if n := w.nodes[name]; !n.wake.IsZero() && !n.wake.After(w.now) {
				n.wake = time.Time{}
				w.tell(n, Tick{})
			}
		}
	}
}

func (w *world) carry(n *worldNode, actions []Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case Send:
			w.sent++
			w.wires = append(w.wires, wire{w.now.Add(wireTime + w.late[a.To]), n.name, a.To, a.Data})
			slices.SortStableFunc(w.wires, func(a, b wire) int { return a.at.Compare(b.at) })
		case Wake:
			n.wake = a.At
		case Find:
			nodes, _ := n.Closest(a.ID, a.Count)
			w.tell(n, Found{ID: a.ID, Nodes: nodes})
		case Record:
			w.tell(n, n.record(a))
		case Read:
			w.tell(n, n.read(a))
		case Sweep:
			var s Swept
			s.Hosts = slices.DeleteFunc(sortedKeys(n.history), func(h string) bool { return !a.In.Contains(w.backupID(h)) })
			w.tell(n, s)
		case Drop:
			delete(n.history, a.Host)
		case ReadCookies:
			w.tell(n, CookiesRead{ID: a.ID, Data: []byte(n.cookies)})
		case AddCookies:
			n.cookies += string(a.Data)
			w.tell(n, CookiesAdded{ID: a.ID})
		case Enqueue:
			if len(n.takes) == 0 {
				n.sent = n.cookies
			}
			n.takes = append(n.takes, a)
			done := make([]bool, len(a.Links))
			for i, k := range a.Links {
				done[i] = slices.Contains(n.fetched, k.Hash)
			}
			w.tell(n, Enqueued{ID: a.ID, Done: done})
		case Release:
			n.gave++
			if !n.busy {
				w.tell(n, Released{Host: a.Host})
			}
		case Answer:
			n.answers = append(n.answers, a)
		case Routed:
			n.routed++
		case Gathered:
			n.tallies = append(n.tallies, a.Tally)
		case ReadRisk:
			size := max(n.risks[a.Node][a.Name]-a.From, 0)
			w.tell(n, RiskRead{ID: a.ID, Data: make([]byte, min(size, int64(a.Most)))})
		case WriteRisk:
			n.grow(a.Node, a.Name, len(a.Data))
			w.tell(n, RiskWritten{ID: a.ID})
		case DropRisk:
			if delete(n.risks[a.Node], a.Name); a.Name == "" {
				delete(n.risks, a.Node)
			}
		case Safe:
			n.safe = append(n.safe, a.ID)
		case Lost:
			if n.lost = append(n.lost, a.Node); !n.reads {
				w.tell(n, Refetched{Node: a.Node})
			}
		case Left:
			n.left = true
		case Ended:
			n.ended++
		case GatheredResults:
			n.results = append(n.results, string(a.Data))
		case Results:
			n.whole = append(n.whole, fmt.Sprintf("%d: %s", a.Nodes, a.Data))
		case LimitReached:
			w.limits = append(w.limits, a.Pages)
		case Suspect:
			n.doubted = append(n.doubted, a.Node)
		}
	}
}

// grow makes a list of pages at risk grow.
func (n *worldNode) grow(of strategy.Node, file string, by int) {
	if n.risks == nil {
		n.risks = map[strategy.Node]map[string]int64{}
	}
	if n.risks[of] == nil {
		n.risks[of] = map[string]int64{}
	}
	n.risks[of][file] += int64(by)
}

func (w *world) backupID(host string) xor.ID { return xor.Of("backup", host) }

// atRisk has a node send its keepers more pages of a file.
func (w *world) atRisk(n *worldNode, id uint64, file string, by int) {
	n.grow(n.name, file, by)
	w.tell(n, AtRisk{ID: id, Lists: []RiskList{{Name: file, Size: n.risks[n.name][file]}}})
}

func (n *worldNode) record(a Record) Recorded {
	links := n.history[a.Host]
	if links == nil {
		links = map[Hash]Link{}
		n.history[a.Host] = links
	}
	r := Recorded{ID: a.ID}
	for _, k := range a.Links {
		old := links[k.Hash]
		before := old.State
		switch {
		case old.Visit > k.Visit:
			before = Done
		case old.Visit < k.Visit && (before != Dispatched || k.State == Dispatched), before == Scheduled:
			before = Unknown
		}
		r.Before = append(r.Before, before)
		if k.Visit > old.Visit || k.Visit == old.Visit && k.State != Scheduled && k.State > before {
			links[k.Hash] = k
		}
	}
	for _, k := range links {
		if k.State == Dispatched {
			r.Open++
		}
	}
	return r
}

func (n *worldNode) read(a Read) Known {
	k := Known{ID: a.ID}
	var all []Link
	for _, l := range n.history[a.Host] {
		some := a.All || l.State == Dispatched
		if a.Hashes != nil {
			some = slices.Contains(a.Hashes, l.Hash)
		}
		if some && string(l.Hash[:]) >= a.From {
			all = append(all, l)
		}
	}
	slices.SortFunc(all, func(a, b Link) int { return slices.Compare(a.Hash[:], b.Hash[:]) })
	if k.Links = all; len(all) > worldPiece {
		k.Links, k.Next = all[:worldPiece], string(all[worldPiece].Hash[:])
	}
	return k
}

// offer offers links of worldHost to a node, as a batch.
func (w *world) offer(to *worldNode, number uint64, links ...byte) {
	o := Offered{From: "finder~1", Number: number}
	for _, l := range links {
		o.Links = append(o.Links, HostLink{worldHost, Link{Hash: Hash{l}, Item: []byte{l}}})
	}
	w.tell(to, o)
}

// has reports whether a node has links of worldHost.
func (n *worldNode) has(links ...byte) bool {
	return !slices.ContainsFunc(links, func(l byte) bool { return n.history[worldHost][Hash{l}].State == Unknown })
}

// taken returns the numbers of batches that a node has answered with no link refused.
func (n *worldNode) taken() (all []uint64) {
	for _, a := range n.answers {
		if len(a.Refused) == 0 {
			all = append(all, a.Number)
		}
	}
	return all
}

// to matches messages to a node.
func to(n *worldNode) func(from, to strategy.Node) bool {
	return func(_, to strategy.Node) bool { return to == n.name }
}
