package crawl

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/content/policy"
	"kumo/internal/engine/visit"
	"kumo/internal/lab/testmain"
	"kumo/internal/state/frontier"
)

// TestMemoryOfManyHosts measures the engine's memory per host, without seen and the frontier, once its bounded tables
// are full.
func TestMemoryOfManyHosts(t *testing.T) {
	testmain.Slow(t)
	if testing.Short() {
		t.Skip("a quarter of a million hosts")
	}
	const warm, more = 100_000, 150_000
	for limit, most := range map[int64]float64{0: 8, 10: 20} {
		e := engineWithLimit(t, limit)
		meetAll(t, e, 0, warm)
		before := heap()
		meetAll(t, e, warm, warm+more)
		if perHost := float64(int64(heap()-before)) / more; perHost > most {
			t.Errorf("limit %d: %.1f bytes a host, want %v at most", limit, perHost, most)
		}
		runtime.KeepAlive(e)
	}
}

// BenchmarkManyHosts visits a million hosts, and measures the engine's memory and the size of a checkpoint's note.
func BenchmarkManyHosts(b *testing.B) {
	const hosts = 1_000_000
	for _, limit := range []int64{0, 10} {
		b.Run(fmt.Sprint("limit ", limit), func(b *testing.B) {
			for b.Loop() {
				e := engineWithLimit(b, limit)
				before := heap()
				meetAll(b, e, 0, hosts)
				b.ReportMetric(float64(int64(heap()-before))/hosts, "B/host")
				began := time.Now()
				n := e.Checkpoints.note(1, nil)
				b.ReportMetric(float64(time.Since(began).Microseconds()), "note-pause-µs")
				text, err := json.Marshal(n)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(time.Since(began).Microseconds()), "note-µs")
				b.ReportMetric(float64(len(text)), "note-bytes")
				runtime.KeepAlive(e)
			}
		})
	}
}

func engineWithLimit(t testing.TB, limit int64) *Engine {
	e := onDisk(t, t.TempDir())
	e.cfg.PagesPerHost = limit
	e.limits.quota = policy.NewQuota(policy.Limits{Pages: e.cfg.Pages, PerHost: e.cfg.PagesPerHost}, 0)
	return e
}

// meetAll does with hosts what visits would do. A third of them is unreachable, with one URL each.
func meetAll(t testing.TB, e *Engine, from, to int) {
	for i := from; i < to; i++ {
		meet(t, e, i)
	}
}

func meet(t testing.TB, e *Engine, i int) {
	host := fmt.Sprintf("www.host-%07d.example", i)
	origin := "https://" + host
	e.abandons.admission.names.intern(host)
	if _, first := e.abandons.rules.Request(origin); !first {
		t.Fatal("a new host is known")
	}
	if i%3 > 0 {
		e.abandons.rules.Forget(origin)
		e.abandons.origins.isNearest(origin, 1, true)
		e.limits.quota.Acquire(host, "")
		e.limits.quota.Finish(host, "", true)
		e.abandons.stats.Visited(stats.Visit{Host: host, Status: 200, Type: "text/html",
			Took: time.Duration(i%1000) * time.Millisecond})
		return
	}
	it := item.Item{URL: origin + "/some/path/to/a/page.html", From: "https://www.elsewhere.example/links/"}
	l := visit.Abandonment{Failure: page.Refused, Why: "connection refused by " + host}
	for range originLimits.Refusals {
		e.abandons.origins.judge(origin, &frontier.Visit{Item: it, Started: time.Now()},
			&visitOutcome{Verdict: visit.Verdict{Outcome: frontier.Failed, Failure: l.Failure, Detail: l.Why}})
	}
	e.abandons.origins.Abandon(origin, l)
	e.abandons.rules.Forget(origin)
	if err := e.abandons.abandonItem(it); err != nil {
		t.Fatal(err)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
