package crawl

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
	"kumo/internal/base/weburl"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
	"kumo/internal/content/policy"
	"kumo/internal/engine/visit"
	"kumo/internal/state/entry"
)

// A loner is a node whose links are claimed, with the test in place of the other nodes. It may have several lives.
type loner struct {
	*testing.T
	crew *crew
	disk *vfstest.Faulty
	e    *Engine
	end  func()

	done  map[string]int // by URL: number of reports
	pages map[string]string
	lost  sync.Map // hosts that another node fetches
}

// newLoner starts the first life. It is called in a bubble. pages maps URLs to their links.
func newLoner(t *testing.T, pages map[string]string, tune func(*Config)) *loner {
	l := &loner{T: t, done: map[string]int{}, pages: pages}
	m := &maze{quick: true, answer: func(url string, resp *page.Response) bool {
		resp.Payload = []byte(url + "\n" + strings.ReplaceAll(pages[url], " ", "\n"))
		if _, there := pages[url]; !there {
			resp.Status = 404
		}
		return true
	}}
	l.crew = newCrew(t, 1, m)
	l.crew.cfg.Claims, l.crew.tune = true, tune
	l.crew.owner = func(host string) (int, bool) {
		_, lost := l.lost.Load(host)
		return 0, !lost
	}
	l.crew.tells = func(_ *crewNode, host string, urls []string) {
		for _, url := range urls {
			if item.HostOf(url) != host {
				t.Errorf("%s is done, of %s", url, host)
			}
			l.done[url]++
		}
	}
	l.begin()
	return l
}

func (l *loner) begin() {
	l.Helper()
	l.disk = vfstest.NewFaulty(vfs.OS)
	n := l.crew.nodes[0]
	e, closeAll, err := n.open(l.disk)
	if err != nil {
		l.Fatal(err)
	}
	ctx, stop := context.WithCancel(l.Context())
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		_ = e.Run(ctx, nil, 2)
	}()
	l.e, l.end = e, func() {
		stop()
		<-ran
		_ = closeAll() // the disk may have failed
	}
	l.settle()
}

// settle waits until all work is done.
func (l *loner) settle() {
	time.Sleep(time.Second)
	synctest.Wait()
}

// kill ends a life like a power failure, and starts the next one.
func (l *loner) kill() {
	l.Helper()
	l.disk.DieAfter(0)
	l.end()
	if err := l.disk.PowerLoss(l.crew.dice); err != nil {
		l.Fatal(err)
	}
	clear(l.done)
	l.begin()
}

// dispatch dispatches URLs, and checks that the given ones are returned as finished.
func (l *loner) dispatch(urls string, done ...string) {
	l.Helper()
	all := strings.Fields(urls)
	is, err := l.e.Dispatches.TakeDispatched(l.Context(), linksTo(all...))
	if err != nil || len(is) != len(all) {
		l.Fatal(is, err)
	}
	for i, url := range all {
		if is[i] != slices.Contains(done, url) {
			l.Errorf("%s is done: %v", url, is[i])
		}
	}
	l.settle()
}

// claim claims links to some URLs, and checks that there are no others.
func (l *loner) claim(urls ...string) {
	l.Helper()
	now := time.Now()
	for _, b := range l.e.Links.Batches(now, func(host string) (strategy.Node, bool) { return strategy.Node(host), true }) {
		var refused []int
		i := 0
		for url := range l.linksIn(b) {
			if !slices.Contains(urls, url) {
				refused = append(refused, i)
			}
			i++
		}
		l.e.Links.Answered(b.To, b.Number, refused, now)
	}
	l.settle()
}

func (l *loner) linksIn(b member.Batch) func(yield func(string) bool) {
	var all batch
	if err := all.read(b.Data); err != nil {
		l.Fatal(err)
	}
	return func(yield func(string) bool) {
		for i := range all.cands {
			if !yield(all.cands[i].Item.URL) {
				return
			}
		}
	}
}

// wantDone checks which URLs were reported in this life, and whether the node is idle.
func (l *loner) wantDone(urls string, idle bool) {
	l.Helper()
	if got := strings.Join(slices.Sorted(maps.Keys(l.done)), " "); got != urls || l.e.Idle() != idle {
		l.Errorf("%s are done, want %s; idle: %v", got, urls, l.e.Idle())
	}
}

func (l *loner) fetched(url string, times int) {
	l.Helper()
	l.crew.maze.mu.Lock()
	defer l.crew.maze.mu.Unlock()
	if n := len(l.crew.maze.asked[url]); n != times {
		l.Errorf("%s was fetched %d times, want %d", url, n, times)
	}
}

