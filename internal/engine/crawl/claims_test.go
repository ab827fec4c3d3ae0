package crawl

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
	"kumo/internal/engine/exchange"
	"kumo/internal/lab/testmain"
	"kumo/internal/state/entry"
)

// backups remembers all hosts of a crawl whose links are claimed. It never dies, and decides itself which node fetches
// a host.
type backups struct {
	t     *testing.T
	own   func(host string) (int, bool) // initial owner of a host
	lossy int                           // of 100 answers, the number that is lost
	wipe  int                           // of 100 crashes, the number that destroys the disk

	mu    sync.Mutex
	urls  map[string]*claimed
	hosts map[string]*target
	moves int
	said  int // URLs that TakeDispatched has returned as finished
}

// A claimed URL.
type claimed struct {
	host string
	data []byte // as encoded by the outbox
	sent bool   // to the host's current target
	done bool
	by   [][2]int // the nodes, with their lives, that have fetched it
}

// A target is the node that fetches a host.
type target struct {
	node  int
	next  int // the next node, while node releases the host; -1: none
	quiet int // checks at which it was idle
}

func newBackups(t *testing.T, c *crew) *backups {
	m := &backups{t: t, urls: map[string]*claimed{}, hosts: map[string]*target{}}
	c.backups = m
	c.cfg.Claims = true
	m.own = c.owner
	c.owner = func(host string) (int, bool) {
		m.mu.Lock()
		defer m.mu.Unlock()
		h := m.host(host)
		return h.node, h.next < 0
	}
	for _, u := range c.seeds {
		data := appendLink([]byte{member.LinksVersion}, &entry.Candidate{Host: u.Host(), Item: item.FromSeed(u.String())})
		m.claim(c, data)
	}
	for _, n := range c.nodes {
		n.seeded.Store(true)
	}
	answers := c.maze.answer
	c.maze.answer = func(url string, resp *page.Response) bool {
		m.mu.Lock()
		u, own := m.urls[url], m.host(c.slices.Of(url)).node
		switch by := [2]int{own, c.nodes[own].lives}; {
		case u == nil || u.done:
			t.Errorf("%s is fetched, which is %+v", url, u)
		case slices.Contains(u.by, by):
			t.Errorf("%s is fetched twice by node %d in one life", url, own)
		default:
			u.by = append(u.by, by)
		}
		m.mu.Unlock()
		return answers != nil && answers(url, resp)
	}
	return m
}

// host returns the target of a host. The caller holds mu.
func (m *backups) host(host string) *target {
	h := m.hosts[host]
	if h == nil {
		n, _ := m.own(host)
		h = &target{node: n, next: -1}
		m.hosts[host] = h
	}
	return h
}

// claim adds links.
func (m *backups) claim(crew *crew, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := exchange.Read(data, func(c entry.Candidate, written []byte) {
		if c.Rule != "" {
			m.t.Errorf("%s is claimed, which %s leaves out", c.Item.URL, c.Rule)
		}
		if m.urls[c.Item.URL] == nil {
			m.urls[c.Item.URL] = &claimed{host: crew.slices.Of(c.Item.URL), data: slices.Clone(written)}
		}
	})
	if err != nil {
		m.t.Error(err)
	}
}

// inTime fails a test that does not end in time. It is called in its bubble.
func (m *backups) inTime(c *crew) (stop func() bool) {
	return time.AfterFunc(10*time.Minute, func() {
		for url, u := range m.urls {
			if !u.done {
				fmt.Printf("%s is lost: %+v, %+v\n", url, u, m.hosts[u.host])
			}
		}
		for _, n := range c.nodes {
			if e := n.engine.Load(); e != nil {
				links, _ := e.Links.Outbox()
				fmt.Printf("node %d: idle %v, %d links, %v unsaid, %+v\n", n.id, e.Idle(), links, e.Dispatches.claims.unreported,
					e.frontier.Counts())
			}
		}
		panic("not all is done in ten minutes")
	}).Stop
}

