package ranker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"kumo/internal/base/siphash"
	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
	"kumo/internal/state/rank"
	"kumo/internal/state/rank/ids"
	"kumo/internal/state/rank/indegree"
	"kumo/internal/state/rank/linklog"
	"kumo/internal/state/rank/opic"
	"kumo/internal/state/rank/pagerank"
	"kumo/internal/state/rank/ranktest"
)

var orders = map[string]func() rank.Order{
	"indegree": func() rank.Order { return indegree.New() },
	"opic":     func() rank.Order { return opic.New() },
	"pagerank": func() rank.Order { return pagerank.New(0) },
}

func open(t *testing.T, cfg Config, mark linklog.Mark) *Ranker {
	t.Helper()
	cfg.Key = siphash.Key{3}
	r, err := Open(t.Context(), cfg, mark)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func url(u rank.ID) string { return fmt.Sprintf("https://example.com/%d", u) }

// visit returns a page of a graph as a crawl reports it: links in any order, some twice.
func visit(r *Ranker, dice *rand.Rand, p *rank.Page) *Visit {
	v := &Visit{Page: r.KeyOf(url(p.ID)), Out: p.Out}
	for _, to := range p.Links {
		v.Links = append(v.Links, URL{Key: r.KeyOf(url(to)), Depth: 1})
	}
	if len(v.Links) > 0 {
		v.Links = append(v.Links, v.Links[0])
	}
	dice.Shuffle(len(v.Links), func(i, j int) { v.Links[i], v.Links[j] = v.Links[j], v.Links[i] })
	return v
}

func tell(t *testing.T, r *Ranker, v *Visit) []Placement {
	t.Helper()
	all, err := r.Fetched(v, nil)
	if err != nil || len(all) != len(v.Links) {
		t.Fatalf("%d standings of %d links: %v", len(all), len(v.Links), err)
	}
	return all
}

func refresh(t *testing.T, r *Ranker, changed func([]Change) error) RefreshStats {
	t.Helper()
	done, err := r.Refresh(t.Context(), changed)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func nobody([]Change) error { return nil }

// TestWhoIsToldKnowsAllPlaces: a queue that applies all reported changes has each pending URL at the right place.
func TestWhoIsToldKnowsAllPlaces(t *testing.T) {
	for name, order := range orders {
		t.Run(name, func(t *testing.T) {
			const seed = 1
			dice := rand.New(rand.NewPCG(seed, 1))
			r := open(t, Config{Order: order()}, linklog.Mark{})
			queue, fetched := map[ids.Key]rank.Place{}, map[ids.Key]bool{}
			rises := 0
			pages := ranktest.Pages(seed, 5000, 8)
			for i := range pages {
				v := visit(r, dice, &pages[i])
				fetched[v.Page] = true
				delete(queue, v.Page)
				for k, s := range tell(t, r, v) {
					key := v.Links[k].Key
					if fetched[key] {
						if s.Rose {
							t.Fatalf("page %d: a URL rose that was fetched", i)
						}
						continue
					}
					before, waits := queue[key]
					if s.Rose != (waits && s.Place < before) && v.Links[k].Depth == 1 {
						if !waits || queue[key] == s.Place { // already reported for another link of the page
							continue
						}
						t.Fatalf("page %d: place %d, then %d; rose: %v", i, before, s.Place, s.Rose)
					}
					if s.Rose {
						rises++
					}
					queue[key] = s.Place
				}
				if i%1000 == 500 {
					refresh(t, r, func(all []Change) error {
						for _, c := range all {
							if queue[c.Key] != c.From || fetched[c.Key] {
								t.Fatalf("%x is said to be at %d, not %d", c.Key, c.From, queue[c.Key])
							}
							queue[c.Key] = c.To
						}
						return nil
					})
				}
			}
			for key, place := range queue {
				e, known := r.Explain(URL{Key: key, Depth: 1})
				if want := rank.PlaceOf(e.Importance); !known || place != want || e.Fetched {
					t.Fatalf("%x waits at %d, and belongs to %d", key, place, want)
				}
			}
			if rises < 1000 || len(queue) < 100 {
				t.Errorf("%d rises, %d wait", rises, len(queue))
			}
		})
	}
}

// TestAgain: a ranker opened at a mark ranks as at the time of the mark, whatever followed, and however the process
// ended.
func TestAgain(t *testing.T) {
	for name, order := range orders {
		t.Run(name, func(t *testing.T) {
			const seed, n = 3, 3000
			dice := rand.New(rand.NewPCG(seed, 1))
			disk := vfstest.NewFaulty(vfs.OS)
			cfg := Config{Order: order(), Log: linklog.Config{Dir: filepath.Join(t.TempDir(), "rank"), Disk: disk}}
			r := open(t, cfg, linklog.Mark{})
			pages := ranktest.Pages(seed, n, 8)
			var mark linklog.Mark
			var want []Explanation
			for i := range pages {
				v := visit(r, dice, &pages[i])
				tell(t, r, v)
				if i%10 == 0 {
					gift := Contribution{URL: URL{Key: r.KeyOf(url(rank.ID(dice.IntN(n))))}, Worth: 0.5}
					if _, err := r.AddExternal([]Contribution{gift, gift}, nil); err != nil {
						t.Fatal(err)
					}
				}
				if i == 2*len(pages)/3 {
					settle(t, r)
					want = explain(r, n)
					var err error
					if mark, err = r.Sync(); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := r.Flush(); err != nil {
				t.Fatal(err)
			}
			disk.DieAfter(0)
			r.Close() // it was killed
			if err := disk.PowerLoss(dice); err != nil {
				t.Fatal(err)
			}
			cfg.Order, cfg.Log.Disk = order(), vfs.OS
			r = open(t, cfg, mark)
			settle(t, r)
			for u, e := range explain(r, n) {
				if math.Abs(e.Importance-want[u].Importance) > 1e-5*e.Importance || e.Fetched != want[u].Fetched {
					t.Fatalf("URL %d: %+v, then %+v", u, want[u], e)
				}
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestKilled: data after the mark does not count, even if it was written.
func TestKilled(t *testing.T) {
	cfg := Config{Order: indegree.New(), Log: linklog.Config{Dir: t.TempDir()}}
	r := open(t, cfg, linklog.Mark{})
	tell(t, r, &Visit{Page: 1, Links: []URL{{Key: 2}, {Key: 3}}})
	mark := r.Mark()
	tell(t, r, &Visit{Page: 2, Links: []URL{{Key: 3}, {Key: 4}}})
	if err := errors.Join(r.Flush(), r.Close()); err != nil {
		t.Fatal(err)
	}
	cfg.Order = indegree.New()
	r = open(t, cfg, mark)
	for key, want := range map[ids.Key]Explanation{1: {1, 0, true}, 2: {2, 1, false}, 3: {2, 1, false}, 4: {}} {
		if e, known := r.Explain(URL{Key: key}); e != want || known != (key != 4) {
			t.Errorf("%d: %+v, %v; want %+v", key, e, known, want)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// settle refreshes until nothing changes.
func settle(t *testing.T, r *Ranker) {
	for range 100 {
		if done := refresh(t, r, nobody); done.Change == 0 {
			return
		}
	}
}

func explain(r *Ranker, n int) (all []Explanation) {
	for u := range rank.ID(n) {
		e, _ := r.Explain(URL{Key: r.KeyOf(url(u))})
		all = append(all, e)
	}
	return all
}

// TestRefreshWhilePagesCome: pages arrive from several goroutines while ranks are refreshed; none is missed.
func TestRefreshWhilePagesCome(t *testing.T) {
	const seed, n = 5, 20_000
	pages := ranktest.Pages(seed, n, 8)
	r := open(t, Config{Order: pagerank.New(0), Log: linklog.Config{Dir: t.TempDir()}}, linklog.Mark{})
	ctx, cancel := context.WithCancel(t.Context())
	var fetching, refreshing sync.WaitGroup
	for part := range 4 {
		fetching.Go(func() {
			dice := rand.New(rand.NewPCG(seed, uint64(part)))
			var standings []Placement
			for i := part; i < len(pages); i += 4 {
				var err error
				if standings, err = r.Fetched(visit(r, dice, &pages[i]), standings[:0]); err != nil {
					t.Error(err)
				}
				if i%500 == 0 {
					if _, err := r.Sync(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	refreshes := 0
	refreshing.Go(func() {
		for ctx.Err() == nil {
			if _, err := r.Refresh(ctx, nobody); err == nil {
				refreshes++
			} else if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
	fetching.Wait()
	cancel()
	refreshing.Wait()
	alone := open(t, Config{Order: pagerank.New(0)}, linklog.Mark{})
	dice := rand.New(rand.NewPCG(seed, 1))
	for i := range pages {
		tell(t, alone, visit(alone, dice, &pages[i]))
	}
	for range 60 {
		refresh(t, r, nobody)
		refresh(t, alone, nobody)
	}
	want := explain(alone, n)
	for u, e := range explain(r, n) {
		if math.Abs(e.Importance-want[u].Importance) > 1e-5*e.Importance || e.Fetched != want[u].Fetched {
			t.Fatalf("URL %d: %+v, alone %+v", u, e, want[u])
		}
	}
	t.Logf("%d refreshes while pages came", refreshes)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestTwoNodes: nodes that each have half of the hosts and report the worth of links to each other rank nearly as a
// single node, and much better than without reports. A URL that moves with its host keeps its rank.
func TestTwoNodes(t *testing.T) {
	const seed, n = 7, 20_000
	pages := ranktest.Pages(seed, n, 8)
	whole := crawl(t, pages, 1, true)
	told, silent := crawl(t, pages, 2, true), crawl(t, pages, 2, false)
	want := top(whole, n)
	both, bothSilent := common(want, top(told, n)), common(want, top(silent, n))
	t.Logf("of the 500 URLs that rank highest with one node, %d do so with two, %d with two that are silent", both,
		bothSilent)
	if both < 425 || both < bothSilent+20 {
		t.Errorf("%d and %d of 500", both, bothSilent)
	}
	for u := rank.ID(0); u < n; u++ {
		e, known := told[0].Explain(URL{Key: told[0].KeyOf(url(u))})
		if !known || owner(u, 2) != 0 || e.Fetched {
			continue
		}
		moved := URL{Key: told[1].KeyOf(fmt.Sprint("moved ", u))}
		if _, err := told[1].Import([]Contribution{{URL: moved, Worth: told[0].Export(URL{Key: told[0].KeyOf(url(u))})}},
			nil); err != nil {
			t.Fatal(err)
		}
		if there, _ := told[1].Explain(moved); math.Abs(there.Importance-e.Importance) > 1e-6*e.Importance {
			t.Fatalf("URL %d: %v, and %v where it went", u, e, there)
		}
	}
}

// owner returns the node of a URL's host; a host has ten URLs.
func owner(u rank.ID, nodes int) int { return int(u) / 10 % nodes }

// crawl has nodes fetch pages.
func crawl(t *testing.T, pages []rank.Page, nodes int, tell bool) (all []*Ranker) {
	again := 0
	for range nodes {
		r := open(t, Config{Order: pagerank.New(0), Others: nodes > 1, Log: linklog.Config{Dir: t.TempDir()}},
			linklog.Mark{})
		t.Cleanup(func() { r.Close() })
		all = append(all, r)
	}
	for i := range pages {
		p := &pages[i]
		at := all[owner(p.ID, nodes)]
		v := Visit{Page: at.KeyOf(url(p.ID)), Out: p.Out}
		share, err := at.Share(v.Page, p.Out)
		if err != nil {
			t.Fatal(err)
		}
		gifts := make([][]Contribution, nodes)
		for _, to := range p.Links {
			u := URL{Key: at.KeyOf(url(to))}
			o := owner(to, nodes)
			if all[o] == at {
				v.Links = append(v.Links, u)
				continue
			}
			v.Others = append(v.Others, u)
			if !tell {
				continue
			}
			v.Shares = append(v.Shares, share)
			more, err := at.ReportDelta(&RemoteURL{u, url(to)}, share)
			if err != nil {
				t.Fatal(err)
			}
			gifts[o] = append(gifts[o], Contribution{u, more, uint32(i + 1)})
		}
		if _, err := at.Fetched(&v, nil); err != nil {
			t.Fatal(err)
		}
		for o := range gifts {
			for range 2 { // counts once
				if _, err := all[o].AddExternal(gifts[o], nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		if i%2000 == 0 {
			for _, r := range all {
				if err := r.Flush(); err != nil {
					t.Fatal(err)
				}
				refresh(t, r, nobody)
				again += tellAgain(t, r, all)
			}
		}
	}
	if found, told := 0, again; nodes > 1 && tell {
		for i := range pages {
			for _, to := range pages[i].Links {
				if owner(to, nodes) != owner(pages[i].ID, nodes) {
					found++
				}
			}
		}
		if t.Logf("%d times a URL was told again, of %d links", told, found); told == 0 || told > found/4 {
			t.Error("that is none, or more than may be")
		}
	}
	return all
}

// tellAgain reports to other nodes after a refresh.
func tellAgain(t *testing.T, r *Ranker, all []*Ranker) (n int) {
	err := r.ReportAgain(t.Context(), func(others []RemoteURL) error {
		for i := range others {
			u := &others[i]
			more, err := r.ReportDelta(u, 0)
			if err != nil || more == 0 {
				t.Errorf("%s is to be told again, and there is %v more: %v", u.Address, more, err)
			}
			var number int
			if _, err := fmt.Sscanf(u.Address, "https://example.com/%d", &number); err != nil {
				return err
			}
			if _, err := all[owner(rank.ID(number), len(all))].AddExternal([]Contribution{{u.URL, more, 0}}, nil); err != nil {
				return err
			}
		}
		n += len(others)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// top returns the 500 of n URLs with the highest ranks.
func top(nodes []*Ranker, n int) []rank.ID {
	var all []rank.ID
	importance := make([]float64, n)
	for u := range importance {
		r := nodes[owner(rank.ID(u), len(nodes))]
		e, _ := r.Explain(URL{Key: r.KeyOf(url(rank.ID(u)))})
		all, importance[u] = append(all, rank.ID(u)), e.Importance
	}
	slices.SortStableFunc(all, func(a, b rank.ID) int { return cmp.Compare(importance[b], importance[a]) })
	return all[:500]
}

func common(a, b []rank.ID) (n int) {
	for _, u := range b {
		if slices.Contains(a, u) {
			n++
		}
	}
	return n
}

func TestAPageThatIsFetchedAgainChangesNothing(t *testing.T) {
	r := open(t, Config{Order: indegree.New()}, linklog.Mark{})
	v := Visit{Page: 1, Links: []URL{{Key: 2}}}
	first := tell(t, r, &v)
	if again := tell(t, r, &v); !slices.Equal(first, again) {
		t.Errorf("%v, then %v", first, again)
	}
}

// TestNoMoreThanMost: URLs added when no numbers are left have importance 1, and others are still ranked.
func TestNoMoreThanMost(t *testing.T) {
	r := open(t, Config{Order: indegree.New(), MaxURLs: 4}, linklog.Mark{})
	tell(t, r, &Visit{Page: 1, Links: []URL{{Key: 2}, {Key: 3}}})
	all, err := r.Fetched(&Visit{Page: 2, Links: []URL{{Key: 3}, {Key: 4}, {Key: 5}, {Key: 3}}}, nil)
	one := rank.PlaceOf(1)
	if !errors.Is(err, ErrFull) || len(all) != 4 || !all[0].Rose || all[0].Place >= rank.PlaceOf(2) ||
		all[2].Place != one {
		t.Errorf("%+v, %v", all, err)
	}
	if e, _ := r.Explain(URL{Key: 4}); e.Importance != 2 {
		t.Errorf("what got the last number has %+v", e)
	}
	all, err = r.Fetched(&Visit{Page: 6, Links: []URL{{Key: 3}, {Key: 7}}}, nil)
	if !errors.Is(err, ErrFull) || len(all) != 2 {
		t.Errorf("of a page without a number: %+v, %v", all, err)
	}
	if e, _ := r.Explain(URL{Key: 3}); e.Importance != 3 {
		t.Errorf("after links from two pages that count: %+v", e)
	}
	all, err = r.AddExternal([]Contribution{{URL: URL{Key: 8}, Worth: 1}, {URL: URL{Key: 4}, Worth: 2}}, nil)
	if !errors.Is(err, ErrFull) || len(all) != 2 || all[0].Place != one {
		t.Errorf("%+v, %v", all, err)
	}
	if e, _ := r.Explain(URL{Key: 4}); e.Importance != 4 {
		t.Errorf("after a gift: %+v", e)
	}
	places, err := r.Places([]URL{{Key: 9}, {Key: 2}}, nil)
	if !errors.Is(err, ErrFull) || len(places) != 2 || places[0] != one || places[1] != rank.PlaceOf(2) {
		t.Errorf("%v, %v", places, err)
	}
}

func TestSeeds(t *testing.T) {
	cfg := Config{Order: opic.New(), Log: linklog.Config{Dir: t.TempDir()}}
	r := open(t, cfg, linklog.Mark{})
	places, err := r.Places([]URL{{Key: 5}, {Key: 6}, {Key: 5, Depth: 3}}, nil)
	if err != nil || len(places) != 3 || places[0] != rank.PlaceOf(1) {
		t.Fatalf("%v, %v", places, err)
	}
	if s := r.Size(); s.URLs != 2 {
		t.Errorf("%+v", s)
	}
	mark, err := r.Sync()
	if err != nil || r.Close() != nil {
		t.Fatal(err)
	}
	cfg.Order = opic.New()
	r = open(t, cfg, mark)
	if e, known := r.Explain(URL{Key: 6}); !known || e.Importance != 1 {
		t.Errorf("%+v, %v", e, known)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestNothingIsAllocatedForALink: a page with known links only takes the memory of its record.
func TestNothingIsAllocatedForALink(t *testing.T) {
	const seed = 1
	r := open(t, Config{Order: pagerank.New(0)}, linklog.Mark{})
	dice := rand.New(rand.NewPCG(seed, 1))
	pages := ranktest.Pages(seed, 2000, 20)
	var visits []*Visit
	for i := range pages {
		visits = append(visits, visit(r, dice, &pages[i]))
		tell(t, r, &Visit{Page: 1 << 36, Links: visits[i].Links})
		for k := range visits[i].Links {
			if _, err := r.Places(visits[i].Links[k:k+1], nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	standings, i := make([]Placement, 0, 1000), 0
	if n := testing.AllocsPerRun(1000, func() {
		var err error
		if standings, err = r.Fetched(visits[i], standings[:0]); err != nil {
			t.Fatal(err)
		}
		i++
	}); n > 0.1 {
		t.Errorf("%v allocations a page", n)
	}
}

func BenchmarkKeyOf(b *testing.B) {
	r, err := Open(b.Context(), Config{Order: pagerank.New(0)}, linklog.Mark{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r.KeyOf("https://www.example.com/a/path/of/middling/length/page-1234.html")
	}
}

// TestPagesThatComeAtOnceCountEach: if two pages link to another node's URL, and the second is ranked before the first
// is added, both are reported to that node.
func TestPagesThatComeAtOnceCountEach(t *testing.T) {
	r := open(t, Config{Order: indegree.New(), Others: true}, linklog.Mark{})
	other := RemoteURL{URL{Key: 99}, "https://example.com/99"}
	sum := float32(0)
	tell := func(share float32) {
		t.Helper()
		more, err := r.ReportDelta(&other, share)
		if err != nil {
			t.Fatal(err)
		}
		sum += more
	}
	fetched := func(page ids.Key) {
		t.Helper()
		v := Visit{Page: page, Others: []URL{other.URL}, Shares: []float32{1}, Out: 1}
		if _, err := r.Fetched(&v, nil); err != nil {
			t.Fatal(err)
		}
	}
	for page := range ids.Key(5) {
		tell(1)
		if page > 0 {
			fetched(page) // the one before
		}
	}
	fetched(5)
	if sum != 5 {
		t.Errorf("of 5 links %v were told", sum)
	}
	if tell(0); sum != 5 || len(r.expected) > 0 {
		t.Errorf("and %v then, with %d to come", sum, len(r.expected))
	}
}
