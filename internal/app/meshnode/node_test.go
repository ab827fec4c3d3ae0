package meshnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/app/meshnode/control"
	"kumo/internal/base/item"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/base/weburl"
	"kumo/internal/cluster/bus/inproc"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/overlay"
	"kumo/internal/cluster/strategy"
	"kumo/internal/state/history"
	journal "kumo/internal/state/journal/memory"
)

const hosts, pages = 30, 8

// A web is the set of pages that the nodes fetch.
type web struct {
	takes time.Duration // per page

	mu       sync.Mutex
	fetched  map[string]int
	sessions map[string]int // by host: requests without a cookie, which all hosts set
}

// links returns the links of a page: the next one, its host's first one, and pages of other hosts.
func links(url string) (all []string) {
	var h, p int
	if _, err := fmt.Sscanf(url, "http://h%d.test/%d", &h, &p); err != nil {
		panic(err)
	}
	rng := rand.New(rand.NewPCG(uint64(h), uint64(p)))
	all = append(all, page(h, (p+1)%pages), page(h, 0), page((h+1)%hosts, 0))
	for range 3 {
		all = append(all, page(rng.IntN(hosts), rng.IntN(pages)))
	}
	return all
}

func page(h, p int) string { return fmt.Sprintf("http://h%d.test/%d", h, p) }

func hostIn(url string) string { return strings.Split(url, "/")[2] }

// An engine is a fake of crawl.Engine with claims.
type engine struct {
	web      *web
	router   *Router
	finished func(host string, urls []string)

	mu     sync.Mutex
	box    *member.Outbox
	pages  int64
	known  map[string]map[string]int // URLs by host: 0 pending, 1 fetched, 2 reported
	paused bool
	scope  map[string]bool
	links  map[string]map[uint64]bool
	met    map[string]bool
	asking map[string]bool
	seeded atomic.Int32 // seeds it has offered
	owes   []string     // hosts received with a delay
	share  int64        // of the page limit; negative: no limit
	nodes  int          // maximum of the reported number of nodes

	cookies map[string]bool // hosts that have set a cookie
}

func newEngine(w *web) *engine {
	return &engine{web: w, router: new(Router), box: member.NewOutbox(member.OutboxConfig{First: rand.Uint64() >> 1}),
		known: map[string]map[string]int{}, links: map[string]map[uint64]bool{}, met: map[string]bool{},
		asking: map[string]bool{}, scope: map[string]bool{}, cookies: map[string]bool{}, share: -1}
}

func (e *engine) HostCookies(host string, _ int) []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cookies[host] {
		return []byte("session")
	}
	return nil
}

func (e *engine) AddCookies(host string, data []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cookies[host] = string(data) == "session"
	return nil
}

func (e *engine) TakeDispatched(_ context.Context, data []byte) (done []bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	err = read(data, func(host, url string, _ []byte) {
		if e.known[host] == nil {
			e.known[host] = map[string]int{}
		}
		e.known[host][url] += 0
		done = append(done, e.known[host][url] == 2)
	})
	return done, err
}

func (e *engine) TakeRevisits(context.Context, []item.Revisit) ([]bool, error) { return nil, nil }

func (e *engine) RevisitDue(*item.Revisit) time.Time { return time.Time{} }

func (e *engine) Revisits() (enabled, continuous bool) { return false, false }

func (e *engine) ReleaseHosts(ctx context.Context, all []string, owed func(string, time.Duration,
	time.Duration)) error {
	for _, h := range all {
		for e.busy(h) {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(10 * time.Millisecond):
			}
		}
		e.mu.Lock()
		delete(e.known, h)
		e.mu.Unlock()
		owed(h, asksFor, leaveAlone)
	}
	return nil
}

// A host's requested delay, and its remaining wait when it is released.
const asksFor, leaveAlone = 7 * time.Second, time.Minute

func (e *engine) ImportDelay(host string, asked, wait time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if asked == asksFor && wait > leaveAlone*9/10 && wait <= leaveAlone {
		e.owes = append(e.owes, host)
	}
}

