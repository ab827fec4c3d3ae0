package mesh

import (
	"cmp"
	"container/heap"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kumo/internal/member"
	"kumo/internal/strategy"
	"kumo/internal/xor"
)

// A world is machines in virtual time, each with a history, an engine, a disk and an overlay that knows all nodes some
// seconds after they have come or gone, over a network that loses messages, and a web of hosts whose pages link to each
// other.
type world struct {
	t     *testing.T
	rng   *rand.Rand
	cfg   worldConfig
	now   time.Time
	queue events
	seq   uint64
	nodes map[strategy.Node]*simNode // all that ever were
	order []strategy.Node
	ids   map[strategy.Node]xor.ID
	pages [][]url // links of each page
	began time.Time

	fetched    map[url]int
	under      map[int]*simNode // who asks a host just now
	slips      int              // requests to a host that another node asks at the same time
	duplicates int
	messages   int
	bytes      int
	last       time.Time // when something was fetched
	ended      []time.Time
	gathered   []Tally
}

type worldConfig struct {
	seed    uint64
	nodes   int
	hosts   int
	pages   int // of a host
	backups int
	loss    float64
	delay   time.Duration // of the network, twice that at most
	knows   time.Duration // until the overlay knows of who came or went, at most
}

type url struct{ host, page int }

func (u url) name() string { return fmt.Sprintf("h%d.test", u.host) }

func (u url) hash() (h Hash) {
	binary.BigEndian.PutUint32(h[:], uint32(u.host))
	binary.BigEndian.PutUint32(h[4:], uint32(u.page))
	return h
}

func urlOf(h Hash) url {
	return url{int(binary.BigEndian.Uint32(h[:])), int(binary.BigEndian.Uint32(h[4:]))}
}

type simEvent struct {
	at  time.Time
	seq uint64
	f   func()
}

type events []simEvent

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at.Before(e[j].at) || e[i].at.Equal(e[j].at) && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(simEvent)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func newWorld(t *testing.T, cfg worldConfig) *world {
	w := &world{t: t, cfg: cfg, rng: rand.New(rand.NewPCG(cfg.seed, 1)), now: time.Unix(1e9, 0),
		nodes: map[strategy.Node]*simNode{}, ids: map[strategy.Node]xor.ID{}, fetched: map[url]int{}, under: map[int]*simNode{}}
	w.began = w.now
	w.pages = make([][]url, cfg.hosts*cfg.pages)
	for i := range w.pages {
		host, page := i/cfg.pages, i%cfg.pages
		if page+1 < cfg.pages { // so that each can be reached
			w.pages[i] = append(w.pages[i], url{host, page + 1})
		}
		if page == 0 && host+1 < cfg.hosts {
			w.pages[i] = append(w.pages[i], url{host + 1, 0})
		}
		for range 5 {
			w.pages[i] = append(w.pages[i], url{host, w.rng.IntN(cfg.pages)})
		}
		for range 2 {
			w.pages[i] = append(w.pages[i], url{w.rng.IntN(cfg.hosts), w.rng.IntN(cfg.pages)})
		}
	}
	for range cfg.nodes {
		w.join()
	}
	return w
}

func (w *world) after(d time.Duration, f func()) {
	w.seq++
	heap.Push(&w.queue, simEvent{w.now.Add(d), w.seq, f})
}

func (w *world) between(a, b time.Duration) time.Duration {
	return a + time.Duration(w.rng.Int64N(int64(b-a)+1))
}

// run lets time pass.
func (w *world) run(d time.Duration) {
	end := w.now.Add(d)
	for len(w.queue) > 0 && !w.queue[0].at.After(end) {
		e := heap.Pop(&w.queue).(simEvent)
		w.now = e.at
		e.f()
	}
	w.now = end
}

// A disk is what of a node survives its process.
type disk struct {
	history map[string]map[Hash]Link
	engine  map[string]map[Hash]fetchState // known URLs by host
	links   map[uint64]HostLink            // outbox
	record  RecordVersion
}

// A fetchState is how far a URL has come that an engine knows.
type fetchState uint8

const (
	waiting fetchState = iota
	unsaid             // it was fetched, and links of it are not claimed yet
	said               // they are
)

// A mark is a page that was fetched, and the links that are to be claimed before it is said.
type mark struct {
	page  url
	links map[uint64]bool
}