// TestAPageIsDoneWhenItsLinksAreClaimed: a page is finished when its links are claimed, not before. This holds for
// reports, and for answers to a repeated dispatch. The next process does not know which pages have the remaining links:
// it reports the pages that are dispatched again when all of these links are claimed.
func TestAPageIsDoneWhenItsLinksAreClaimed(t *testing.T) {
	const one, two, three = "http://a.test/1", "http://a.test/2", "http://a.test/3"
	const x, y = "http://b.test/x", "http://c.test/y"
	synctest.Test(t, func(t *testing.T) {
		l := newLoner(t, map[string]string{one: x + " " + y, two: x, three: ""}, nil)
		l.dispatch(one)
		l.fetched(one, 1)
		l.dispatch(two + " " + three + " " + one)
		l.fetched(two, 1) // its link was put into the outbox by another page
		l.wantDone(three, false)
		l.dispatch(one+" "+two+" "+three, three)
		l.claim(y)
		l.wantDone(three, false)
		if !l.e.Dispatches.HasWork("a.test") {
			t.Error("nothing is to be said of a.test")
		}
		l.kill()
		l.dispatch(one + " " + two + " " + three)
		l.wantDone("", false)
		l.claim(x)
		l.wantDone(one+" "+two+" "+three, true)
		l.dispatch(one+" "+two+" "+three, one, two, three)
		for _, url := range []string{one, two, three} {
			l.fetched(url, 1)
		}
		l.end()
	})
}

// TestLinksOfTheOwnHostsAreClaimed: a link is sent once to the nodes that remember its host, whichever node fetches the
// host, and so are seeds. Dispatched and filtered links are not sent.
func TestLinksOfTheOwnHostsAreClaimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoner(t, map[string]string{"http://a.test/": "http://a.test/1 http://a.test/2 http://a.test/ ftp://a.test/",
			"http://a.test/1": "http://a.test/2 http://a.test/3"}, nil)
		u, err := weburl.Parse("http://a.test/")
		if err != nil {
			t.Fatal(err)
		}
		if err := l.e.Seeding.AddSeeds(t.Context(), []weburl.URL{u}, func(string) bool { return true }); err != nil {
			t.Fatal(err)
		}
		l.settle()
		l.fetched("http://a.test/", 0)
		l.claim("http://a.test/")
		l.dispatch("http://a.test/ http://a.test/1")
		if links, _ := l.e.Links.Outbox(); links != 2 || l.e.Idle() {
			t.Errorf("%d links are to be claimed", links)
		}
		l.wantDone("", false)
		l.claim("http://a.test/2", "http://a.test/3")
		l.wantDone("http://a.test/ http://a.test/1", true)
		l.end()
	})
}

// TestALinkThatIsLeftOutStaysWithItsFinder: for example a link that is too deep. The nodes that remember URLs would
// otherwise consider a nearer link to be known.
func TestALinkThatIsLeftOutStaysWithItsFinder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoner(t, map[string]string{"http://a.test/": "http://b.test/deep"}, func(c *Config) { c.Depth = 3 })
		l.dispatch("http://a.test/")
		if links, _ := l.e.Links.Outbox(); links != 0 {
			t.Errorf("%d links are to be claimed", links)
		}
		l.wantDone("http://a.test/", true)
		l.dispatch("http://b.test/deep") // from another node, with a smaller depth
		l.fetched("http://b.test/deep", 1)
		l.end()
	})
}

// TestWhatIsNotFetchedIsDone: URLs that are filtered at their visit or abandoned are finished, in this process and the
// next.
func TestWhatIsNotFetchedIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoner(t, map[string]string{"http://full.test/1": ""}, func(c *Config) { c.PagesPerHost = 1 })
		const full = "http://full.test/1 http://full.test/2 http://full.test/3"
		l.dispatch(full)
		l.wantDone(full, true)
		const dead = "http://dead.test/1 http://dead.test/2"
		if err := l.e.abandons.abandonOrigin("http://dead.test", visit.Abandonment{Failure: page.Refused, Why: "refused"}); err != nil {
			t.Fatal(err)
		}
		l.dispatch(dead)
		l.wantDone(dead+" "+full, true)
		l.dispatch(dead+" "+full, strings.Fields(dead+" "+full)...)
		l.fetched("http://full.test/2", 0)
		l.fetched("http://dead.test/1", 0)
		l.kill()
		l.dispatch(full, strings.Fields(full)...)
		l.end()
	})
}

// TestPagesThatAreFetchedAgainCount: pages that another node has fetched and lost count for the limit; those that this
// node has counted do not count twice.
func TestPagesThatAreFetchedAgainCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		urls := []string{"http://full.test/1", "http://full.test/2", "http://full.test/3"}
		l := newLoner(t, map[string]string{urls[0]: "", urls[1]: "", urls[2]: ""}, func(c *Config) { c.PagesPerHost = 2 })
		l.dispatch(urls[0])
		again := func(url string, times int) {
			l.e.frontier.Restore("full.test", item.Item{URL: url, Refetch: true})
			time.Sleep(time.Minute)
			synctest.Wait()
			l.fetched(url, times)
		}
		again(urls[1], 1)
		again(urls[2], 0)
		again(urls[0], 2)
		again(urls[1], 2)
		l.end()
	})
}

