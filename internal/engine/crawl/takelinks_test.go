package crawl

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
	"kumo/internal/content/policy"
	"kumo/internal/content/robots"
	"kumo/internal/engine/exchange"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/journal"
	"kumo/internal/state/journal/memory"
	"kumo/internal/state/ledger"
	"kumo/internal/state/recovery"
	"kumo/internal/state/seen"
)

// A routerFunc reports whether a host is this node's; the lease always holds.
type routerFunc func(host string) bool

func (f routerFunc) Ours(host string) bool { return f(host) }
func (f routerFunc) May(host string) bool  { return f(host) }

// mine owns hosts that begin with "mine".
var mine = routerFunc(func(host string) bool { return strings.HasPrefix(host, "mine") })

// inMemory returns an engine that stores only its journal.
func inMemory(t testing.TB, j journal.Journal, r Router) *Engine {
	t.Helper()
	s, err := recovery.Recover(j, recovery.Views{Seen: seen.New(), Digests: seen.NewRecent(),
		Frontier: frontier.New(frontier.Config{})})
	if err != nil {
		t.Fatal(err)
	}
	m := &maze{asked: map[string][]int{}, answer: func(string, *page.Response) bool { return true }}
	return New(Config{Depth: -1, IgnoreRobots: true, KeepOpen: true}, Parts{Journal: j, Router: r,
		Scope:  weburl.NewScope(weburl.ScopeAny),
		Robots: robots.NewCache(robots.Config{}), Fetcher: &mazeClient{m, 0},
		NewParser: func(int64) Parser { return mazeParser{} }}, s)
}

// linksTo returns a batch of links.
func linksTo(urls ...string) []byte {
	data := []byte{member.LinksVersion}
	for _, url := range urls {
		data = appendLink(data, &entry.Candidate{Host: item.HostOf(url), Item: item.Item{URL: url, From: "http://from.test/",
			Path:  "LL",
			Depth: 3, Kind: page.Anchor}})
	}
	return data
}

func appendLink(data []byte, c *entry.Candidate) []byte {
	var enc entry.Encoder
	enc.Candidate(c)
	return append(binary.AppendUvarint(data, uint64(len(enc.Writer))), enc.Writer...)
}

// A tide is a journal that is replicated only when told to. It counts appends.
type tide struct {
	journal.Journal
	in      chan struct{}
	mu      sync.Mutex
	appends int
	asked   []journal.Position
}

func (j *tide) Append(batch []byte) error {
	j.mu.Lock()
	j.appends++
	j.mu.Unlock()
	return j.Journal.Append(batch)
}

