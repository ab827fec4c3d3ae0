package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kumo/internal/lab/synthweb"
)

// A wanResult is the result of a crawl, as seen by the servers.
type wanResult struct {
	covered, truth, twice int           // pages
	hosts, shared         int           // hosts contacted, and contacted by several nodes
	close                 int           // requests that came less than the delay after another
	gap                   time.Duration // the shortest between two requests to a host
	all                   time.Duration // until the last page was fetched
	rate, middle          float64       // pages per second: of all, and of the middle eight tenths

	// Mean round trips over requests: from the requesting node, from the nearest node, and from any node that reaches
	// the host.
	connect, best, mean time.Duration
	nearest             float64 // share of the hosts contacted by the nearest node, or by one as near
}

// measure fills in the result.
func (w *wanRun) measure(e *evidence) {
	score, r := w.server.Score(), &w.result
	r.covered, r.truth, r.twice = score.Covered, score.Truth, int(score.Repeats+score.RepeatsOther)
	slips, violations := e.meetings()
	r.close, r.gap = len(slips)+len(violations), leastGap(e.log)
	w.pace(e)
	w.closeness(e)
}

// leastGap returns the least time between the end of a request to a host and the next one.
func leastGap(log synthweb.Log) time.Duration {
	least := time.Hour
	for _, m := range log.Overlaps(time.Hour) {
		least = min(least, m.Gap)
	}
	return least
}

// pace computes the rate of new pages, from the time when all nodes had joined.
func (w *wanRun) pace(e *evidence) {
	seen := map[string]bool{}
	var ends []time.Time
	for _, q := range e.log {
		if key := q.Host + q.Target; q.Whole && q.Target != "/robots.txt" && !seen[key] {
			seen[key] = true
			if q.End.After(w.began) {
				ends = append(ends, q.End)
			}
		}
	}
	if len(ends) < 10 {
		w.Fatalf("%d pages were fetched", len(ends))
	}
	slices.SortFunc(ends, time.Time.Compare)
	n, r := len(ends), &w.result
	r.all = ends[n-1].Sub(w.began)
	r.rate = float64(n) / r.all.Seconds()
	r.middle = float64(n*9/10-n/10) / ends[n*9/10].Sub(ends[n/10]).Seconds()
}

// closeness computes the distances of hosts from the nodes that contacted them, from the time when all nodes had
// joined.
func (w *wanRun) closeness(e *evidence) {
	var connect, best, mean time.Duration
	hosts, r := w.hosts(), &w.result
	by, near := map[string]map[int]bool{}, map[string]bool{}
	n := time.Duration(0)
	for _, q := range e.log {
		if q.At.Before(w.began) {
			continue
		}
		n++
		place := placeOf(hosts[q.Host])
		node := slices.IndexFunc(w.nodes, func(n *clusterNode) bool { return n.host.Addr() == q.Client })
		nearest, typical, _ := w.far.of(place)
		connect, best, mean = connect+w.far.hosts[node][place], best+nearest, mean+typical
		if by[q.Host] == nil {
			by[q.Host] = map[int]bool{}
		}
		by[q.Host][node] = true
		near[q.Host] = w.far.hosts[node][place] == nearest
	}
	r.connect, r.best, r.mean, r.hosts = connect/n, best/n, mean/n, len(by)
	for host, nodes := range by {
		if len(nodes) > 1 {
			r.shared++
		}
		if near[host] {
			r.nearest += 1 / float64(len(by))
		}
	}
}

// compared returns a table of two crawls side by side.
func compared(a, b *wanRun) string {
	var out strings.Builder
	row := func(what string, x, y any, ratio string) {
		fmt.Fprintf(&out, "  %-46s%14v%14v%10s\n", what, x, y, ratio)
	}
	times := func(what string, f func(r wanResult) float64, unit string) {
		x, y := f(a.result), f(b.result)
		row(what, fmt.Sprintf("%.1f%s", x, unit), fmt.Sprintf("%.1f%s", y, unit), fmt.Sprintf("%.2f", y/x))
	}
	ms := func(what string, f func(r wanResult) time.Duration) {
		times(what, func(r wanResult) float64 { return f(r).Seconds() * 1000 }, " ms")
	}
	whole := func(what string, f func(r wanResult) string) { row(what, f(a.result), f(b.result), "") }
	row("", a.strategy, b.strategy, "ratio")
	whole("covered", func(r wanResult) string { return fmt.Sprintf("%d of %d", r.covered, r.truth) })
	whole("hosts asked", func(r wanResult) string { return fmt.Sprint(r.hosts) })
	whole("hosts asked by several nodes", func(r wanResult) string { return fmt.Sprint(r.shared) })
	whole("fetched twice", func(r wanResult) string { return fmt.Sprint(r.twice) })
	whole("requests too close to another, least gap", func(r wanResult) string {
		return fmt.Sprintf("%d, %v", r.close,
			r.gap.Round(time.Millisecond))
	})
	times("until all was fetched", func(r wanResult) float64 { return r.all.Seconds() }, " s")
	times("pages a second", func(r wanResult) float64 { return r.rate }, "")
	times("pages a second, middle eight tenths", func(r wanResult) float64 { return r.middle }, "")
	ms("connect delay, mean over requests", func(r wanResult) time.Duration { return r.connect })
	ms("of the nearest node", func(r wanResult) time.Duration { return r.best })
	ms("of any node", func(r wanResult) time.Duration { return r.mean })
	times("hosts asked by the nearest node", func(r wanResult) float64 { return 100 * r.nearest }, " %")
	return out.String()
}
