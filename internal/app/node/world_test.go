package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kumo/internal/app/node"
	"kumo/internal/base/weburl"
	"kumo/internal/cluster/bus/inproc"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/driver"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/shard"
	"kumo/internal/state/frontier"
)

// A world has a few nodes in one process, with engines that crawl an artificial web. An engine's data is immediately
// durable and replicated.
type world struct {
	t       *testing.T
	hub     *inproc.Hub
	control node.Control
	hosts   int // of the web
	pages   int // per host

	mu      sync.Mutex
	fetched map[string][]fetched
	shared  map[strategy.Node]*holding // the replicated logs
	tally   map[string]bool            // known scope seeds, by node and URL
	spoilt  int                        // number of recoveries that will fail
	apart   func(node, host string) bool
	mind    func(strategy.Node) strategy.Strategy // nil: shard
}

type fetched struct {
	by   strategy.Node
	when time.Time
}

// A holding is the data of a node.
type holding struct {
	mu      sync.Mutex
	sealed  bool
	joined  bool
	known   map[string]bool // URLs
	waiting map[string]bool
	part    map[member.Transfer][]string // hosts received in incomplete transfers
	latest  map[string]uint64            // unfinalized epochs in which hosts were received last
	arrived []member.Transfer
	forgot  []member.Transfer
	outbox  map[uint64]string
}

var errSealed = errors.New("sealed")

func newWorld(t *testing.T, hosts, pages int) *world {
	w := &world{t: t, hub: inproc.New(1), hosts: hosts, pages: pages, fetched: map[string][]fetched{},
		shared: map[strategy.Node]*holding{}, tally: map[string]bool{}}
	b, err := w.hub.Join("control")
	if err != nil {
		t.Fatal(err)
	}
	w.control = node.Control{Registry: b}
	return w
}

func (w *world) url(host, page int) string { return fmt.Sprintf("http://h%d.test/%d", host, page) }

// links returns the links of a page: to the next one of its host, and to some elsewhere.
func (w *world) links(url string) []string {
	var host, page int
	if _, err := fmt.Sscanf(url, "http://h%d.test/%d", &host, &page); err != nil {
		w.t.Errorf("%s is not of this web", url)
		return nil
	}
	all := []string{w.url(host, (page+1)%w.pages)}
	for i := range 3 {
		h := fnv.New32a()
		fmt.Fprint(h, url, i)
		n := int(h.Sum32())
		all = append(all, w.url(n%w.hosts, n/w.hosts%w.pages))
	}
	return append(all, w.url((host+1)%w.hosts, 0))
}

func hostOf(url string) string { return strings.Split(url, "/")[2] }

// A testNode is a node that is running, or was.
type testNode struct {
	w      *world
	id     node.Identity
	n      *node.Node
	router *node.Router
	*holding
	box    *member.Outbox // guarded by holding.mu
	paused bool
	over   bool // after Finish
	came   int64
	breaks atomic.Int64                      // calls of Interrupt
	nodes  atomic.Int64                      // as reported by Share
	front  atomic.Pointer[frontier.Frontier] // reports its counts, if set
	stop   context.CancelFunc
	ended  chan error
	wg     sync.WaitGroup
}

// start starts a node; an existing incarnation is resumed.
func (w *world) start(name, life string) *testNode {
	w.t.Helper()
	id := node.Identity{Name: name, Incarnation: life}
	w.mu.Lock()
	h := w.shared[id.Node()]
	if h == nil {
		h = &holding{known: map[string]bool{}, waiting: map[string]bool{}, part: map[member.Transfer][]string{},
			latest: map[string]uint64{}, outbox: map[uint64]string{}}
		w.shared[id.Node()] = h
	}
	w.mu.Unlock()
	id.Joined = h.joined
	bus, err := w.hub.Join(id.Node())
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(w.t.Context())
	x := &testNode{w: w, id: id, router: node.NewRouter(), holding: h, stop: stop, ended: make(chan error, 1),
		box: member.NewOutbox(member.OutboxConfig{First: uint64(time.Now().UnixNano())})}
	for n, link := range h.outbox {
		x.box.Restore(n, hostOf(link), link)
	}
	var placer strategy.Placer
	var mind strategy.Strategy
	if w.mind != nil {
		mind = w.mind(id.Node())
	} else {
		placer = shard.New(shard.Config{})
	}
	m := quorum.New(quorum.Config{Self: id.Node(), Instance: rand.Uint64() | 1, Joined: id.Joined, Received: h.arrived,
		Forgotten: h.forgot, Partial: slices.Collect(maps.Keys(h.part)), Place: placer, Layout: "test 1",
		Timing: member.LAN(), Seed: rand.Uint64()})
	x.n = node.New(node.Config{Crawl: "test", Identity: id, Member: m, Strategy: mind, Timing: member.LAN(),
		Bus: bus, Engine: x, Router: x.router, FailedNodes: x,
		SaveJoined: x.enter, Figures: x.figures, Version: "test", Log: slog.New(slog.NewTextHandler(w.t.Output(),
			nil)).With("node", name)})
	x.wg.Go(func() { x.crawl(ctx) })
	go func() {
		err := x.n.Run(ctx)
		stop()
		x.wg.Wait()
		_ = bus.Close()
		x.ended <- err
	}()
	return x
}