// TestAHostThatComesBackBeginsAfresh: URLs that were pending when a host was released are pending again only when they
// are dispatched again; fetched ones are finished.
func TestAHostThatComesBackBeginsAfresh(t *testing.T) {
	for _, then := range []string{"", "checkpoint", "kill", "checkpoint, kill", "kill, checkpoint, kill"} {
		t.Run(then, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLoner(t, map[string]string{"http://a.test/1": "http://b.test/", "http://a.test/2": ""}, nil)
				l.dispatch("http://a.test/1")
				l.e.Pause(true)
				l.dispatch("http://a.test/2 http://stays.test/")
				l.lost.Store("a.test", true)
				released, given := make(chan error), make(chan string, 2)
				go func() {
					released <- l.e.Dispatches.ReleaseHosts(t.Context(), []string{"a.test", "never.test"},
						func(host string, _, _ time.Duration) { given <- host })
				}()
				l.settle()
				select {
				case err := <-released:
					t.Fatal("it was given up before its page was said to be done", err)
				case host := <-given:
					if host != "never.test" || len(given) > 0 {
						t.Fatalf("%s was given up before its page was said to be done", host)
					}
				}
				l.claim("http://b.test/")
				if err := <-released; err != nil {
					t.Fatal(err)
				}
				l.wantDone("http://a.test/1", false)
				if l.e.Dispatches.HasWork("a.test") || !l.e.Dispatches.HasWork("stays.test") {
					t.Error("it waits still")
				}
				for step := range strings.SplitSeq(then, ", ") {
					switch step {
					case "checkpoint":
						if err := l.e.Checkpoints.checkpoint(t.Context()); err != nil {
							t.Fatal(err)
						}
					case "kill":
						l.kill()
					}
				}
				if _, err := l.e.Dispatches.TakeDispatched(t.Context(), linksTo("http://a.test/2")); !errors.Is(err, ErrNotOurs) {
					t.Error(err)
				}
				l.fetched("http://a.test/2", 0)
				l.lost.Delete("a.test")
				l.dispatch("http://a.test/1 http://a.test/2 http://a.test/2", "http://a.test/1")
				l.dispatch("http://a.test/2", l.ifKilled(then, "http://a.test/2")...)
				l.e.Pause(false)
				l.settle()
				l.fetched("http://a.test/1", 1)
				l.fetched("http://a.test/2", 1)
				l.kill()
				l.dispatch("http://a.test/2", "http://a.test/2")
				l.end()
			})
		})
	}
}

// TestATenureOutlivesAProcess: a URL dispatched in a host's later tenure is not queued again after a restart.
func TestATenureOutlivesAProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoner(t, map[string]string{"http://a.test/": ""}, nil)
		n := l.crew.nodes[0]
		n.may.Store(false)
		for range 3 {
			l.dispatch("http://a.test/")
			l.lost.Store("a.test", true)
			if err := l.e.Dispatches.ReleaseHosts(t.Context(), []string{"a.test"}, owedNothing); err != nil {
				t.Fatal(err)
			}
			l.lost.Delete("a.test")
		}
		l.dispatch("http://a.test/")
		l.kill()
		l.dispatch("http://a.test/")
		if i, _ := l.e.frontier.Host("a.test"); i.Pending != 1 {
			t.Errorf("%d URLs wait", i.Pending)
		}
		n.may.Store(true)
		time.Sleep(time.Minute)
		l.settle()
		l.fetched("http://a.test/", 1)
		l.wantDone("http://a.test/", true)
		l.end()
	})
}

// ifKilled returns the URLs that are finished if the next life, which is not paused, has fetched them.
func (l *loner) ifKilled(then string, urls ...string) []string {
	if strings.Contains(then, "kill") {
		return urls
	}
	return nil
}

// TestHeldHosts: a process starts with the hosts that have pending URLs, whether or not the last process abandoned
// them.
func TestHeldHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoner(t, map[string]string{"http://a.test/": ""}, nil)
		l.dispatch("http://a.test/")
		l.e.Pause(true)
		l.dispatch("http://b.test/ http://c.test/")
		if err := l.e.abandons.abandonOrigin("http://c.test", visit.Abandonment{Failure: page.Refused, Why: "refused"}); err != nil {
			t.Fatal(err)
		}
		l.settle()
		l.disk.DieAfter(0)
		l.end()
		e, closeAll, err := l.crew.nodes[0].open(vfs.OS)
		if err != nil {
			t.Fatal(err)
		}
		var held []string
		if err := e.Dispatches.QueuedHosts(func(host string) error { held = append(held, host); return nil }); err != nil {
			t.Fatal(err)
		}
		if slices.Sort(held); !slices.Equal(held, []string{"b.test", "c.test"}) {
			t.Errorf("%q are held", held)
		}
		if err := closeAll(); err != nil {
			t.Error(err)
		}
	})
}

