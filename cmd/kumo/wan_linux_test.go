package main

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"kumo/internal/lab/netlab"
	"kumo/internal/lab/synthweb"
)

const (
	wanNodes  = 7
	wanHosts  = 140
	wanPages  = 12 // of a host
	wanPlaces = 36 // where hosts are, as many in each
	wanDelay  = 50 * time.Millisecond
	wanAtOnce = 2 // hosts that a node works on at a time: few, so that short delays matter
	wanMost   = 8 * time.Minute
)

// TestWAN runs seven nodes that crawl the same web twice over the same delays, which differ by node and host: with the
// strategy shard, which ignores them, and with that of KUMO_TEST_WAN_STRATEGY (default hub). Some pairs of a node and a
// host do not reach each other. It compares the servers' logs of the two. KUMO_TEST_SEED is the seed of the map, and
// KUMO_TEST_DATA a folder with measured delays, which replace those of a map.
func TestWAN(t *testing.T) {
	if testing.Short() || os.Getenv("KUMO_TEST_WAN") == "" {
		t.Skip("SKIPPED: it takes some minutes, and root; set KUMO_TEST_WAN to run it")
	}
	seed := number("KUMO_TEST_SEED", rand.Uint64N(1<<40))
	t.Logf("KUMO_TEST_SEED=%d", seed)
	far, err := newDistances(seed, os.Getenv("KUMO_TEST_DATA"))
	if err != nil {
		t.Fatal(err)
	}
	var runs []*wanRun
	for i, strategy := range []string{"shard", strategyOf("KUMO_TEST_WAN_STRATEGY", "hub")} {
		t.Run(fmt.Sprintf("%d-%s", i+1, strategy), func(t *testing.T) {
			w := &wanRun{labCluster: newLabCluster(t, fmt.Sprintf("wan-%d-%d-%s", seed, i+1, strategy), seed, strategy, wanNodes,
				wanNodes), far: far}
			w.crawl(seed)
			w.judge()
			runs = append(runs, w)
		})
	}
	if len(runs) == 2 {
		t.Logf("seed %d, %s:\n%s", seed, far, compared(runs[0], runs[1]))
	}
}

// A wanRun is one crawl.
type wanRun struct {
	*labCluster
	far     *distances
	traffic netlab.Traffic // of the proxy during the crawl
	took    time.Duration  // of that traffic
	result  wanResult
}

// hosts returns the index of each host of the web, by name.
func (w *wanRun) hosts() map[string]int {
	all := make(map[string]int)
	for i := range w.web.Len() {
		all[w.web.Host(i)] = i
	}
	return all
}

// connect sets the delays between nodes and hosts.
func (w *wanRun) connect() {
	w.Helper()
	var routes []netlab.Route
	for i, a := range w.nodes {
		from := netlab.One(a.host.Addr())
		for j, b := range w.nodes[:i] {
			routes = append(routes, netlab.Between(from, netlab.One(b.host.Addr()), w.far.nodes[i][j], 0)...)
		}
		for h := range w.web.Len() {
			lost, roundTrip := 0.0, w.far.hosts[i][placeOf(h)]
			if roundTrip == never {
				lost = 1
			}
			routes = append(routes, netlab.Between(from, netlab.One(w.server.Addr(w.web.Host(h)).Addr()), roundTrip, lost)...)
		}
	}
	if err := w.lab.SetRoutes(routes...); err != nil {
		w.Fatal(err)
	}
}

func (w *wanRun) crawl(seed uint64) {
	w.Helper()
	w.serve(synthweb.Clean(seed, wanHosts, wanHosts*wanPages))
	w.connect()
	w.flags = []string{"--preset", "wan", "--concurrency", fmt.Sprint(wanAtOnce)}
	w.begin(wanDelay, "--connect-timeout", "4s", "--tries", "2")
	w.tell("pause") // the comparison begins when all nodes have joined
	w.settle(4 * time.Minute)
	w.began = time.Now()
	before := w.lab.Traffic()
	w.tell("resume")
	done := w.await()
	w.traffic, w.took = w.lab.Traffic().Sub(before), w.ended.Sub(w.began)
	w.stop(done)
	if !done {
		w.FailNow()
	}
}

func (w *wanRun) await() (done bool) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for range tick.C {
		running := w.lookAfter()
		switch {
		case len(running) == 0:
			return true
		case time.Since(w.began) > wanMost, !w.ended.IsZero() && time.Since(w.ended) > time.Minute:
			w.Errorf("%d nodes run after %v", len(running), w.since(time.Now()))
			return false
		}
	}
	return false
}

// judge checks the crawl's guarantees, and measures everything else.
func (w *wanRun) judge() {
	w.Helper()
	w.server.Close()
	e := &evidence{log: w.server.Log(), delay: wanDelay}
	w.keep(e)
	truth := w.web.Truth(w.reachable(e))
	score := w.server.ScoreBy(truth)
	if score.Missing > 0 || score.Forbidden > 0 || score.Unknown > 0 || score.Repeats > 0 || score.RepeatsOther > 0 {
		w.Errorf("the servers saw:\n%s", score)
	}
	w.wantPolite(e)
	w.wantRecords(e, truth)
	for i, n := range w.nodes { // or the network is not as intended
		for _, q := range e.log {
			if q.Client == n.host.Addr() && w.far.hosts[i][placeOf(w.hosts()[q.Host])] == never {
				w.Fatalf("%s has asked %s, which it does not reach", n.name, q.Host)
			}
		}
	}
	w.measure(e)
	w.Logf("%s: a cluster after %v; done in %v; %s\n  proxy: %d packets in %v, %.0f a second, %d lost, %d dropped, "+
		"%.1f %% of a processor", w.strategy,
		w.forming.Round(time.Millisecond), w.since(w.ended), w.shares(e), w.traffic.Passed, w.took.Round(time.Millisecond),
		float64(w.traffic.Passed)/w.took.Seconds(), w.traffic.Lost, w.traffic.Dropped,
		100*w.traffic.Busy.Seconds()/w.took.Seconds())
}

// reachable returns the options for the pages that must be fetched. A strategy that ignores delays may give a host to a
// node that does not reach it, even a host that was fetched while the nodes were joining.
func (w *wanRun) reachable(e *evidence) (o synthweb.TruthOptions) {
	if !strings.HasPrefix(w.strategy, "shard") {
		return o
	}
	asked, hosts := map[string]bool{}, w.hosts()
	for _, q := range e.log {
		asked[q.Host] = asked[q.Host] || q.At.After(w.began)
	}
	o.Within = func(host string) bool { return asked[host] || !w.far.split(placeOf(hosts[host])) }
	return o
}

// shares returns the numbers of requests by node.
func (w *wanRun) shares(e *evidence) string {
	by := map[netip.Addr]int{}
	for _, q := range e.log {
		by[q.Client]++
	}
	all := []string{fmt.Sprintf("%d requests", len(e.log))}
	for _, n := range w.nodes {
		all = append(all, fmt.Sprintf("%s %d", n.name, by[n.host.Addr()]))
	}
	return strings.Join(all, ", ")
}