type simNode struct {
	w               *world
	node            strategy.Node
	disk            *disk
	live            bool
	process         int
	paused          bool
	leaving         bool
	held            []func()
	knows           map[strategy.Node]bool
	buckets         map[int][]strategy.Node // of knows; nil: to be made
	machine         *Machine
	view            *View
	wake            uint64
	outbox          *member.Outbox
	offered         map[Hash]bool // links that were put into the outbox by this process
	asking          map[string]bool
	next            map[string]time.Time
	release         map[string]bool // hosts to be released
	inStep          bool
	inbox           []Event
	marks           []*mark
	fetched, before int
	waited          int64
}

// join lets a new node come.
func (w *world) join() *simNode {
	n := &simNode{w: w, node: strategy.Node(fmt.Sprintf("n%d~1", len(w.order)))}
	w.nodes[n.node], w.ids[n.node] = n, xor.Of("node", string(n.node))
	w.order = append(w.order, n.node)
	n.disk = &disk{map[string]map[Hash]Link{}, map[string]map[Hash]fetchState{}, map[uint64]HostLink{}, RecordVersion{}}
	n.start()
	return n
}

// start begins a process.
func (n *simNode) start() {
	w := n.w
	n.live, n.paused, n.held = true, false, nil
	n.process++
	n.knows, n.buckets = map[strategy.Node]bool{n.node: true}, nil
	n.offered, n.asking, n.next = map[Hash]bool{}, map[string]bool{}, map[string]time.Time{}
	n.release, n.inbox = map[string]bool{}, nil
	n.machine = New(Config{Self: n.node, Overlay: n, Backups: w.cfg.backups, Width: xor.Bits, Waits: n.waits,
		Engine: n.rests, Process: w.rng.Uint64(), Record: n.disk.record})
	n.outbox = member.NewOutbox(member.OutboxConfig{First: uint64(n.process) << 32})
	for _, id := range slices.Sorted(maps.Keys(n.disk.links)) {
		k := n.disk.links[id]
		n.outbox.Restore(id, k.Host, string(k.Item))
	}
	for _, other := range w.order {
		if o := w.nodes[other]; o != n && o.live {
			n.meet(o)
			o.meet(n)
		}
	}
	for _, host := range slices.Sorted(maps.Keys(n.disk.history)) {
		n.tell(Opened{host, open(n.disk.history[host])})
	}
	n.marks = nil
	for _, host := range slices.Sorted(maps.Keys(n.disk.engine)) {
		n.tell(Holding{host})
		for h, state := range n.disk.engine[host] {
			if state == unsaid {
				k := &mark{urlOf(h), map[uint64]bool{}}
				for id := range n.disk.links {
					k.links[id] = true
				}
				n.marks = append(n.marks, k)
			}
		}
	}
	slices.SortFunc(n.marks, func(a, b *mark) int {
		return cmp.Or(cmp.Compare(a.page.host, b.page.host), cmp.Compare(a.page.page, b.page.page))
	})
	n.sayMarks()
	n.tell(Neighbours{})
	n.view = n.machine.View()
	for _, a := range n.machine.Start(w.now, nil) {
		n.carryOut(a)
	}
	n.do(w.cfg.knows, n.refresh)
	n.do(w.between(0, 10*time.Second), n.load)
	n.do(w.between(0, 200*time.Millisecond), n.pump)
	n.do(w.between(0, 100*time.Millisecond), n.work)
}

// do has something done by the process, if it still lives.
func (n *simNode) do(d time.Duration, f func()) {
	process := n.process
	n.w.after(d, func() {
		switch {
		case !n.live || n.process != process:
		case n.paused:
			n.held = append(n.held, f)
		default:
			f()
		}
	})
}

// meet lets the overlay know another node, after a while.
func (n *simNode) meet(o *simNode) {
	process := o.process
	n.do(n.w.between(n.w.cfg.delay, n.w.cfg.knows), func() {
		if o.live && !o.leaving && o.process == process && !n.knows[o.node] {
			n.knows[o.node], n.buckets = true, nil
			n.tell(Neighbours{})
		}
	})
}

