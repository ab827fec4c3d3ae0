package crawl

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
	"kumo/internal/base/weburl"
	"kumo/internal/lab/testmain"
)

// TestNodesFetchEachPageOnce: several nodes share a maze; batches and answers are lost or delivered twice.
func TestNodesFetchEachPageOnce(t *testing.T) {
	for _, c := range []struct{ nodes, lossy int }{{2, 0}, {3, 30}} {
		t.Run(fmt.Sprintf("%d nodes, %d%% lost", c.nodes, c.lossy), func(t *testing.T) {
			m := &maze{hosts: 40, pages: 1500}
			crew := newCrew(t, c.nodes, m, m.url(0), m.url(1), m.url(2))
			crew.lossy = c.lossy
			synctest.Test(t, crew.run)
			crew.wantAll(t, true)
		})
	}
}

// TestNodesSurviveCrashes crashes nodes at any byte that they write, with or without the machine, and restarts them
// from their journals. No page is lost, and no page is fetched by two nodes.
func TestNodesSurviveCrashes(t *testing.T) {
	seed, end := testmain.Seeds(2, 6)
	if n, err := strconv.ParseUint(os.Getenv("KUMO_TEST_CRASHES"), 10, 64); err == nil {
		seed, end = 0, n
	}
	for ; seed < end; seed++ {
		survive(t, seed, 1)
	}
}

// survive is TestNodesSurviveCrashes with one web, whose hosts are cut into slices.
func survive(t *testing.T, seed uint64, cut int) {
	t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
		t.Parallel()
		m := &maze{hosts: 30 / cut, pages: 700 + int(seed)} // another web for each
		crew := newCrew(t, 2, m, m.url(0), m.url(1), m.url(2))
		crew.slices = item.NewSlices(cut)
		crew.dice = rand.New(rand.NewPCG(seed, 3))
		crew.lossy = int(seed%3) * 10
		crew.cfg.Outbox = 4 << 10
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
		synctest.Test(t, crew.run)
		t.Logf("%d and %d lives", crew.nodes[0].lives, crew.nodes[1].lives)
		crew.wantAll(t, false)
		for url, by := range m.asked {
			slices.Sort(by)
			if len(slices.Compact(by)) > 1 {
				t.Errorf("%s was fetched by both", url)
			}
		}
	})
}

func pickOne[T any](dice *rand.Rand, of ...T) T { return of[dice.IntN(len(of))] }

// TestLinksWaitForTheirOwner: for some time, a third of the hosts have no node that accepts them, and another third are
// assigned to the wrong node or to none. No links are sent there, and none are lost.
func TestLinksWaitForTheirOwner(t *testing.T) {
	m := &maze{hosts: 40, pages: 800}
	crew := newCrew(t, 2, m, m.url(0), m.url(1))
	owner := crew.owner
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		crew.owner = func(host string) (int, bool) {
			own, _ := owner(host)
			if time.Since(start) > 2*time.Second {
				return own, true
			}
			switch hash64(host) >> 8 % 4 {
			case 0:
				return own, false // the node does not know yet that it owns the host, or lacks some of its data
			case 1:
				return -1, false
			case 2:
				return 1 - own, false
			}
			return own, true
		}
		m.answer = func(url string, _ *page.Response) bool {
			if own, takes := crew.owner(item.HostOf(url)); own < 0 || !takes {
				t.Errorf("%s was fetched after %v, when it was nobody's", url, time.Since(start))
			}
			return false
		}
		crew.run(t)
	})
	crew.wantAll(t, true)
}

