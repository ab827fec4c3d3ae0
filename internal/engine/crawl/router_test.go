package crawl

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/weburl"
	"kumo/internal/content/fetch"
	"kumo/internal/content/robots"
	"kumo/internal/state/frontier"
	"kumo/internal/state/journal"
	"kumo/internal/state/recovery"
	"kumo/internal/state/seen"
)

// A ban is a router that owns all hosts and permits no requests to some.
type ban struct {
	lifted atomic.Bool
	asked  atomic.Int64
}

func (b *ban) Ours(string) bool { return true }

func (b *ban) May(string) bool {
	b.asked.Add(1)
	return b.lifted.Load()
}

// banned returns an engine with hosts that may not be visited. It has no fetcher and no journal.
func banned(b *ban, hosts int, now func() time.Time, cfg frontier.Config) *Engine {
	cfg.Now = now
	front, _, err := frontier.Open(cfg)
	if err != nil {
		panic(err)
	}
	for i := range hosts {
		front.Push(fmt.Sprintf("h%d.test", i), item.Item{URL: fmt.Sprintf("http://h%d.test/", i)})
	}
	state, err := recovery.Recover(journal.Discard, recovery.Views{Seen: seen.New(), Digests: seen.NewRecent(),
		Frontier: front})
	if err != nil {
		panic(err)
	}
	return New(Config{Now: now}, Parts{Router: b, Journal: journal.Discard, Robots: robots.NewCache(robots.Config{}),
		Scope: weburl.NewScope(weburl.ScopeAny)}, state)
}

var _ Prober = (*fetch.Client)(nil)

// The checks of a host that may not be visited become rarer, but it is visited soon after it may be. Nothing else is
// done for it: the engine has no fetcher to look up its address.
func TestHostsThatMayNotBeAskedArePutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := new(ban)
		e := banned(b, 1, time.Now, frontier.Config{})
		w := e.runner.workers.acquire()
		next := func() *frontier.Visit {
			v, err := e.frontier.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		looks := map[int]int{} // by minute
		began := time.Now()
		for time.Since(began) < 10*time.Minute {
			v := next()
			if err := w.visit(t.Context(), v); err != nil {
				t.Fatal(err)
			}
			looks[int(time.Since(began).Minutes())]++
		}
		if looks[0] < 10 || looks[0] > 20 || looks[5] > 2 || looks[5] < 1 {
			t.Errorf("looks a minute: %v", looks)
		}
		v := next()
		b.lifted.Store(true)
		if !w.isOurs(v) {
			t.Error("it may be asked")
		}
		b.lifted.Store(false)
		began = time.Now()
		e.frontier.Postpone(v, 0)
		for range 3 {
			if w.checkPermit(next()) {
				t.Error("it may not be asked")
			}
		}
		next()
		if took := time.Since(began); took != 3*minPostponement {
			t.Errorf("a host that could be asked in between is looked at three times in %v", took)
		}
	})
}

// BenchmarkHostsThatMayNotBeAsked measures the load of 10,000 hosts with pending URLs that have long been blocked:
// processor time per second, with all hosts in memory and with room for few.
func BenchmarkHostsThatMayNotBeAsked(b *testing.B) {
	b.Run("memory", func(b *testing.B) { benchmarkBan(b, frontier.Config{}) })
	b.Run("disk", func(b *testing.B) { benchmarkBan(b, frontier.Config{Dir: b.TempDir(), Memory: 512 << 10}) })
}

func benchmarkBan(b *testing.B, cfg frontier.Config) {
	now := time.Unix(1_900_000_000, 0)
	router := new(ban)
	e := banned(router, 10_000, func() time.Time { return now }, cfg)
	defer e.frontier.Close()
	w := e.runner.workers.acquire()
	e.frontier.Push("clock.test", item.Item{URL: "http://clock.test/"})
	second := func() {
		now = now.Add(time.Second)
		for {
			v, err := e.frontier.Next(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			if v.Host == "clock.test" { // due when nothing else is
				e.frontier.Postpone(v, time.Second)
				return
			}
			own := e.runner.workers.acquire()
			w.politenessHost = e.Inspector.hosts.politenessHost(v)
			e.runner.workers.begin(own, v.Host, w.politenessHost)
			if err := w.visit(b.Context(), v); err != nil {
				b.Fatal(err)
			}
			e.runner.workers.put(own)
		}
	}
	for range 300 {
		second()
	}
	router.asked.Store(0)
	b.ReportAllocs()
	for b.Loop() {
		second()
	}
	b.ReportMetric(float64(router.asked.Load())/float64(b.N), "looks/op")
}