// do changes the data.
func (h *holding) do(f func()) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sealed {
		return errSealed
	}
	f()
	return nil
}

func (x *testNode) enter() error { return x.do(func() { x.joined = true }) }

// crawl fetches a page every 10 ms.
func (x *testNode) crawl(ctx context.Context) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = x.do(x.visit)
		}
	}
}

func (x *testNode) visit() {
	if x.paused {
		return
	}
	for url := range x.waiting {
		if !x.router.May(hostOf(url)) {
			continue
		}
		delete(x.waiting, url)
		x.w.score(x.id.Node(), url)
		for _, link := range x.w.links(url) {
			x.found(link)
		}
		return
	}
}

func (w *world) score(by strategy.Node, url string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fetched[url] = append(w.fetched[url], fetched{by, time.Now()})
}

// found admits a link.
func (x *testNode) found(url string) {
	switch {
	case !x.router.Ours(hostOf(url)):
		x.outbox[x.box.Put(hostOf(url), url)] = url
	case !x.known[url]:
		x.known[url], x.waiting[url] = true, true
	}
}

func (x *testNode) TakeLinks(_ context.Context, data []byte) (refused []int, err error) {
	err = x.do(func() {
		x.came++
		for i, url := range unpack(data) {
			if x.router.Ours(hostOf(url)) {
				x.found(url)
			} else {
				refused = append(refused, i)
				x.box.AddUnrouted(hostOf(url)) // another node owns the host: is the URL known there?
			}
		}
	})
	return refused, err
}

func (x *testNode) AdoptLinks(_ context.Context, data []byte) error {
	return x.do(func() {
		for _, url := range unpack(data) {
			x.found(url)
		}
	})
}

// unpack decodes the data of a member.Outbox batch.
func unpack(data []byte) (urls []string) {
	for data = data[1:]; len(data) > 0; {
		n := int(data[0]) // URLs are short here
		urls = append(urls, string(data[1:1+n]))
		data = data[1+n:]
	}
	return urls
}

func pack(urls []string) []byte {
	data := []byte{member.LinksVersion}
	for _, u := range urls {
		data = append(append(data, byte(len(u))), u...)
	}
	return data
}

func (x *testNode) Batches(now time.Time, owner func(string) (strategy.Node, bool)) (all []member.Batch) {
	_ = x.do(func() {
		for n, url := range x.outbox { // links to hosts that now belong to this node
			if x.router.Ours(hostOf(url)) {
				x.found(url)
				delete(x.outbox, n)
			}
		}
		all = x.box.Batches(now, func(host string) (strategy.Node, bool) {
			if x.router.Ours(host) {
				return x.id.Node(), true
			}
			return owner(host)
		})
		all = slices.DeleteFunc(all, func(b member.Batch) bool {
			if b.To == x.id.Node() {
				for _, url := range unpack(b.Data) {
					x.found(url)
				}
				x.gone(x.box.Answered(b.To, b.Number, nil, now))
			}
			return b.To == x.id.Node()
		})
	})
	return all
}

func (x *testNode) Answered(from strategy.Node, batch uint64, refused []int, now time.Time) {
	_ = x.do(func() { x.gone(x.box.Answered(from, batch, refused, now)) })
}

func (x *testNode) gone(all []member.Range) {
	for _, r := range all {
		for n := r.First; n <= r.Last; n++ {
			delete(x.outbox, n)
		}
	}
}

func (x *testNode) Outbox() (links int, bytes int64) {
	_ = x.do(func() { links = x.box.Len() })
	return links, 0
}