// busy reports whether a host has a request in progress, or unreported URLs.
func (e *engine) busy(host string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, state := range e.known[host] {
		if state == 1 {
			return true
		}
	}
	return e.asking[host]
}

func (e *engine) owed() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.owes
}

func (e *engine) Share(nodes int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.nodes = max(e.nodes, nodes)
}

func (e *engine) QueuedHosts(func(string) error) error { return nil }

func (e *engine) HasWork(host string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.waits(host)
}

func (e *engine) waits(host string) bool {
	for _, state := range e.known[host] {
		if state < 2 {
			return true
		}
	}
	return e.asking[host]
}

func (e *engine) Idle() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for h := range e.known {
		if e.waits(h) {
			return false
		}
	}
	return e.box.Len() == 0
}

func (e *engine) Received() int64 { return 0 }

func (e *engine) AddSeeds(_ context.Context, seeds []weburl.URL, take func(string) bool) error {
	for _, u := range seeds {
		e.mu.Lock()
		e.scope[u.String()] = true
		e.mu.Unlock()
		if take(u.Host()) {
			e.seeded.Add(1)
			e.offer("", u.String())
		}
	}
	return nil
}

func (e *engine) AddScopeSeed(u weburl.URL) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.scope[u.String()] = true
	return nil
}

func (e *engine) Pause(on bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.paused = on
}

func (e *engine) SetPageShare(pages int64) (ceiling int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.share = pages; pages >= 0 {
		e.share = max(pages, e.used())
	}
	return e.share
}

func (e *engine) used() (pages int64) {
	for _, is := range e.asking {
		if is {
			pages++
		}
	}
	return e.pages + pages
}

func (e *engine) CountedPages() int64 { return e.fetchedHere() }

func (e *engine) UsedPages() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.used()
}

func (e *engine) pending() (urls int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, all := range e.known {
		for _, state := range all {
			if state == 0 {
				urls++
			}
		}
	}
	return urls
}

func (e *engine) Finish() {}

func (e *engine) Reoffer(_ context.Context, items []item.Item) error {
	for i := range items {
		e.offer("", items[i].Key())
	}
	return nil
}

func (e *engine) fetchedHere() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.pages
}

func (e *engine) Queues(context.Context, int) ([]strategy.Queue, error) { return nil, nil }

func (e *engine) Batches(now time.Time, owner func(string) (strategy.Node, bool)) []member.Batch {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.box.Batches(now, owner)
}

func (e *engine) Answered(from strategy.Node, batch uint64, refused []int, now time.Time) {
	e.mu.Lock()
	for _, r := range e.box.Answered(from, batch, refused, now) {
		for id := r.First; id <= r.Last; id++ {
			for _, l := range e.links {
				delete(l, id)
			}
		}
	}
	e.mu.Unlock()
	e.say()
}

func (e *engine) say() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, url := range slices.Sorted(maps.Keys(e.links)) {
		if len(e.links[url]) == 0 {
			delete(e.links, url)
			e.known[hostIn(url)][url] = 2
			e.finished(hostIn(url), []string{url})
		}
	}
}

func (e *engine) Outbox() (int, int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.box.Len(), 0
}

func (e *engine) Unrouted() (hosts []string, links []int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.box.Unrouted()
}

func (e *engine) RetryDeferred(all []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.box.RetryDeferred(all)
}

func (e *engine) offer(from string, all ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.put(from, all)
}

func (e *engine) put(from string, all []string) {
	for _, url := range all {
		if !e.met[url] {
			e.met[url] = true
			id := e.box.Put(hostIn(url), url)
			if from != "" {
				e.links[from][id] = true
			}
		}
	}
}

// run fetches one page of each host at a time.
func (e *engine) run(ctx context.Context) {
	for ctx.Err() == nil {
		e.mu.Lock()
		for host, urls := range e.known {
			if e.paused || e.asking[host] || !e.router.May(host) || e.share >= 0 && e.used() >= e.share {
				continue
			}
			for url, state := range urls {
				if state == 0 {
					e.asking[host] = true
					go e.fetch(ctx, host, url)
					break
				}
			}
		}
		e.mu.Unlock()
		pause(ctx, 20*time.Millisecond)
	}
}