func (j *tide) Ship(ctx context.Context, upTo journal.Position) error {
	j.mu.Lock()
	j.asked = append(j.asked, upTo)
	j.mu.Unlock()
	select {
	case <-j.in:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestLinksAreTakenWhenTheyAreSafe: TakeLinks returns when the admitted links are durable and replicated, and many
// calls share a commit. For repeated links, it waits as well. It does not wait for refused links, or after the end.
func TestLinksAreTakenWhenTheyAreSafe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &tide{Journal: memory.New(), in: make(chan struct{})}
		e := inMemory(t, j, mine)
		e.Pause(true)
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error)
		go func() { ran <- e.Run(ctx, nil, 4) }()
		synctest.Wait()

		refused, err := e.Links.TakeLinks(ctx, linksTo("http://other.test/", "http://other.test/2"))
		if err != nil || !slices.Equal(refused, []int{0, 1}) || j.appends > 0 {
			t.Errorf("all refused: %v, %v, %d commits", refused, err, j.appends)
		}
		var takers sync.WaitGroup
		var done atomic.Int64
		for i := range 100 {
			takers.Go(func() {
				refused, err := e.Links.TakeLinks(ctx, linksTo(fmt.Sprint("http://mine.test/", i%50), "http://other.test/",
					"http://mine.test/all"))
				if err != nil || !slices.Equal(refused, []int{1}) {
					t.Errorf("%v, %v", refused, err)
				}
				done.Add(1)
			})
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if done.Load() > 0 || j.appends != 1 || e.frontier.Counts().URLs != 51 || len(j.asked) != 100 ||
			j.asked[0] != j.End() {
			t.Errorf("before it is shipped: %d returned, %d commits, %+v, %d asked for shipping", done.Load(), j.appends,
				e.frontier.Counts(), len(j.asked))
		}
		close(j.in)
		takers.Wait()

		if _, err := e.Links.TakeLinks(ctx, linksTo("http://mine.test/all")); err != nil || len(j.asked) != 101 ||
			e.frontier.Counts().URLs != 51 {
			t.Errorf("again: %v, %d asked for shipping, %+v", err, len(j.asked), e.frontier.Counts())
		}
		cancel()
		if err := <-ran; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if _, err := e.Links.TakeLinks(t.Context(), linksTo("http://mine.test/late")); !errors.Is(err, ledger.ErrEnded) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// TestTheOutboxComesBack: links that were taken according to the journal are gone, the others are in the next process's
// outbox; a process without other nodes admits them.
func TestTheOutboxComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, now := memory.New(), time.Now()
		e := inMemory(t, j, mine)
		for _, url := range []string{"http://a.test/", "http://b.test/", "http://c.test/", "http://b.test/"} {
			if _, err := e.inherit(linksTo(url, "http://mine.test/")); err != nil {
				t.Fatal(err)
			}
		}
		owner := func(host string) (strategy.Node, bool) { return "a~1", host != "c.test" }
		sent := e.Links.Batches(now, owner)
		if len(sent) != 1 || sent[0].To != "a~1" || !bytes.Equal(sent[0].Data, linksTo("http://a.test/", "http://b.test/")) {
			t.Fatalf("sent %+v", sent)
		}
		e.Links.Answered("a~1", sent[0].Number, []int{0}, now)
		if err := e.ledger.Commit(); err != nil {
			t.Fatal(err)
		}
		want := [][]byte{linksTo("http://a.test/", "http://c.test/")}

		s, err := recovery.Recover(j, recovery.Views{Seen: seen.New(), Digests: seen.NewRecent(),
			Frontier: frontier.New(frontier.Config{})})
		if err != nil {
			t.Fatal(err)
		}
		var got [][]byte
		if err := s.Links.Batches(func(data []byte) error { got = append(got, bytes.Clone(data)); return nil }); err != nil ||
			!slices.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("in the next process %q wait, %v", got, err)
		}
		again := inMemory(t, j, mine)
		if links, _ := again.Links.Outbox(); links != 2 || again.Idle() {
			t.Errorf("%d links wait", links)
		}
		if b := again.Links.Batches(now, owner); len(b) != 1 || b[0].Number == sent[0].Number {
			t.Errorf("sent %+v: an old answer could be taken for one to this", b)
		}

		alone := inMemory(t, j, nil)
		alone.Finish()
		if err := alone.Run(t.Context(), nil, 2); err != nil {
			t.Fatal(err)
		}
		if n := alone.abandons.stats.Totals().Pages; n != 3 || alone.Known() != 3 {
			t.Errorf("alone it has fetched %d pages of %d", n, alone.Known())
		}
		if links, _ := inMemory(t, j, mine).Links.Outbox(); links != 0 {
			t.Errorf("%d links wait after that", links)
		}
	})
}

// inherit is Inherit without a run.
func (e *Engine) inherit(data []byte) (uint64, error) {
	var b batch
	if err := b.read(data); err != nil {
		return 0, err
	}
	_, sequence, err := e.Links.admit(&b, false, nil)
	return sequence, err
}