// refresh asks whoever answers first whether this node is still there.
func (n *simNode) refresh() {
	asked := n.w.now
	fresh := func() { n.tell(Fresh{asked.Add(n.w.cfg.knows)}) }
	if len(n.knows) == 1 {
		fresh()
	}
	all := slices.Sorted(maps.Keys(n.knows))
	n.w.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, to := range all[:min(4, len(all))] {
		if to != n.node {
			n.send(to, func(o *simNode) { o.send(n.node, func(*simNode) { fresh() }) })
		}
	}
	n.do(2*time.Second, n.refresh)
}

// kill ends a process.
func (n *simNode) kill() {
	n.live = false
	for h, who := range n.w.under {
		if who == n {
			delete(n.w.under, h)
		}
	}
	n.away()
}

// lose takes a disk away.
func (n *simNode) lose() { n.disk = nil }

// Closest and Bucket are the overlay.
func (n *simNode) Closest(id xor.ID, most int) ([]strategy.Node, bool) {
	near := n.w.nodes[n.node].id().FirstDiff(id) < xor.Bits-2
	return n.w.closest(slices.Sorted(maps.Keys(n.knows)), id, most), near
}

func (n *simNode) id() xor.ID { return n.w.ids[n.node] }

func (w *world) closest(all []strategy.Node, id xor.ID, most int) []strategy.Node {
	slices.SortFunc(all, func(a, b strategy.Node) int { return xor.Compare(w.ids[a], w.ids[b], id) })
	return all[:min(len(all), most)]
}

func (n *simNode) Bucket(i int) []strategy.Node {
	if n.buckets == nil {
		n.buckets = map[int][]strategy.Node{}
		for _, o := range slices.Sorted(maps.Keys(n.knows)) {
			if o != n.node {
				at := n.id().FirstDiff(n.w.ids[o])
				n.buckets[at] = append(n.buckets[at], o)
			}
		}
	}
	return n.buckets[i]
}

func (n *simNode) Occupied() (bits xor.ID) {
	n.Bucket(0)
	for i := range n.buckets {
		bits = bits.Set(i)
	}
	return bits
}

func (n *simNode) Neighbours() []strategy.Node {
	return slices.Delete(n.w.closest(slices.Sorted(maps.Keys(n.knows)), n.id(), 17), 0, 1)
}

func open(links map[Hash]Link) (n int) {
	for _, k := range links {
		if k.State == Dispatched {
			n++
		}
	}
	return n
}

// tell tells the machine something, after all it has been told.
func (n *simNode) tell(e Event) {
	if n.machine == nil {
		return
	}
	n.inbox = append(n.inbox, e)
	if n.inStep {
		return
	}
	n.inStep = true
	n.do(0, func() {
		n.inStep = false
		in := n.inbox
		n.inbox = nil
		for _, a := range n.machine.Step(n.w.now, in, nil) {
			n.carryOut(a)
		}
	})
}

func (n *simNode) disked() time.Duration { return n.w.between(5*time.Millisecond, 30*time.Millisecond) }

