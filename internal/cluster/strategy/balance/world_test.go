package balance

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/balance/model"
	"kumo/internal/cluster/strategy/central"
	"kumo/internal/cluster/strategy/central/centraltest"
)

// fiveNodes are the nodes in the paper's table.
var fiveNodes = []strategy.Machine{
	{Cores: 4, GHz: 2.4, MemoryGB: 4, NetworkMbps: 18, DiskMbps: 18},
	{Cores: 4, GHz: 2.4, MemoryGB: 4, NetworkMbps: 5, DiskMbps: 18},
	{Cores: 4, GHz: 2.4, MemoryGB: 1, NetworkMbps: 12, DiskMbps: 3},
	{Cores: 4, GHz: 2.6, MemoryGB: 3, NetworkMbps: 2, DiskMbps: 1.5},
	{Cores: 1, GHz: 2.4, MemoryGB: 3, NetworkMbps: 12, DiskMbps: 1},
}

// pageTime returns how many seconds an otherwise idle machine takes for a page of the mean size, which depends on its
// slowest resource.
func pageTime(m strategy.Machine) float64 {
	processors := 0.1 + 0.3*2.4/m.GHz/math.Pow(m.Cores, 0.3)*(1+0.9/m.MemoryGB)
	return 2 * max(processors, 3.6/m.NetworkMbps, 0.5/m.DiskMbps)
}

// A world simulates nodes that fetch. Each divides the capacity of its machine among the pages in progress. Links wait
// at their finders until their hosts have owners; hosts move by epochs.
type world struct {
	*centraltest.Cluster
	t       *testing.T
	rng     *rand.Rand
	workers int
	speed   float64                         // of all machines, relative to pageTime
	paused  bool                            // no page is started
	every   time.Duration                   // between load reports
	lag     map[strategy.Node]time.Duration // of messages to and from nodes
	nodes   map[strategy.Node]*fetcher
	total   int     // URLs
	effort  float64 // of URLs, in mean pages
	fetched map[string]int
	began   time.Time
	epoch   uint64
	moving  []centraltest.Move
	movedAt time.Time            // arrival time of the moving hosts
	moved   int                  // hosts
	settle  func() time.Duration // duration of a move
	after   func(w *world)

	beyond int // excluded links on each page, each to a host of its own
	far    int // such links so far
}

// A fetcher is a node's engine.
type fetcher struct {
	machine strategy.Machine
	slow    float64             // factor of the time per page
	queues  map[string][]string // URLs by host
	links   map[string][]string // found here, for hosts without a known owner
	lanes   []lane
	under   []*visit
	pages   int64
	surplus float64   // work of the last tick beyond the end of a page
	taken   int64     // links
	end     time.Time // end of the last page
	loadAt  time.Time
	wantAt  time.Time
	gone    bool
}

// A lane is a set of links in transit.
type lane struct {
	at    time.Time
	to    strategy.Node
	host  string
	links []string
}

type visit struct {
	host, url string
	left      float64 // work, in mean pages
}

func newWorld(t *testing.T, seed uint64, splitter Splitter, machines []strategy.Machine, given []byte) *world {
	t.Helper()
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 7)), workers: 8, speed: 1, every: time.Second / 5,
		settle: func() time.Duration { return 1500 * time.Millisecond }, nodes: map[strategy.Node]*fetcher{},
		fetched: map[string]int{}, epoch: 1}
	var names []strategy.Node
	for i, m := range machines {
		n := strategy.Node(fmt.Sprintf("n%d~1", i+1))
		names = append(names, n)
		w.nodes[n] = &fetcher{machine: m, slow: 1, queues: map[string][]string{}, links: map[string][]string{}}
	}
	w.Cluster = centraltest.New(func(n strategy.Node) *central.Strategy {
		cfg := LAN()
		cfg.Self, cfg.Splitter, cfg.Seed = n, splitter, seed
		return New(cfg)
	}, names...)
	w.Queues = w.spare
	w.Delay = func(from, to strategy.Node) time.Duration { return max(w.lag[from], w.lag[to]) }
	for _, n := range names {
		if given != nil {
			w.Post(n, strategy.UserData{Data: given})
		}
	}
	w.pass(8 * time.Second) // until there is a leader and nodes have reported their machines
	return w
}