// TestAFullOutboxHoldsWorkersBack: while no links are delivered to other nodes, fetching stops when the outbox is full.
func TestAFullOutboxHoldsWorkersBack(t *testing.T) {
	const most = 20 << 10
	m := &maze{hosts: 40, pages: 3000}
	crew := newCrew(t, 2, m, m.url(0), m.url(1), m.url(2), m.url(3))
	crew.cfg.Outbox = most
	owner := crew.owner
	synctest.Test(t, func(t *testing.T) {
		away := atomic.Bool{} // the other node
		away.Store(true)
		crew.owner = func(host string) (int, bool) {
			own, takes := owner(host)
			if away.Load() && own == 1 {
				return -1, false
			}
			return own, takes
		}
		go func() {
			time.Sleep(time.Minute)
			synctest.Wait()
			e := crew.nodes[0].engine.Load()
			links, bytes := e.Links.Outbox()
			c := e.frontier.Counts()
			if bytes <= most || bytes > most+most/2 || c.URLs == 0 || c.Active > 0 || !e.holds.held() || e.Idle() {
				t.Errorf("after a minute: %d links, %d bytes, %+v, held back %v, idle %v", links, bytes, c, e.holds.held(), e.Idle())
			}
			away.Store(false)
		}()
		crew.run(t)
	})
	crew.wantAll(t, true)
}

// TestNoRequestWithoutALease: after the lease has expired, which a worker detects first, no request starts.
func TestNoRequestWithoutALease(t *testing.T) {
	m := &maze{hosts: 20, pages: 300}
	crew := newCrew(t, 2, m, m.url(0), m.url(1))
	synctest.Test(t, func(t *testing.T) {
		var lapsed atomic.Bool
		n, asked := crew.nodes[0], 0
		m.answer = func(url string, _ *page.Response) bool {
			if own, _ := crew.owner(item.HostOf(url)); own != 0 {
				return false
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			if asked++; asked == 20 {
				n.may.Store(false)
				time.AfterFunc(20*time.Millisecond, func() { lapsed.Store(true) }) // requests under way have ended
				time.AfterFunc(time.Minute, func() { lapsed.Store(false); n.may.Store(true) })
			}
			if lapsed.Load() {
				t.Errorf("%s was asked for without a lease", url)
			}
			return false
		}
		start := time.Now()
		crew.run(t)
		if took := time.Since(start); took < time.Minute || took > 2*time.Minute {
			t.Errorf("it took %v", took)
		}
	})
	crew.wantAll(t, true)
}

// TestPause: nothing is fetched while an engine is paused.
func TestPause(t *testing.T) {
	m := &maze{hosts: 5, pages: 100}
	crew := newCrew(t, 1, m, m.url(0), m.url(1))
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		m.answer = func(string, *page.Response) bool {
			if asked.Add(1) == 10 {
				crew.nodes[0].engine.Load().Pause(true)
			}
			return false
		}
		go func() {
			time.Sleep(time.Minute)
			synctest.Wait()
			if n := asked.Load(); n < 10 || n > 14 {
				t.Errorf("%d pages were fetched, want 10 and what was under way", n)
			}
			crew.nodes[0].engine.Load().Pause(false)
		}()
		crew.run(t)
	})
	crew.wantAll(t, true)
}

// TestRootsComeToAllNodes: a seed redirects to another node's host. Both nodes have the target in scope: the owner, and
// the node that found and announced it. So do both in the next run.
func TestRootsComeToAllNodes(t *testing.T) {
	m := &maze{hosts: 2, pages: 30}
	far := "" // a host of the other node
	crew := newCrew(t, 2, m, "http://seed.test/")
	from, _ := crew.owner("seed.test")
	for i := 0; far == ""; i++ {
		if host := fmt.Sprintf("far%d.test", i); crew.nodes[1-from].Ours(host) {
			far = host
		}
	}
	m.answer = func(url string, resp *page.Response) bool {
		switch {
		case url == "http://seed.test/":
			resp.Status, resp.Header = http.StatusFound, http.Header{"Location": {"http://" + far + "/"}}
			resp.Payload = []byte("moved")
		case strings.HasPrefix(url, "http://"+far):
			resp.Payload = []byte("there\nhttp://" + far + "/2\nhttp://out.test/")
		}
		return true
	}
	crew.mode = weburl.ScopeHost
	synctest.Test(t, crew.run)
	if len(m.asked) != 3 || len(m.asked["http://"+far+"/2"]) != 1 {
		t.Errorf("asked for %v", m.asked)
	}
	for _, n := range crew.nodes {
		n.roots = nil
		e, closeAll, err := n.open(vfs.OS)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Seeding.scopeSeeds.announceRedirects(); err != nil {
			t.Fatal(err)
		}
		u, _ := weburl.Parse("http://" + far + "/3")
		if !e.Inspector.rules.Scope.Judge(u).In || !slices.Equal(n.roots, []string{"http://" + far + "/"}) {
			t.Errorf("node %d: in scope %v, told %q", n.id, e.Inspector.rules.Scope.Judge(u), n.roots)
		}
		if err := closeAll(); err != nil {
			t.Error(err)
		}
	}
}