func (n *simNode) carryOut(a Action) {
	w := n.w
	switch a := a.(type) {
	case Send:
		w.messages++
		w.bytes += len(a.Data)
		n.send(a.To, func(o *simNode) { o.tell(Message{n.node, slices.Clone(a.Data)}) })
	case Find:
		live := slices.DeleteFunc(slices.Clone(w.order), func(o strategy.Node) bool { return !w.nodes[o].live || w.nodes[o].leaving })
		found := w.closest(live, a.ID, a.Want)
		n.do(w.between(2*w.cfg.delay, 10*w.cfg.delay), func() { n.tell(Found{a.ID, found}) })
	case Answer:
		n.send(a.To, func(o *simNode) {
			for _, r := range o.outbox.Answered(n.node, a.Number, a.Refused, w.now) {
				for id := r.First; id <= r.Last; id++ {
					o.claimed(id)
				}
			}
			o.sayMarks()
		})
	case Record:
		n.do(n.disked(), func() {
			h := n.disk.history[a.Host]
			if h == nil {
				h = map[Hash]Link{}
				n.disk.history[a.Host] = h
			}
			r := Recorded{ID: a.ID}
			for _, k := range a.Links {
				before := h[k.Hash].State
				r.Before = append(r.Before, before)
				if k.State > before {
					k.Item = slices.Clone(k.Item)
					if k.State == Done {
						k.Item = nil
					}
					h[k.Hash] = k
				}
			}
			r.Open = open(h)
			n.tell(r)
		})
	case Read:
		n.do(n.disked(), func() {
			all := slices.SortedFunc(maps.Values(n.disk.history[a.Host]), func(x, y Link) int {
				return slices.Compare(x.Hash[:], y.Hash[:])
			})
			k := Known{ID: a.ID}
			for _, link := range all {
				if string(link.Hash[:]) < a.From || !a.All && link.State == Done {
					continue
				}
				if len(k.Links) == 7 {
					k.Next = string(link.Hash[:])
					break
				}
				k.Links = append(k.Links, link)
			}
			n.tell(k)
		})
	case Sweep:
		n.do(n.disked(), func() {
			var s Swept
			for _, host := range slices.Sorted(maps.Keys(n.disk.history)) {
				if host < a.From {
					continue
				}
				if len(s.Hosts) == 5 {
					s.Next = host
					break
				}
				s.Hosts = append(s.Hosts, host)
			}
			n.tell(s)
		})
	case Drop:
		n.do(n.disked(), func() { delete(n.disk.history, a.Host) })
	case Take:
		n.do(n.disked(), func() {
			e := n.disk.engine[a.Host]
			if e == nil {
				e = map[Hash]fetchState{}
				n.disk.engine[a.Host] = e
				n.next[a.Host] = w.now.Add(time.Second)
			}
			t := Taken{ID: a.ID}
			for _, k := range a.Links {
				e[k.Hash] = e[k.Hash] // known from now on
				t.Done = append(t.Done, e[k.Hash] == said)
			}
			n.tell(t)
		})
	case Release:
		n.release[a.Host] = true
		n.releases(a.Host)
	case Publish:
		n.view = a.View
	case Routed:
		n.outbox.Wake(a.Hosts)
	case Wake:
		n.wake++
		wake := n.wake
		n.do(a.At.Sub(w.now), func() {
			if n.wake == wake {
				n.tell(Tick{})
			}
		})
	case Left:
		n.left()
	case Spare:
		s := Spared{To: a.To}
		for _, host := range slices.Sorted(maps.Keys(n.disk.engine)) {
			if left := n.waitingOf(host); left > 0 && a.URLs > 0 && !n.asking[host] {
				s.Hosts = append(s.Hosts, host)
				a.URLs -= left
			}
		}
		n.tell(s)
	case Changed:
		n.disk.record = a.Record
	case Gathered:
		w.gathered = append(w.gathered, a.Tally)
	case Ended:
		if a.Version != n.disk.record.Version {
			return // a seed has come since
		}
		w.ended = append(w.ended, w.now)
		if len(w.fetched) < len(w.pages) && len(w.fetched) > 0 {
			w.t.Errorf("seed %d: %s takes the crawl for ended after %v, with %d pages, by %d nodes, of %d that live", w.cfg.seed, n.node,
				w.now.Sub(w.began), len(w.fetched), a.Nodes, len(w.live()))
			for _, o := range w.live() {
				w.t.Log(o.node, o.machine.Idle(), o.paused, len(o.marks), o.outbox.Len(), len(o.knows))
			}
		}
	default:
		w.t.Fatalf("%T", a)
	}
}

func (n *simNode) releases(host string) {
	if n.release[host] && !n.asking[host] && !slices.ContainsFunc(n.marks, func(k *mark) bool { return k.page.name() == host }) {
		delete(n.release, host)
		n.do(n.disked(), func() {
			delete(n.disk.engine, host)
			n.tell(Released{host})
		})
	}
}

// send carries something to another node.
func (n *simNode) send(to strategy.Node, f func(o *simNode)) {
	w := n.w
	o := w.nodes[to]
	if to != n.node && w.rng.Float64() < w.cfg.loss || o == nil {
		return
	}
	o.do(w.between(w.cfg.delay, 2*w.cfg.delay), func() { f(o) })
}

// pump sends links.
func (n *simNode) pump() {
	w := n.w
	for _, b := range n.outbox.Batches(w.now, n.machine.First) {
		links := decode(b.Data)
		n.send(b.To, func(o *simNode) { o.tell(Offered{n.node, b.Number, links}) })
	}
	if hosts := n.outbox.Wanted(); len(hosts) > 0 {
		n.tell(Wanted{hosts})
	}
	n.do(100*time.Millisecond, n.pump)
}