// TestWhatBecomesOursLeavesTheOutbox: a node becomes a host's owner while links to the host are in its outbox.
func TestWhatBecomesOursLeavesTheOutbox(t *testing.T) {
	ours := false
	e := inMemory(t, memory.New(), routerFunc(func(string) bool { return ours }))
	if _, err := e.inherit(linksTo("http://a.test/", "http://a.test/2")); err != nil {
		t.Fatal(err)
	}
	owner := func(string) (strategy.Node, bool) {
		if ours {
			t.Error("somebody is asked whose our host is")
		}
		return "", false
	}
	now := time.Now()
	if b := e.Links.Batches(now, owner); len(b) > 0 || e.frontier.Counts().URLs > 0 {
		t.Errorf("sent %+v", b)
	}
	ours = true
	if b := e.Links.Batches(now.Add(time.Second), owner); len(b) > 0 || e.frontier.Counts().URLs != 2 ||
		!e.Links.outbox.Empty() {
		t.Errorf("sent %+v, %d URLs wait", b, e.frontier.Counts().URLs)
	}
}

// TestAVisitToAnothersHostDoesNothing: the URL stays pending, even if a rule would filter it.
func TestAVisitToAnothersHostDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := inMemory(t, memory.New(), mine)
		e.abandons.batches.listener.Skipped = func(s *page.Skip) { t.Errorf("left out: %+v", s) }
		e.frontier.Push("other.test", item.Item{URL: "http://other.test/"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := e.Run(ctx, nil, 2); !errors.Is(err, context.DeadlineExceeded) || e.frontier.Counts().URLs != 1 {
			t.Errorf("%v, %+v", err, e.frontier.Counts())
		}
	})
}