func (e *engine) fetch(ctx context.Context, host, url string) {
	e.mu.Lock()
	with := e.cookies[host]
	e.cookies[host] = true
	e.mu.Unlock()
	e.web.mu.Lock()
	if e.web.fetched[url]++; !with {
		e.web.sessions[host]++
	}
	e.web.mu.Unlock()
	pause(ctx, e.web.takes)
	if ctx.Err() != nil {
		return
	}
	e.mu.Lock()
	e.known[host][url] = 1
	e.pages++
	e.asking[host] = false
	e.links[url] = map[uint64]bool{}
	e.put(url, links(url))
	e.mu.Unlock()
	e.say()
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func read(data []byte, f func(host, url string, link []byte)) error {
	data = data[1:]
	for len(data) > 0 {
		n := int(data[0])
		f(hostIn(string(data[1:1+n])), string(data[1:1+n]), data[1:1+n])
		data = data[1+n:]
	}
	return nil
}

// A lab has several nodes in one process.
type lab struct {
	t     *testing.T
	hub   *inproc.Hub
	web   *web
	nodes []*labNode
	first overlay.Contact
	mesh  mesh.Config // of joining nodes

	disk     vfs.FS                      // with the nodes' data other than URLs
	journals map[string]*journal.Journal // of histories, by node
}

type labNode struct {
	*Node
	engine *engine
	ctx    context.Context
	stop   context.CancelFunc
	over   chan error

	settled chan map[string][]string     // passed to ApplySettings
	saved   atomic.Pointer[stats.Report] // the last report of all nodes
}

// join creates a node without an engine.
func (l *lab) join(name, dir string) *labNode {
	t := l.t
	if l.journals[name] == nil {
		l.journals[name] = journal.New()
	}
	h, err := history.Open(vfs.OS, filepath.Join(dir, "history"), l.journals[name],
		history.Config{Key: Key})
	if err != nil {
		t.Fatal(err)
	}
	var known []overlay.Contact
	if l.first.Node != "" {
		known = append(known, l.first)
	} else {
		l.first = overlay.Contact{Node: name}
	}
	messenger, err := l.hub.Join(strategy.Node(name))
	if err != nil {
		t.Fatal(err)
	}
	n := &labNode{engine: newEngine(l.web), over: make(chan error, 1), settled: make(chan map[string][]string, 100)}
	n.Node, err = New(Config{Messenger: messenger, Disk: l.disk, Dir: dir, Mesh: l.mesh,
		Overlay: overlay.Config{Self: overlay.Contact{Node: name}, Seed: rand.Uint64()},
		Known:   known, Router: n.engine.router, History: h, Read: read, Slice: hostIn,
		Query:         func(_ context.Context, query json.RawMessage) ([]byte, error) { return query, nil },
		ApplySettings: func(settings map[string][]string) { n.settled <- settings },
		Figures: func() Figures {
			return Figures{Work: control.Work{Pages: n.engine.fetchedHere(), Waiting: n.engine.pending()}}
		},
		Report:     func() *stats.Report { return &stats.Report{Pages: n.engine.fetchedHere()} },
		SaveReport: func(all *stats.Report) { n.saved.Store(all) },
		Limits: func(settings map[string][]string) desired.Limits {
			limit, _ := strconv.ParseInt(strings.Join(settings["limit"], ""), 10, 64)
			return desired.Limits{Pages: limit}
		}})
	if err != nil {
		t.Fatal(err)
	}
	n.engine.finished = n.Finished
	ctx, cancel := context.WithCancel(t.Context())
	n.ctx, n.stop = ctx, cancel
	go func() {
		err := n.Run(ctx)
		n.over <- errors.Join(err, h.Close(), messenger.Close())
	}()
	l.nodes = append(l.nodes, n)
	return n
}

// work gives a node its engine.
func (n *labNode) work(t *testing.T) {
	if err := n.Attach(n.engine); err != nil {
		t.Fatal(err)
	}
	go n.engine.run(n.ctx)
}

func (l *lab) start(name string) *labNode {
	n := l.join(name, l.t.TempDir())
	n.work(l.t)
	return n
}

// begin starts the crawl with a seed, through a node.
func (n *labNode) begin(t *testing.T, settings map[string][]string) {
	t.Helper()
	if err := n.AddSeeds(t.Context(), page(0, 0)); err != nil {
		t.Fatal(err)
	}
	err := n.Change(t.Context(), func(r *desired.Record, _ uint64) error {
		r.Seeds = uint64(n.SeedChunks())
		return r.Start(settings, true)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// wantAll checks that each page was fetched once.
func (l *lab) wantAll(t *testing.T) {
	t.Helper()
	if len(l.web.fetched) != hosts*pages {
		t.Errorf("%d pages are fetched of %d", len(l.web.fetched), hosts*pages)
	}
	for url, n := range l.web.fetched {
		if n > 1 {
			t.Errorf("%s is fetched %d times", url, n)
		}
	}
}

func newLab(t *testing.T) *lab {
	return &lab{t: t, hub: inproc.New(1), disk: vfs.OS, web: &web{takes: 100 * time.Millisecond,
		fetched: map[string]int{}, sessions: map[string]int{}}, journals: map[string]*journal.Journal{}}
}

// TestNodesCrawlToTheEnd: three nodes crawl while a fourth joins and leaves.
func TestNodesCrawlToTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		for i := range 3 {
			l.start(fmt.Sprintf("n%d~1", i))
			time.Sleep(time.Second)
		}
		time.Sleep(15 * time.Second)
		l.nodes[0].begin(t, nil)
		time.Sleep(time.Second)
		fourth := l.start("n3~1")
		time.Sleep(2 * time.Second)
		tally, err := l.nodes[2].Gather(t.Context())
		if err != nil || tally.Nodes != 4 || len(tally.Reports) != 4 || tally.Idle == 4 {
			t.Errorf("gathered %+v, %v", tally, err)
		}
		fourth.Leave()
		if err := <-fourth.over; !errors.Is(err, ErrLeft) {
			t.Errorf("the fourth node ended with %v", err)
		}
		for i, n := range l.nodes[:3] {
			if err := <-n.over; err != nil {
				t.Errorf("node %d ended with %v", i, err)
			}
			if r, _ := n.Crawl(); r.State != desired.Done {
				t.Errorf("node %d has the crawl as %s", i, r.State)
			}
		}
		owed := 0
		for _, n := range l.nodes {
			owed += len(n.engine.owed())
			if n.engine.nodes != 4 {
				t.Errorf("%s was told of %d nodes", n.self, n.engine.nodes)
			}
		}
		if owed == 0 {
			t.Error("no host has come to a node with what it is owed")
		}
		l.wantAll(t)
	})
}

// TestHostsKeepTheirSessions: a node joins two others during a crawl, and one of those leaves. Each host sets a cookie
// once if the nodes share cookies, and otherwise again when another node fetches it.
func TestHostsKeepTheirSessions(t *testing.T) {
	for _, share := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t)
			l.mesh.ShareCookies = share
			first, second := l.start("n0~1"), l.start("n1~1")
			time.Sleep(15 * time.Second)
			first.begin(t, nil)
			time.Sleep(time.Second)
			third := l.start("n2~1")
			time.Sleep(500 * time.Millisecond)
			second.Leave()
			if err := <-second.over; !errors.Is(err, ErrLeft) {
				t.Errorf("the second node ended with %v", err)
			}
			for _, n := range []*labNode{first, third} {
				if err := <-n.over; err != nil {
					t.Error(err)
				}
			}
			l.wantAll(t)
			again := 0
			for _, n := range l.web.sessions {
				again += n - 1
			}
			if len(l.web.sessions) != hosts || (again == 0) != share {
				t.Errorf("shared: %v: %d of %d hosts have set a cookie again", share, again, len(l.web.sessions))
			}
		})
	}
}