func (x *testNode) AddSeeds(_ context.Context, seeds []weburl.URL, take func(string) bool) error {
	return x.do(func() {
		x.came++
		for _, u := range seeds {
			if take(u.Host()) {
				x.found(u.String())
			}
		}
	})
}

func (x *testNode) AddScopeSeed(u weburl.URL) error {
	x.w.mu.Lock()
	defer x.w.mu.Unlock()
	x.w.tally[x.id.Name+" "+u.String()] = true
	return nil
}

func (x *testNode) Probe(ctx context.Context, host string, timeout time.Duration) (time.Duration, string, error) {
	took := 20 * time.Millisecond
	if x.w.apart != nil && x.w.apart(x.id.Name, host) {
		took = timeout
	}
	select {
	case <-time.After(took):
	case <-ctx.Done():
	}
	if took == timeout {
		return took, "", errors.New("no answer")
	}
	return took, "", nil
}

func (x *testNode) Survey(_ context.Context, f func([]string) error) error {
	hosts := map[string]bool{}
	_ = x.do(func() {
		for url := range x.waiting {
			if !x.router.Ours(hostOf(url)) {
				hosts[hostOf(url)] = true
			}
		}
	})
	return f(slices.Sorted(maps.Keys(hosts)))
}

func (x *testNode) Queues(_ context.Context, most int) (all []strategy.Queue, _ error) {
	waiting := map[string]int{}
	_ = x.do(func() {
		for url := range x.waiting {
			waiting[hostOf(url)]++
		}
	})
	for _, host := range slices.Sorted(maps.Keys(waiting)) {
		all = append(all, strategy.Queue{Host: host, Pending: waiting[host]})
	}
	slices.SortStableFunc(all, func(a, b strategy.Queue) int { return b.Pending - a.Pending })
	return all[:min(len(all), most)], nil
}

func (x *testNode) figures() (f node.Figures) {
	queues, _ := x.Queues(context.Background(), 1<<30)
	f.Hosts = len(queues)
	for _, q := range queues {
		f.Waiting += q.Pending
	}
	if front := x.front.Load(); front != nil {
		f.Waiting += front.Counts().URLs
	}
	return f
}

func (x *testNode) Unrouted() (hosts []string, links []int) {
	_ = x.do(func() { hosts, links = x.box.Unrouted() })
	return hosts, links
}

func (x *testNode) RetryDeferred(hosts []string) { _ = x.do(func() { x.box.RetryDeferred(hosts) }) }

func (x *testNode) Pause(on bool) { _ = x.do(func() { x.paused = on }) }
func (x *testNode) Share(n int)   { x.nodes.Store(int64(n)) }
func (x *testNode) Interrupt()    { x.breaks.Add(1) }
func (x *testNode) Finish()       { _ = x.do(func() { x.over = true }) }
func (x *testNode) Idle() (idle bool) {
	_ = x.do(func() { idle = len(x.waiting) == 0 && x.box.Len() == 0 })
	return idle
}

func (x *testNode) Received() (n int64) {
	_ = x.do(func() { n = x.came })
	return n
}

func (x *testNode) Drain(context.Context, func(string) bool) error { return x.do(func() {}) }

func (x *testNode) Busy([]string) map[string]func(context.Context) error { return nil }

// A piece is the part of a chunk on one host.
type piece struct {
	Host           string
	Known, Waiting []string
}

type export struct{ pieces []chunk }

type chunk struct {
	to   strategy.Node
	data []byte
}

func (e *export) Next() (strategy.Node, []byte, error) {
	if len(e.pieces) == 0 {
		return "", nil, nil
	}
	c := e.pieces[0]
	e.pieces = e.pieces[1:]
	return c.to, c.data, nil
}

func (e *export) Close() error { return nil }

func (h *holding) export(owner func(string) strategy.Node) (*export, error) {
	all := map[string]*piece{}
	for url := range h.known {
		host := hostOf(url)
		if owner(host) == "" {
			continue
		}
		if all[host] == nil {
			all[host] = &piece{Host: host}
		}
		all[host].Known = append(all[host].Known, url)
		if h.waiting[url] {
			all[host].Waiting = append(all[host].Waiting, url)
		}
	}
	e := new(export)
	for _, host := range slices.Sorted(maps.Keys(all)) {
		data, err := json.Marshal(all[host])
		if err != nil {
			return nil, err
		}
		e.pieces = append(e.pieces, chunk{owner(host), data})
	}
	return e, nil
}