// find gives a node links to a number of URLs of one site, in slices.
func (w *world) find(n strategy.Node, urls, slices int) {
	if w.total == 0 {
		w.began = w.Now
	}
	for i := range urls {
		h := fnv.New32a()
		url := fmt.Sprintf("/page%d", w.total+i)
		_, _ = h.Write([]byte(url))
		host := fmt.Sprintf("site.example#%d of %d", h.Sum32()%uint32(slices), slices)
		w.nodes[n].links[host] = append(w.nodes[n].links[host], url)
	}
	w.total += urls
}

func (w *world) spare(n strategy.Node) (queues []strategy.Queue) {
	for host, urls := range w.nodes[n].queues {
		if len(urls) > 0 {
			queues = append(queues, strategy.Queue{Host: host, Pending: len(urls), Busy: w.nodes[n].fetches(host)})
		}
	}
	slices.SortFunc(queues, func(a, b strategy.Queue) int {
		return cmp.Or(cmp.Compare(b.Pending, a.Pending), cmp.Compare(a.Host, b.Host))
	})
	return queues
}

const tick = 20 * time.Millisecond

// pass advances the time.
func (w *world) pass(d time.Duration) {
	for end := w.Now.Add(d); w.Now.Before(end); {
		for _, n := range w.living() {
			w.work(n)
			w.send(n)
			w.report(n)
		}
		w.carry()
		if w.after != nil {
			w.after(w)
		}
		w.Run(tick)
	}
}

func (w *world) living() []strategy.Node {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(w.nodes)), func(n strategy.Node) bool { return w.nodes[n].gone })
}

func (w *world) owns(n strategy.Node, host string) bool {
	o, s := w.Nodes[n].View().Owner(host)
	return o == n && s == strategy.Owned
}

// leftOut is a link that a rule excludes: its host's owner records it, and fetches nothing.
const leftOut = ""

func toFetch(links []string) []string {
	return slices.DeleteFunc(slices.Clone(links), func(url string) bool { return url == leftOut })
}

// work continues the pages in progress, and starts others, one per host at a time.
func (w *world) work(n strategy.Node) {
	f := w.nodes[n]
	if share := tick.Seconds() * w.speed / pageTime(f.machine) / f.slow / float64(max(1, len(f.under))); len(f.under) > 0 {
		f.under = slices.DeleteFunc(f.under, func(v *visit) bool {
			if v.left -= share; v.left > 0 {
				return false
			}
			f.pages++
			f.end = w.Now
			f.surplus -= v.left
			w.fetched[v.url]++
			for range w.beyond {
				w.far++
				f.links[fmt.Sprintf("site.example#far %d", w.far)] = []string{leftOut}
			}
			return true
		})
	}
	for _, host := range slices.Sorted(maps.Keys(f.queues)) {
		if len(f.under) >= w.workers || w.paused {
			return
		}
		urls := f.queues[host]
		busy := slices.ContainsFunc(f.under, func(v *visit) bool { return v.host == host })
		if busy || len(urls) == 0 || !w.owns(n, host) {
			continue
		}
		f.queues[host] = urls[1:]
		size := 0.5 + w.rng.Float64()
		w.effort += size
		f.under = append(f.under, &visit{host, urls[0], size - f.surplus})
		f.surplus = 0
	}
}

