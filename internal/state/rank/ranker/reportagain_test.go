package ranker

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"kumo/internal/state/rank"
	"kumo/internal/state/rank/ids"
	"kumo/internal/state/rank/indegree"
	"kumo/internal/state/rank/linklog"
)

// TestURLsThatMove: wherever a URL moves and whichever node finds links to it, each link counts once where the URL is,
// except links not reported yet. A process that continues from the log has the same state.
func TestURLsThatMove(t *testing.T) {
	const seed, nodes, urls, pages = 3, 3, 40, 3000
	t.Log("seed", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	var all [nodes]*Ranker
	var cfgs [nodes]Config
	for i := range all {
		cfgs[i] = Config{Order: indegree.New(), Others: true, Log: linklog.Config{Dir: t.TempDir()}}
		all[i] = open(t, cfgs[i], linklog.Mark{})
	}
	address := func(u int) string { return fmt.Sprint("https://example.com/", u) }
	at := func(n, u int) URL { return URL{Key: all[n].KeyOf(address(u))} }
	var home, links [urls]int
	type gift struct {
		u     int
		from  int
		worth float32
	}
	var box []gift // in transit
	tag := uint32(0)
	deliver := func() {
		for _, g := range box {
			tag++
			one := []Contribution{{URL: at(home[g.u], g.u), Worth: g.worth, Tag: tag}}
			take := all[home[g.u]].AddExternal
			if home[g.u] == g.from {
				take = all[g.from].Reclaim
			} else if tag%2 == 0 { // delivered twice
				one = append(one, one[0])
			}
			if _, err := take(one, nil); err != nil {
				t.Fatal(err)
			}
		}
		box = box[:0]
	}
	for p := range pages {
		n := dice.IntN(nodes)
		r := all[n]
		v := Visit{Page: ids.Key(1<<20 + p), Out: 5}
		for _, u := range dice.Perm(urls)[:5] {
			if links[u]++; home[u] == n {
				v.Links = append(v.Links, at(n, u))
				continue
			}
			v.Others, v.Shares = append(v.Others, at(n, u)), append(v.Shares, 1)
			more, err := r.ReportDelta(&RemoteURL{at(n, u), address(u)}, 1)
			if err != nil {
				t.Fatal(err)
			}
			if more != 0 {
				box = append(box, gift{u, n, more})
			}
		}
		if _, err := r.Fetched(&v, nil); err != nil {
			t.Fatal(err)
		}
		switch dice.IntN(20) {
		case 0:
			u, to := dice.IntN(urls), dice.IntN(nodes)
			if from := home[u]; from != to {
				home[u] = to
				moved := []Contribution{{URL: at(to, u), Worth: all[from].Export(at(from, u))}}
				if _, err := all[to].Import(moved, nil); err != nil {
					t.Fatal(err)
				}
			}
		case 1:
			if err := all[n].Flush(); err != nil {
				t.Fatal(err)
			}
			mark := r.Mark()
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			cfgs[n].Order = indegree.New()
			all[n] = open(t, cfgs[n], mark)
		default:
			if dice.IntN(5) == 0 {
				deliver()
			}
		}
	}
	deliver()
	for u := range urls {
		e, _ := all[home[u]].Explain(at(home[u], u))
		const kept = 1. / rank.Steps
		// each node may have a part not reported yet
		if got, want := e.Importance-1, float64(links[u]); got > want*1.02 || got < want*(1-(nodes-1)*kept) {
			t.Errorf("URL %d has %d links, and %v count", u, links[u], got)
		}
	}
	for _, r := range all {
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