// TestNotIdleWhileALinkIsAnywhere: each page links only to the next, so that one URL at a time is pending: in a queue,
// under way, undecided, or in an outbox. No poll finds all nodes idle before the last page is fetched.
func TestNotIdleWhileALinkIsAnywhere(t *testing.T) {
	testmain.Slow(t)
	for _, c := range []struct {
		nodes, pages int
		doubt        bool
	}{{1, 1000, false}, {2, 200, false}, {2, 15, true}} {
		t.Run(fmt.Sprintf("%d nodes, in doubt %v", c.nodes, c.doubt), func(t *testing.T) {
			m := &maze{hosts: 10, pages: c.pages, chain: true, quick: true}
			crew := newCrew(t, c.nodes, m, m.url(0))
			crew.doubt, crew.cfg.Commit = c.doubt, time.Millisecond
			var last atomic.Bool
			m.answer = func(url string, _ *page.Response) bool {
				if url == m.url(c.pages-1) {
					last.Store(true)
				}
				return false
			}
			over := make(chan struct{})
			var asking sync.WaitGroup
			defer asking.Wait()
			defer close(over)
			for range 2 {
				asking.Go(func() {
					var before []string
					for looks := 0; ; looks++ {
						select {
						case <-over:
							t.Logf("looked %d times", looks)
							return
						default:
						}
						now, _ := crew.idle()
						if now != nil && slices.Equal(now, before) && !last.Load() {
							t.Errorf("idle, with a page to be fetched: %v", now)
							return
						}
						before = now
						runtime.Gosched()
					}
				})
			}
			crew.run(t)
			crew.wantAll(t, true)
		})
	}
}

// TestRulesThatLieWithAnotherNode: a host's robots.txt redirects to another node's host. The node that needs the rules
// follows the redirect, sends no other request there, and obeys the rules.
func TestRulesThatLieWithAnotherNode(t *testing.T) {
	m := &maze{}
	crew := newCrew(t, 2, m, "http://seed.test/")
	crew.cfg.IgnoreRobots = false
	from, _ := crew.owner("seed.test")
	far := ""
	for i := 0; far == ""; i++ {
		if host := fmt.Sprintf("far%d.test", i); crew.nodes[1-from].Ours(host) {
			far = host
		}
	}
	m.answer = func(url string, resp *page.Response) bool {
		switch url {
		case "http://seed.test/robots.txt":
			resp.Status, resp.Header = http.StatusFound, http.Header{"Location": {"http://" + far + "/robots.txt"}}
		case "http://" + far + "/robots.txt":
			resp.Payload = []byte("User-agent: *\nDisallow: /no\n")
		case "http://seed.test/":
			resp.Payload = []byte("seed\nhttp://seed.test/no\nhttp://seed.test/yes\nhttp://" + far + "/there")
		default:
			resp.Payload = []byte(url)
		}
		return true
	}
	synctest.Test(t, crew.run)
	got := map[string]string{}
	for url, by := range m.asked {
		slices.Sort(by)
		got[url] = fmt.Sprint(by)
	}
	want := map[string]string{"http://seed.test/robots.txt": fmt.Sprint([]int{from}),
		"http://seed.test/":    fmt.Sprint([]int{from}),
		"http://seed.test/yes": fmt.Sprint([]int{from}), "http://" + far + "/robots.txt": "[0 1]",
		"http://" + far + "/there": fmt.Sprint([]int{1 - from})}
	if !maps.Equal(got, want) {
		t.Errorf("asked for\n%v, want\n%v", got, want)
	}
}