// send sends links to the owners of their hosts, and requests owners for the others. A node refuses links to hosts that
// it does not own.
func (w *world) send(n strategy.Node) {
	f := w.nodes[n]
	var wanted strategy.OwnersNeeded
	for _, host := range slices.Sorted(maps.Keys(f.links)) {
		switch o, s := w.Nodes[n].View().Owner(host); {
		case s != strategy.Unknown:
			f.lanes = append(f.lanes, lane{w.Now.Add(200*time.Millisecond + w.lag[n]), o, host, f.links[host]})
			delete(f.links, host)
		case !f.wantAt.After(w.Now):
			wanted.Hosts, wanted.Links = append(wanted.Hosts, host), append(wanted.Links, len(toFetch(f.links[host])))
		}
	}
	if len(wanted.Hosts) > 0 {
		f.wantAt = w.Now.Add(500 * time.Millisecond)
		w.Post(n, wanted)
	}
	f.lanes = slices.DeleteFunc(f.lanes, func(l lane) bool {
		if l.at.After(w.Now) {
			return false
		}
		if to := w.nodes[l.to]; !to.gone && w.owns(l.to, l.host) {
			come := toFetch(l.links)
			to.queues[l.host] = append(to.queues[l.host], come...)
			to.taken += int64(len(come))
		} else {
			f.links[l.host] = append(f.links[l.host], l.links...)
			if !to.gone {
				w.Post(l.to, strategy.OwnersNeeded{Hosts: []string{l.host}})
			}
		}
		return true
	})
}

// report reports the node's load several times a second; the strategy sends some of the reports.
func (w *world) report(n strategy.Node) {
	f := w.nodes[n]
	if f.loadAt.After(w.Now) {
		return
	}
	f.loadAt = w.Now.Add(w.every)
	e := strategy.Load{Node: n, Fetching: len(f.under), Busy: float64(len(f.under)) / float64(w.workers), Pages: f.pages,
		Enqueued: f.taken, Paused: w.paused, Rate: w.speed / pageTime(f.machine) / f.slow,
		Machine: f.machine}
	for _, urls := range f.queues {
		if e.Pending += int64(len(urls)); len(urls) > 0 {
			e.Hosts++
		}
	}
	w.Post(n, e)
}

// fetches reports whether a fetch from a host is in progress.
func (f *fetcher) fetches(host string) bool {
	return slices.ContainsFunc(f.under, func(v *visit) bool { return v.host == host })
}

// carry moves hosts: the moves of all nodes together take one and a half seconds. A host with a fetch in progress waits
// for its end.
func (w *world) carry() {
	if len(w.moving) == 0 {
		var all []strategy.Move
		for i := range w.Moves {
			m := &w.Moves[i]
			var quiet, busy []string
			for _, host := range m.Hosts {
				if w.nodes[m.From].fetches(host) {
					busy = append(busy, host)
				} else {
					quiet = append(quiet, host)
					all = append(all, strategy.Move{Host: host, From: m.From, To: m.To})
				}
			}
			if len(quiet) > 0 {
				w.moving = append(w.moving, centraltest.Move{HandOver: strategy.HandOver{Hosts: quiet, To: m.To}, From: m.From})
			}
			m.Hosts = busy
		}
		w.Moves = slices.DeleteFunc(w.Moves, func(m centraltest.Move) bool { return len(m.Hosts) == 0 })
		if len(w.moving) == 0 {
			return
		}
		w.movedAt = w.Now.Add(w.settle())
		w.epoch++
		w.Members(w.epoch, w.epoch-1, all...)
	}
	if w.movedAt.After(w.Now) {
		return
	}
	for _, m := range w.moving {
		for _, host := range m.Hosts {
			if o := w.Owners(host); len(o) > 0 {
				w.t.Errorf("%s is %v's while it moves to %s", host, o, m.To)
			}
			w.nodes[m.To].queues[host] = append(w.nodes[m.To].queues[host], w.nodes[m.From].queues[host]...)
			delete(w.nodes[m.From].queues, host)
			w.moved++
		}
		w.Post(m.To, strategy.Held{Hosts: m.Hosts})
	}
	w.moving = nil
	w.Members(w.epoch, w.epoch)
}