// idle reports whether everything is finished.
func (m *backups) idle() bool {
	if m == nil {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, u := range m.urls {
		if !u.done {
			return false
		}
	}
	return true
}

// wipes reports whether a crash of a node destroys its disk.
func (m *backups) wipes(n *crewNode) bool { return m != nil && n.chance(100) < m.wipe }

// again marks the unfinished URLs of the selected hosts to be dispatched again.
func (m *backups) again(is func(host string, h *target) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, u := range m.urls {
		if h := m.hosts[u.host]; h != nil && is(u.host, h) {
			u.sent, h.quiet = false, 0
		}
	}
}

// batch returns some links to dispatch to a node.
func (m *backups) batch(n *crewNode) (data []byte, urls []string) {
	most := 1 + n.chance(20)
	m.mu.Lock()
	defer m.mu.Unlock()
	data = []byte{member.LinksVersion}
	for _, url := range slices.Sorted(maps.Keys(m.urls)) {
		u := m.urls[url]
		if h := m.host(u.host); len(urls) < most && !u.sent && !u.done && h.node == n.id && h.next < 0 {
			data = append(appendLength(data, len(u.data)), u.data...)
			urls = append(urls, url)
		}
	}
	return data, urls
}

func appendLength(data []byte, n int) []byte {
	for ; n >= 128; n >>= 7 {
		data = append(data, byte(n)|128)
	}
	return append(data, byte(n))
}

// dispatch dispatches links to a node.
func (m *backups) dispatch(ctx context.Context, n *crewNode, e *Engine) {
	data, urls := m.batch(n)
	if len(urls) == 0 {
		return
	}
	done, err := e.Dispatches.TakeDispatched(ctx, data)
	switch {
	case err == nil && len(done) != len(urls):
		m.t.Errorf("%d answers to %d links", len(done), len(urls))
	case err != nil || n.chance(100) < m.lossy:
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, url := range urls {
		m.urls[url].sent = true
		if done[i] && !m.urls[url].done {
			m.urls[url].done = true
			m.said++
		}
	}
}

// check dispatches hosts again whose node is idle although they have unfinished URLs.
func (m *backups) check(n *crewNode, e *Engine) {
	m.mu.Lock()
	hosts := map[string]bool{}
	for _, u := range m.urls {
		if h := m.hosts[u.host]; h != nil && h.node == n.id && u.sent && !u.done {
			hosts[u.host] = true
		}
	}
	m.mu.Unlock()
	for host := range hosts {
		quiet := !e.Dispatches.HasWork(host)
		m.mu.Lock()
		h := m.hosts[host]
		if h.quiet++; !quiet {
			h.quiet = 0
		}
		over := h.quiet > 2
		m.mu.Unlock()
		if over {
			m.again(func(name string, _ *target) bool { return name == host })
		}
	}
}

func (n *crewNode) finished(host string, urls []string) {
	if n.tells != nil {
		n.tells(n, host, urls)
		return
	}
	if n.backups == nil {
		n.t.Errorf("%s: %d URLs are said to be done", host, len(urls))
		return
	}
	if n.chance(100) < n.backups.lossy {
		return // as if the process had crashed before
	}
	n.backups.mu.Lock()
	defer n.backups.mu.Unlock()
	for _, url := range urls {
		if u := n.backups.urls[url]; u == nil || u.host != host {
			n.t.Errorf("%s of %s is done, which is %+v", url, host, u)
		} else {
			u.done = true
		}
	}
}

// remind runs claims and dispatches during a node's life.
func (n *crewNode) remind(ctx context.Context, e *Engine, beside *sync.WaitGroup) {
	m := n.backups
	err := e.Dispatches.QueuedHosts(func(host string) error {
		if own, _ := n.owner(host); own != n.id {
			n.t.Errorf("node %d holds %s, which is node %d's", n.id, host, own)
		}
		return nil
	})
	if err != nil {
		n.t.Error(err)
	}
	m.again(func(_ string, h *target) bool { return h.node == n.id })
	beside.Go(func() {
		for tick := 0; ctx.Err() == nil; tick++ {
			for _, b := range e.Links.Batches(time.Now(), nodeOfAll) {
				m.claim(n.crew, b.Data)
				if n.chance(100) >= m.lossy {
					e.Links.Answered(b.To, b.Number, nil, time.Now())
				}
			}
			if tick%40 == 0 {
				m.check(n, e)
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	beside.Go(func() {
		for ctx.Err() == nil {
			m.dispatch(ctx, n, e)
			time.Sleep(7 * time.Millisecond)
		}
	})
	beside.Go(func() {
		for ctx.Err() == nil {
			m.giveUp(ctx, n, e)
			time.Sleep(50 * time.Millisecond)
		}
	})
}

func nodeOfAll(string) (to strategy.Node, ok bool) { return "backups", true }

// giveUp makes a node release hosts that move.
func (m *backups) giveUp(ctx context.Context, n *crewNode, e *Engine) {
	m.mu.Lock()
	var going []string
	for host, h := range m.hosts {
		if h.node == n.id && h.next >= 0 {
			going = append(going, host)
		}
	}
	m.mu.Unlock()
	slices.Sort(going)
	if err := e.Dispatches.ReleaseHosts(ctx, going, owedNothing); err != nil {
		return
	}
	for _, host := range going {
		// A worker may have taken a URL of it meanwhile; such a visit is postponed, and its URL dropped.
		for range 100 {
			if !e.Dispatches.HasWork(host) {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if e.Dispatches.HasWork(host) {
			n.t.Errorf("something waits at %s, which was given up", host)
		}
	}
	m.mu.Lock()
	for _, host := range going {
		h := m.hosts[host]
		h.node, h.next = h.next, -1
	}
	m.mu.Unlock()
	m.again(func(host string, _ *target) bool { return slices.Contains(going, host) })
}

// move moves hosts between nodes.
func (m *backups) move(c *crew, moves int) {
	for range moves {
		time.Sleep(time.Duration(c.chance(20)) * time.Millisecond)
		m.mu.Lock()
		if all := slices.Sorted(maps.Keys(m.hosts)); len(all) > 0 {
			h := m.hosts[all[c.chance(len(all))]]
			if h.next < 0 {
				h.next = c.chance(len(c.nodes))
				m.moves++
			}
		}
		m.mu.Unlock()
	}
}

// wantClaims checks that all pages were fetched, exactly once if once is true.
func (c *crew) wantClaims(t *testing.T, once bool) {
	t.Helper()
	c.t = t
	var seeds []string
	for _, u := range c.seeds {
		seeds = append(seeds, u.String())
	}
	want, twice := c.maze.closure(seeds), 0
	for url := range want {
		by := c.maze.asked[url]
		if u := c.backups.urls[url]; len(by) == 0 || u == nil || !u.done {
			t.Errorf("%s was fetched by %v, and is %+v", url, by, u)
		}
		twice += max(0, len(by)-1)
	}
	if len(c.backups.urls) != len(want) {
		t.Errorf("%d URLs are remembered, want %d", len(c.backups.urls), len(want))
	}
	if once && twice > 0 {
		t.Errorf("%d fetches in vain", twice)
	}
	lives := 0
	for _, n := range c.nodes {
		lives += n.lives
		e, closeAll, err := n.open(vfs.OS)
		if err != nil {
			t.Fatal(err)
		}
		if links, _ := e.Links.Outbox(); links > 0 || !e.Idle() {
			t.Errorf("node %d: %d links wait in the next run", n.id, links)
		}
		if err := closeAll(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d pages, %d lives, %d moves, %d fetches twice, %d said late", len(want), lives, c.backups.moves, twice,
		c.backups.said)
}

// TestClaimedLinksAreFetchedOnce: nodes fetch the URLs that are dispatched to them, although answers are lost and hosts
// move between nodes.
func TestClaimedLinksAreFetchedOnce(t *testing.T) {
	for _, c := range []struct{ nodes, lossy, moves int }{{1, 0, 0}, {2, 0, 0}, {3, 30, 0}, {2, 0, 200}, {3, 20, 200}} {
		t.Run(fmt.Sprintf("%d nodes, %d%% lost, %d moves", c.nodes, c.lossy, c.moves), func(t *testing.T) {
			m := &maze{hosts: 40, pages: 1500}
			crew := newCrew(t, c.nodes, m, m.url(0), m.url(1), m.url(2))
			newBackups(t, crew).lossy = c.lossy
			synctest.Test(t, func(t *testing.T) {
				defer crew.backups.inTime(crew)()
				var moving sync.WaitGroup
				moving.Go(func() { crew.backups.move(crew, c.moves) })
				crew.run(t)
				moving.Wait()
			})
			crew.wantClaims(t, c.lossy == 0 || c.moves == 0)
		})
	}
}

// TestClaimedLinksSurviveCrashes crashes nodes at any byte that they write, with or without the machine, and sometimes
// with their disks, while hosts move. No URL is lost, and no URL is fetched after it was reported as finished.
func TestClaimedLinksSurviveCrashes(t *testing.T) {
	seed, end := testmain.Seeds(2, 6)
	if n, err := strconv.ParseUint(os.Getenv("KUMO_TEST_CRASHES"), 10, 64); err == nil {
		seed, end = 0, n
	}
	for ; seed < end; seed++ {
		surviveClaiming(t, seed, 1)
	}
}

// surviveClaiming is TestClaimedLinksSurviveCrashes with one web, whose hosts are cut into slices.
func surviveClaiming(t *testing.T, seed uint64, cut int) {
	t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
		t.Parallel()
		m := &maze{hosts: 30 / cut, pages: 700 + int(seed)} // another web for each
		crew := newCrew(t, 3, m, m.url(0), m.url(1), m.url(2))
		crew.slices = item.NewSlices(cut)
		crew.dice = rand.New(rand.NewPCG(seed, 3))
		mem := newBackups(t, crew)
		mem.lossy, mem.wipe = int(seed%3)*10, int(seed%2)*50
		crew.cfg.Outbox = 16 << 10
		crew.tune = func(c *Config) {
			crew.mu.Lock()
			defer crew.mu.Unlock()
			c.Checkpoint = pickOne[int64](crew.dice, 1, 4<<10, 64<<20)
			c.Commit = pickOne(crew.dice, time.Millisecond, 20*time.Millisecond)
		}
		crew.mortal = func(n *crewNode) *vfstest.Faulty {
			disk := vfstest.NewFaulty(vfs.OS)
			if n.lives < 12 {
				disk.DieAfter(int64(n.chance(8 << 10 << (2 * n.chance(4)))))
			}
			return disk
		}
		synctest.Test(t, func(t *testing.T) {
			defer mem.inTime(crew)()
			var moving sync.WaitGroup
			moving.Go(func() { mem.move(crew, 60) })
			crew.run(t)
			moving.Wait()
		})
		crew.wantClaims(t, false)
	})
}