func decode(data []byte) (links []HostLink) {
	for data = data[1:]; len(data) > 0; {
		size, n := binary.Uvarint(data)
		item := data[n : n+int(size)]
		data = data[n+int(size):]
		u := urlOf(Hash(item))
		links = append(links, HostLink{u.name(), Link{Hash: u.hash(), Item: item}})
	}
	return links
}

// sayMarks says which pages were fetched, once their links are claimed: whoever loses them then, others know them.
func (n *simNode) sayMarks() {
	var over []string
	n.marks = slices.DeleteFunc(n.marks, func(k *mark) bool {
		if len(k.links) > 0 {
			return false
		}
		if e := n.disk.engine[k.page.name()]; e != nil {
			e[k.page.hash()] = said
		}
		n.tell(Finished{k.page.name(), []Hash{k.page.hash()}})
		over = append(over, k.page.name())
		return true
	})
	for _, host := range over {
		n.releases(host)
	}
}

// claimed notes that a link is in the history of its backups.
func (n *simNode) claimed(id uint64) {
	delete(n.disk.links, id)
	for _, k := range n.marks {
		delete(k.links, id)
	}
}

// offer puts a link into the outbox, if it was not met before.
func (n *simNode) offer(u url) uint64 {
	h := u.hash()
	if _, known := n.disk.engine[u.name()][h]; known || n.offered[h] {
		return 0
	}
	n.offered[h] = true
	id := n.outbox.Put(u.name(), string(h[:]))
	n.disk.links[id] = HostLink{u.name(), Link{Item: h[:]}}
	return id
}

func (n *simNode) waits(host string) bool {
	if n.asking[host] {
		return true
	}
	for _, state := range n.disk.engine[host] {
		if state != said {
			return true
		}
	}
	return false
}

func (n *simNode) waitingOf(host string) (left int64) {
	for _, state := range n.disk.engine[host] {
		if state == waiting {
			left++
		}
	}
	return left
}

// load says what there is to do.
func (n *simNode) load() {
	l := Load{Busy: true, Rate: float64(n.fetched-n.before) / 10}
	n.before = n.fetched
	for host := range n.disk.engine {
		l.Waiting += n.waitingOf(host)
	}
	l.Arriving = max(0, float64(l.Waiting-n.waited)/10+l.Rate)
	n.waited = l.Waiting
	n.tell(l)
	n.do(10*time.Second, n.load)
}

// work asks hosts whose time has come.
func (n *simNode) work() {
	w := n.w
	for _, host := range slices.Sorted(maps.Keys(n.disk.engine)) {
		if n.asking[host] || n.next[host].After(w.now) || !n.view.Ours(host) || !w.now.Before(n.view.Until()) {
			continue
		}
		all := n.disk.engine[host]
		for _, h := range slices.SortedFunc(maps.Keys(all), func(a, b Hash) int { return slices.Compare(a[:], b[:]) }) {
			if all[h] == waiting {
				n.fetch(urlOf(h))
				break
			}
		}
	}
	n.do(100*time.Millisecond, n.work)
}

func (n *simNode) fetch(u url) {
	w, host := n.w, u.name()
	n.asking[host] = true
	n.fetched++
	if w.under[u.host] != nil {
		w.slips++
	}
	w.under[u.host] = n
	if w.fetched[u]++; w.fetched[u] > 1 {
		w.duplicates++
	}
	w.last = w.now
	n.do(w.between(50*time.Millisecond, 400*time.Millisecond), func() {
		if w.under[u.host] == n {
			delete(w.under, u.host)
		}
		n.asking[host] = false
		n.next[host] = w.now.Add(time.Second)
		if e := n.disk.engine[host]; e != nil {
			e[u.hash()] = unsaid
		}
		k := &mark{u, map[uint64]bool{}}
		for _, link := range w.pages[u.host*w.cfg.pages+u.page] {
			if id := n.offer(link); id > 0 {
				k.links[id] = true
			}
		}
		n.marks = append(n.marks, k)
		n.sayMarks()
	})
}

// leave asks a node to leave.
func (n *simNode) leave() {
	if !n.leaving {
		n.leaving = true
		n.tell(Leave{})
		n.away()
	}
}

// left ends a node that has given all it had to others.
func (n *simNode) left() {
	if n.outbox.Len() > 0 {
		n.do(time.Second, n.left)
		return
	}
	n.kill()
	if len(n.disk.engine) > 0 || len(n.disk.history) > 0 {
		n.w.t.Errorf("seed %d: %s has left with %d hosts, and %d in its history", n.w.cfg.seed, n.node,
			len(n.disk.engine), len(n.disk.history))
	}
	n.lose()
}