// badLinks returns batches that no outbox has written.
func badLinks() map[string][]byte {
	good := entry.Candidate{Host: "mine.test", Item: item.Item{URL: "http://mine.test/", Kind: page.Anchor}}
	with := func(change func(c *entry.Candidate)) []byte {
		c := good
		change(&c)
		return appendLink([]byte{member.LinksVersion}, &c)
	}
	whole := linksTo("http://mine.test/", "http://mine.test/2")
	return map[string][]byte{
		"nothing": {}, "another version": {9}, "cut off": whole[:len(whole)-1], "more": append(bytes.Clone(whole), 0),
		"a long length":    {member.LinksVersion, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
		"no URL":           with(func(c *entry.Candidate) { c.Item.URL = "mine" }),
		"it was visited":   with(func(c *entry.Candidate) { c.Item.Tries = 1 }),
		"a robots.txt":     with(func(c *entry.Candidate) { c.Item.Robots = "http://mine.test" }),
		"no canonical URL": with(func(c *entry.Candidate) { c.Item.URL = "http://mine.test" }),
		"above the seed":   with(func(c *entry.Candidate) { c.Item.Depth = -1 }),
		"a long way":       with(func(c *entry.Candidate) { c.Item.Path = strings.Repeat("L", entry.MaxPath+1) }),
		"why without rule": with(func(c *entry.Candidate) { c.Why = "so" }),
	}
}

func TestBadLinksChangeNothing(t *testing.T) {
	j := memory.New()
	e := inMemory(t, j, mine)
	for what, data := range badLinks() {
		if _, err := e.Links.TakeLinks(t.Context(), data); !errors.Is(err, exchange.ErrLinks) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := e.ledger.Commit(); err != nil {
		t.Fatal(err)
	}
	if c := e.frontier.Counts(); c.URLs > 0 || e.Known() > 0 || e.Received() > 0 || j.End() > 0 {
		t.Errorf("%+v, %d known, %d journalled", c, e.Known(), j.End())
	}
}

// FuzzTakeLinks reads bytes from the network: either as a batch that encodes to the same bytes, or with an error.
func FuzzTakeLinks(f *testing.F) {
	for _, data := range badLinks() {
		f.Add(data)
	}
	f.Add(goodLinks())
	f.Fuzz(func(t *testing.T, data []byte) {
		var b batch
		if b.read(data) != nil {
			return
		}
		again := []byte{member.LinksVersion}
		for i := range b.cands {
			again = appendLink(again, &b.cands[i])
			if c := &b.cands[i]; frontier.Belongs(c.Host, c.Item.URL) && c.Host != item.HostOf(c.Item.URL) ||
				b.urls[i].URL != c.Item.URL {
				t.Fatalf("%+v, offered as %+v", c, b.urls[i])
			}
		}
		var same batch
		if err := same.read(again); err != nil || !slices.Equal(same.cands, b.cands) {
			t.Fatalf("%+v became %+v, %v", b.cands, same.cands, err)
		}
	})
}

// goodLinks returns three links to this node, one of them filtered, and one to another.
func goodLinks() []byte {
	skip := entry.Candidate{Host: "mine.test", Item: item.Item{URL: "http://mine.test/deep", Seed: "http://a.test/",
		Depth: 9},
		Verdict: policy.Defer("depth", "deep")}
	return appendLink(linksTo("http://mine.test/", "http://other.test/", "http://mine.test/2"), &skip)
}

// TestTakenLinksComeBack reads admitted links from the journal.
func TestTakenLinksComeBack(t *testing.T) {
	j := memory.New()
	e := inMemory(t, j, mine)
	var b batch
	if err := b.read(goodLinks()); err != nil {
		t.Fatal(err)
	}
	refused, _, err := e.Links.admit(&b, true, nil)
	if err != nil || !slices.Equal(refused, []int{1}) {
		t.Fatal(refused, err)
	}
	if err := e.ledger.Commit(); err != nil {
		t.Fatal(err)
	}
	s, err := recovery.Recover(j, recovery.Views{Seen: seen.New(), Digests: seen.NewRecent(),
		Frontier: frontier.New(frontier.Config{})})
	if err != nil {
		t.Fatal(err)
	}
	state, depth, err := s.Views.Seen.StateOf("http://mine.test/deep")
	if w := queuedItem(s, "http://mine.test/2"); err != nil || s.Pending() != 2 || w.Path != "LLL" || w.Depth != 3 ||
		state != seen.Deferred || depth != 9 {
		t.Errorf("%d wait, %+v; the one left out is %v, %d, %v", s.Pending(), w, state, depth, err)
	}
}

// BenchmarkTakeLinks admits batches of 500 links from eight nodes at once: all new, or all known.
func BenchmarkTakeLinks(b *testing.B) {
	const links = 500
	for _, known := range []bool{false, true} {
		b.Run(fmt.Sprint("known ", known), func(b *testing.B) {
			e := inMemory(b, journal.Discard, mine)
			e.Pause(true)
			ctx, cancel := context.WithCancel(b.Context())
			ran := make(chan error)
			go func() { ran <- e.Run(ctx, nil, 1) }()
			urls := make([]string, links)
			for i := range urls {
				urls[i] = fmt.Sprintf("http://mine%d.test/some/folder/page-00000000-%03d.html", i%50, i)
			}
			data := linksTo(urls...)
			var mu sync.Mutex
			n := 0
			b.SetParallelism(4)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				data := bytes.Clone(data)
				for pb.Next() {
					mu.Lock()
					n++
					number := fmt.Appendf(nil, "page-%08d", n)
					mu.Unlock()
					for at := 0; !known; at += len(number) {
						i := bytes.Index(data[at:], []byte("page-"))
						if i < 0 {
							break
						}
						at += i
						copy(data[at:], number)
					}
					if _, err := e.Links.TakeLinks(ctx, data); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/links, "ns/link")
			cancel()
			<-ran
		})
	}
}

// queuedItem returns the pending item of a URL, queued since the checkpoint.
func queuedItem(s *recovery.State, url string) item.Item {
	for _, it := range s.Queue() {
		if it.URL == url {
			return it
		}
	}
	return item.Item{}
}