// TestStrangeDispatches: invalid dispatches are rejected, without other effects.
func TestStrangeDispatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoner(t, map[string]string{"http://a.test/": ""}, func(c *Config) { c.Depth = 9 })
		for _, data := range [][]byte{nil, {0}, {member.LinksVersion, 5, 1}} {
			if done, err := l.e.Dispatches.TakeDispatched(t.Context(), data); err == nil {
				t.Error("no error", done)
			}
		}
		c := entry.Candidate{Host: "a.test", Item: item.Item{URL: "http://a.test/out", Depth: 1},
			Verdict: policy.Verdict{Rule: "exclude", Why: "out"}}
		mail := entry.Candidate{Item: item.Item{URL: "mailto:me@a.test"}}
		done, err := l.e.Dispatches.TakeDispatched(t.Context(), appendLink(appendLink([]byte{member.LinksVersion}, &c), &mail))
		if err != nil || !slices.Equal(done, []bool{true, true}) {
			t.Error(done, err)
		}
		l.e.Pause(true)
		far := linksAt(7, "http://a.test/")
		for _, data := range [][]byte{far, linksAt(5, "http://a.test/"), far} {
			if done, err := l.e.Dispatches.TakeDispatched(t.Context(), data); err != nil || done[0] {
				t.Error(done, err)
			}
		}
		if _, depth, err := l.e.known.seen.StateOf("http://a.test/"); depth != 5 || err != nil {
			t.Error(depth, err)
		}
		l.kill()
		l.fetched("http://a.test/", 1)
		if _, depth, err := l.e.known.seen.StateOf("http://a.test/"); depth != 5 || err != nil {
			t.Error(depth, err)
		}
		l.fetched("http://a.test/out", 0)
		l.end()
	})
}

// linksAt returns a batch of links with a depth.
func linksAt(depth int32, urls ...string) []byte {
	data := []byte{member.LinksVersion}
	for _, url := range urls {
		data = appendLink(data, &entry.Candidate{Host: item.HostOf(url),
			Item: item.Item{URL: url, Kind: page.Anchor, Depth: depth}})
	}
	return data
}

// TestExplainWhatIsClaimed: Explain recognizes URLs that wait to be claimed, and those that another node fetches.
func TestExplainWhatIsClaimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoner(t, map[string]string{"http://a.test/": "http://b.test/x"}, nil)
		l.lost.Store("b.test", true)
		l.dispatch("http://a.test/")
		want := func(url string, claiming, elsewhere bool) {
			t.Helper()
			x, err := l.e.Inspector.Explain(url, func(Explanation) {})
			if err != nil || x.Claiming != claiming || x.Elsewhere != elsewhere {
				t.Errorf("%s: %+v, %v", url, x, err)
			}
		}
		want("http://a.test/", false, false)
		want("http://b.test/x", true, true)
		want("http://b.test/", false, true)
		l.kill()
		want("http://b.test/x", true, true)
		l.claim("http://b.test/x")
		want("http://b.test/x", false, true)
		l.end()
	})
}

// TestLinksOfAVisitThatIsPutOff: links that a visit found before it was postponed, such as sitemaps in a robots.txt,
// count for the host's next visit.
func TestLinksOfAVisitThatIsPutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoner(t, map[string]string{"http://a.test/": ""}, func(c *Config) { c.IgnoreRobots = false })
		l.e.Pause(true)
		l.dispatch("http://a.test/")
		l.e.Inspector.robots.Answer("http://a.test", 200, []byte("Sitemap: http://b.test/sitemap.xml"))
		l.e.limits.quota = policy.NewQuota(policy.Limits{PerHost: 1}, 0)
		l.e.limits.quota.Acquire("a.test", "") // for another visit under way, so this one is postponed
		l.e.Pause(false)
		l.settle()
		if links, _ := l.e.Links.Outbox(); links != 1 {
			t.Fatalf("%d links are to be claimed", links)
		}
		l.e.limits.quota.Finish("a.test", "", false)
		l.settle()
		l.fetched("http://a.test/", 1)
		l.wantDone("", false)
		l.claim("http://b.test/sitemap.xml")
		l.wantDone("http://a.test/", true)
		l.end()
	})
}

func owedNothing(string, time.Duration, time.Duration) {}