// pause stops a process as a machine that sleeps does. To others it is gone if it sleeps for long.
func (n *simNode) pause(d time.Duration) {
	if n.paused || !n.live {
		return
	}
	n.paused = true
	process := n.process
	if d > n.w.cfg.knows {
		n.away()
	}
	n.w.after(d, func() {
		if !n.live || n.process != process {
			return
		}
		n.paused = false
		held := n.held
		n.held = nil
		for _, f := range held {
			f()
		}
		for _, name := range n.w.order {
			if o := n.w.nodes[name]; o.live && o != n {
				o.meet(n)
			}
		}
	})
}

// away lets others know that a node does not answer.
func (n *simNode) away() {
	for _, name := range n.w.order {
		o := n.w.nodes[name]
		if !o.live || o == n {
			continue
		}
		process := n.process
		o.do(n.w.between(n.w.cfg.delay, n.w.cfg.knows), func() {
			if o.knows[n.node] && (!n.live || n.paused || n.leaving || n.process != process) {
				delete(o.knows, n.node)
				o.buckets = nil
				o.tell(Gone{n.node})
				o.tell(Neighbours{})
				if n.live && !n.paused && !n.leaving { // it has begun again meanwhile
					o.meet(n)
				}
			}
		})
	}
}

func (w *world) live() (all []*simNode) {
	for _, name := range w.order {
		if w.nodes[name].live {
			all = append(all, w.nodes[name])
		}
	}
	return all
}

// rests reports whether the engine and the outbox have nothing to do.
func (n *simNode) rests() (bool, uint64) {
	if n.outbox.Len() > 0 {
		return false, 0
	}
	for host := range n.disk.engine {
		if n.waits(host) {
			return false, 0
		}
	}
	return true, 0
}

// idle reports whether nothing is left to do.
func (w *world) idle() bool {
	for _, n := range w.live() {
		if !n.machine.Idle() || n.outbox.Len() > 0 || n.paused {
			return false
		}
		for host := range n.disk.engine {
			if n.waits(host) {
				return false
			}
		}
	}
	return true
}

// settle lets the crawl end, and fails if it does not.
func (w *world) settle(most time.Duration) {
	for end := w.now.Add(most); ; w.run(time.Second) {
		if w.idle() {
			return
		}
		if w.now.After(end) {
			w.t.Errorf("seed %d: not idle %v after the last fault, nothing was fetched for %v", w.cfg.seed, most,
				w.now.Sub(w.last))
			w.dump()
			return
		}
	}
}

func (w *world) dump() {
	for _, n := range w.live() {
		m := n.machine
		w.t.Logf("%s: recording %d taking %d inbound %d offers %d outbox %d lanes %d", n.node, len(m.recording),
			len(m.taking), len(m.inbound), len(m.offers), n.outbox.Len(), len(m.lanes))
		for host, h := range m.hosts {
			if h.first {
				w.t.Logf("  %s: %+v", host, *h)
			}
		}
		for host := range n.disk.engine {
			if n.waits(host) {
				w.t.Logf("  waits at %s: ours %v", host, n.view.Ours(host))
			}
		}
	}
}

// judge looks whether all was fetched.
func (w *world) judge() {
	for i := range w.pages {
		u := url{i / w.cfg.pages, i % w.cfg.pages}
		if w.fetched[u] == 0 {
			w.t.Errorf("seed %d: page %d of %s was never fetched", w.cfg.seed, u.page, u.name())
			w.explain(u)
			return
		}
	}
}

func (w *world) explain(u url) {
	for _, name := range w.order {
		n := w.nodes[name]
		if n.disk == nil {
			continue
		}
		k, in := n.disk.history[u.name()][u.hash()]
		done, has := n.disk.engine[u.name()][u.hash()]
		if in || has {
			w.t.Logf("%s (live %v): in history %v, state %d; in engine %v, done %v", name, n.live, in, k.State, has, done)
		}
	}
}

// begin gives a seed to a node.
func (w *world) begin() {
	n := w.live()[0]
	n.tell(Change{[]byte("has seeds")})
	n.offer(url{0, 0})
}