// kill kills a node. Seconds later the other nodes notice, and others own its hosts, including the pages in progress.
func (w *world) kill(n strategy.Node) {
	f := w.nodes[n]
	f.gone = true
	delete(w.Nodes, n)
	at, heir := w.Now.Add(6*time.Second), 0
	before := w.after
	w.after = func(w *world) {
		if before != nil {
			before(w)
		}
		if at.IsZero() || at.After(w.Now) || len(w.moving) > 0 {
			return
		}
		at = time.Time{}
		w.epoch++
		w.Members(w.epoch, w.epoch-1)
		held := map[strategy.Node][]string{}
		for _, v := range f.under {
			f.queues[v.host] = append(f.queues[v.host], v.url)
		}
		for _, l := range f.lanes {
			f.links[l.host] = append(f.links[l.host], l.links...)
		}
		for _, host := range slices.Sorted(maps.Keys(f.queues)) {
			to := w.living()[heir%len(w.living())]
			heir++
			w.nodes[to].queues[host] = append(w.nodes[to].queues[host], f.queues[host]...)
			held[to] = append(held[to], host)
		}
		for host, links := range f.links {
			to := w.nodes[w.living()[0]]
			to.links[host] = append(to.links[host], links...)
		}
		for to, hosts := range held {
			w.Post(to, strategy.Held{Hosts: hosts})
		}
		w.Members(w.epoch, w.epoch)
	}
}

// A run is the result of a world.
type run struct {
	time, tail time.Duration
	share      float64 // of the combined pace of all machines
}

// finish runs until all URLs are fetched.
func (w *world) finish() run {
	w.t.Helper()
	for limit := w.Now.Add(time.Hour); len(w.fetched) < w.total; w.pass(time.Second / 4) {
		if w.Now.After(limit) {
			w.t.Fatalf("after an hour %d of %d URLs are fetched: %v", len(w.fetched), w.total, w.Nodes[w.Leader()])
		}
	}
	for url, n := range w.fetched {
		if n > 1 {
			w.t.Errorf("%s is fetched %d times", url, n)
		}
	}
	first, last, pace := time.Time{}, time.Time{}, 0.0
	for _, n := range w.living() {
		f := w.nodes[n]
		if first.IsZero() || f.end.Before(first) {
			first = f.end
		}
		if f.end.After(last) {
			last = f.end
		}
		pace += w.speed / pageTime(f.machine) / f.slow
	}
	r := run{time: last.Sub(w.began), tail: last.Sub(first)}
	r.share = w.effort / pace / r.time.Seconds()
	return r
}

// ends returns how long before the last node the first one finishes, as a share of the run.
func (r run) ends() float64 { return r.tail.Seconds() / r.time.Seconds() }

func (r run) String() string {
	return fmt.Sprintf("%.1f s, the first node done %.1f s before the last (%.1f %%), %.3f of the sum of speeds",
		r.time.Seconds(), r.tail.Seconds(), 100*r.tail.Seconds()/r.time.Seconds(), r.share)
}

// samplesOf returns the samples that a leader has collected in other runs.
func samplesOf(t *testing.T, runs int) []byte {
	return collectSamples(t, runs, func(seed uint64) *world {
		w := newWorld(t, seed, Exact, fiveNodes, nil)
		w.find("n1~1", 500, 256)
		return w
	})
}

// collectSamples returns the samples of the worlds that start returns.
func collectSamples(t *testing.T, runs int, start func(seed uint64) *world) []byte {
	var all []model.Sample
	for i := range runs {
		w := start(uint64(100 + i))
		w.finish()
		all = append(all, w.samples()...)
	}
	data, err := EncodeSamples(all)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d samples of %d runs", len(all), runs)
	return data
}