func (x *testNode) Export(owner func(string) strategy.Node) (e driver.Export, err error) {
	if failed := x.do(func() { e, err = x.export(owner) }); failed != nil {
		return nil, failed
	}
	return e, err
}

func (x *testNode) Import(_ context.Context, t member.Transfer, _ uint64, last bool,
	data []byte) (func(context.Context) error, error) {
	var came []string
	err := x.do(func() {
		if len(data) > 0 {
			var p piece
			if err := json.Unmarshal(data, &p); err != nil {
				x.w.t.Error(err)
			}
			x.part[t] = append(x.part[t], p.Host)
			x.latest[p.Host] = max(x.latest[p.Host], t.Epoch)
			for _, u := range p.Known {
				x.known[u] = true
			}
			for _, u := range p.Waiting {
				x.waiting[u] = true
			}
		}
		if last {
			came = x.part[t]
			x.arrived = append(x.arrived, t)
			delete(x.part, t)
		}
	})
	x.n.Arrived(t, came)
	return func(context.Context) error { return nil }, err
}

func (x *testNode) Drop(_ context.Context, t member.Transfer) error {
	return x.do(func() { x.drop(t) })
}

func (h *holding) drop(t member.Transfer) {
	for _, host := range h.part[t] {
		h.remove(func(u string) bool { return u == host })
	}
	delete(h.part, t)
}

func (h *holding) remove(gone func(host string) bool) {
	for _, urls := range []map[string]bool{h.known, h.waiting} {
		maps.DeleteFunc(urls, func(url string, _ bool) bool { return gone(hostOf(url)) })
	}
}

func (x *testNode) Forget(_ context.Context, gone member.Moved, whole []member.Transfer) error {
	return x.do(func() {
		if gone != nil {
			x.remove(func(host string) bool { return gone(host, x.latest[host]) })
		}
		x.forgot = append(x.forgot, whole...)
	})
}

func (x *testNode) FinalizeEpoch(_ context.Context, epoch uint64) error {
	return x.do(func() {
		done := func(t member.Transfer) bool { return t.Epoch <= epoch }
		x.arrived = slices.DeleteFunc(x.arrived, done)
		x.forgot = slices.DeleteFunc(x.forgot, done)
		maps.DeleteFunc(x.latest, func(_ string, came uint64) bool { return came <= epoch })
	})
}

// An estate is the content of a dead node's log.
type estate struct {
	*holding
	gone []member.Moved
}

func (e *estate) Received() []member.Transfer  { return e.arrived }
func (e *estate) Forgotten() []member.Transfer { return e.forgot }
func (e *estate) Close() error                 { return nil }
func (e *estate) Forget(gone member.Moved)     { e.gone = append(e.gone, gone) }
func (e *estate) Export(owner func(string) strategy.Node) (driver.Export, error) {
	return e.export(func(host string) strategy.Node {
		for _, gone := range e.gone {
			if gone(host, e.latest[host]) {
				return ""
			}
		}
		return owner(host)
	})
}
func (e *estate) OutboxLinks(f func([]byte) error) error {
	return f(pack(slices.Collect(maps.Values(e.outbox))))
}

func (x *testNode) Recover(_ context.Context, dead strategy.Node) (driver.FailedState, error) {
	x.w.mu.Lock()
	h, spoilt := x.w.shared[dead], x.w.spoilt > 0
	x.w.spoilt--
	x.w.mu.Unlock()
	if spoilt {
		return nil, errors.New("the disk is full")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sealed = true
	for t := range h.part {
		h.drop(t)
	}
	return &estate{holding: h}, nil
}

func (x *testNode) DeleteLog(_ context.Context, dead strategy.Node) error { return nil }

// crash ends a node abruptly.
func (x *testNode) crash() {
	x.stop()
	<-x.ended
}

// seeds returns the first pages of some hosts.
func (w *world) seeds(n int) (urls []string) {
	for i := range n {
		urls = append(urls, w.url(i*w.hosts/n, 0))
	}
	return urls
}

// check reports pages that were not fetched, or more than most times.
func (w *world) check(most int) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for h := range w.hosts {
		for p := range w.pages {
			if got := w.fetched[w.url(h, p)]; len(got) < 1 || len(got) > most {
				w.t.Errorf("%s was fetched by %v", w.url(h, p), got)
			}
		}
	}
}

func (w *world) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.fetched)
}
