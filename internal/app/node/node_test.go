package node_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"kumo/internal/app/node"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/bus/inproc"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/member/quorum"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ends waits for nodes to end with the expected error.
func ends(t *testing.T, want error, nodes ...*testNode) {
	t.Helper()
	late := time.After(time.Hour)
	for _, x := range nodes {
		select {
		case err := <-x.ended:
			if !errors.Is(err, want) {
				t.Errorf("%s ended with %v, want %v", x.id.Name, err, want)
			}
		case <-late:
			t.Fatalf("%s goes on and on", x.id.Name)
		}
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 36000 {
		if is() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("never: ", what)
}

// together starts nodes and waits until all are members.
func together(t *testing.T, w *world, names ...string) (nodes []*testNode) {
	t.Helper()
	for _, name := range names {
		nodes = append(nodes, w.start(name, "1"))
	}
	w.settled(len(names))
	return nodes
}

// settled waits until the table has the given number of members, and is settled.
func (w *world) settled(members int) {
	w.t.Helper()
	eventually(w.t, "the table is settled", func() bool {
		e, err := w.control.Registry.Get(w.t.Context(), quorum.TableKey)
		must(w.t, err)
		if e.Value == nil {
			return false
		}
		table, err := quorum.ParseTable(e.Value)
		must(w.t, err)
		return len(table.Members) == members && table.Finalized == table.Epoch
	})
}

func TestThreeNodesCrawlAWeb(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 40, 20)
		nodes := together(t, w, "a", "b", "c")
		a, b, c := nodes[0], nodes[1], nodes[2]
		must(t, w.control.Start(t.Context(), map[string][]string{"depth": {"5"}}, w.seeds(3)))
		ends(t, nil, a, b, c)
		w.check(1)
		by := map[string]int{}
		for _, all := range w.fetched {
			by[all[0].by.Name()]++
		}
		for _, x := range []*testNode{a, b, c} {
			if by[x.id.Name] < 100 || !x.over {
				t.Errorf("%s fetched %d of 800 pages; finished: %v", x.id.Name, by[x.id.Name], x.over)
			}
		}
		if r, _, err := w.control.Record(t.Context()); err != nil || r.State != desired.Done ||
			!slices.Equal(r.Settings["depth"], []string{"5"}) {
			t.Errorf("the record says %+v (%v)", r, err)
		}
	})
}

func TestABusThatLosesAndDelays(t *testing.T) { overABadBus(t, 0.1, func(*world) {}) }

// overABadBus crawls over a bus that loses a share of the messages; the third of three nodes joins late.
func overABadBus(t *testing.T, drop float64, prepare func(*world)) {
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 20, 10)
			prepare(w)
			w.hub = inproc.New(seed)
			b, err := w.hub.Join("control")
			must(t, err)
			w.control = node.Control{Registry: b}
			w.hub.SetFaults(inproc.Faults{Drop: drop, Duplicate: 0.1, Delayed: 0.3, Delay: time.Second, Uncertain: 0.1})
			nodes := []*testNode{w.start("a", "1"), w.start("b", "1")}
			must(t, w.control.Start(t.Context(), nil, w.seeds(2)))
			eventually(t, "half of it is fetched", func() bool { return w.count() > 100 })
			nodes = append(nodes, w.start("c", "1"))
			ends(t, nil, nodes...)
			w.check(1)
		})
	}
}

func TestANodeDiesAndComesAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 100, 80)
		nodes := together(t, w, "a", "b", "c")
		a, b, c := nodes[0], nodes[1], nodes[2]
		must(t, w.control.Start(t.Context(), nil, w.seeds(3)))
		eventually(t, "a third of it is fetched", func() bool { return w.count() > 600 })
		b.crash()
		anew := w.start("b", "2")
		ends(t, nil, a, c, anew)
		w.check(1)
		by := map[string]int{}
		for _, all := range w.fetched {
			by[string(all[0].by)]++
		}
		if by["b~2"] == 0 {
			t.Errorf("the one that came anew has fetched nothing: %v", by)
		}
	})
}

// A node that cannot recover a failed node's state, for example on a full disk, tries again and does not end.
func TestAnEstateIsFoldedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 40, 20)
		w.spoilt = 3
		nodes := together(t, w, "a", "b", "c")
		a, b, c := nodes[0], nodes[1], nodes[2]
		must(t, w.control.Start(t.Context(), nil, w.seeds(3)))
		eventually(t, "some of it is fetched", func() bool { return w.count() > 200 })
		b.crash()
		ends(t, nil, a, c)
		w.check(1)
		if w.spoilt > -1 {
			t.Error("nothing was spoilt")
		}
	})
}

func TestANodeRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 40, 20)
		nodes := together(t, w, "a", "b")
		a, b := nodes[0], nodes[1]
		must(t, w.control.Start(t.Context(), nil, w.seeds(3)))
		eventually(t, "some of it is fetched", func() bool { return w.count() > 200 })
		b.crash()
		b = w.start("b", "1")
		ends(t, nil, a, b)
		w.check(1)
	})
}

func TestANodeLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 40, 20)
		nodes := together(t, w, "a", "b", "c")
		a, b, c := nodes[0], nodes[1], nodes[2]
		must(t, w.control.Start(t.Context(), nil, w.seeds(3)))
		eventually(t, "some of it is fetched", func() bool { return w.count() > 200 })
		b.n.Leave()
		ends(t, node.ErrLeft, b)
		if n := len(b.waiting) + len(b.outbox); n > 0 {
			t.Errorf("the one that left still has %d URLs and links", n)
		}
		ends(t, nil, a, c)
		w.check(1)
	})
}

// A disconnected node stops. When it reconnects, it learns that other nodes have taken over its hosts.
func TestANodeIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 40, 200) // long enough for the lease to end before the crawl is done
		nodes := together(t, w, "a", "b", "c")
		a, b, c := nodes[0], nodes[1], nodes[2]
		must(t, w.control.Start(t.Context(), nil, w.seeds(3)))
		eventually(t, "some of it is fetched", func() bool { return w.count() > 300 })
		w.hub.Partition("b~1", true)
		time.Sleep(14 * time.Second) // its lease
		if b.router.May("h1.test") || b.router.May("h2.test") || b.router.May("h3.test") {
			t.Error("a node that is cut off goes on")
		}
		eventually(t, "what is under way is broken off", func() bool { return b.breaks.Load() > 0 })
		eventually(t, "the others know that they are two", func() bool {
			return a.nodes.Load() == 2 && c.nodes.Load() == 2 &&
				b.nodes.Load() == 3
		})
		eventually(t, "its estate is folded", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return b.sealed })
		w.hub.Partition("b~1", false)
		ends(t, node.ErrLost, b)
		ends(t, nil, a, c)
		w.check(1)
	})
}

func TestPauseAndStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 40, 20)
		nodes := together(t, w, "a", "b")
		a, b := nodes[0], nodes[1]
		if err := w.control.Set(t.Context(), desired.Paused); !errors.Is(err, desired.ErrState) {
			t.Errorf("a crawl that waits was paused: %v", err)
		}
		if err := w.control.Start(t.Context(), nil, nil); !errors.Is(err, desired.ErrState) {
			t.Errorf("a crawl was started without seeds: %v", err)
		}
		must(t, w.control.Start(t.Context(), nil, w.seeds(3)))
		eventually(t, "some of it is fetched", func() bool { return w.count() > 200 })
		must(t, w.control.Set(t.Context(), desired.Paused))
		time.Sleep(time.Second)
		n := w.count()
		time.Sleep(time.Minute)
		if w.count() != n {
			t.Errorf("%d pages were fetched by a crawl that is paused", w.count()-n)
		}
		must(t, w.control.Set(t.Context(), desired.Running))
		eventually(t, "more of it is fetched", func() bool { return w.count() > n })
		must(t, w.control.Set(t.Context(), desired.Stopping))
		ends(t, node.ErrStopped, a, b)
		a, b = w.start("a", "1"), w.start("b", "1")
		time.Sleep(time.Minute)
		must(t, w.control.Start(t.Context(), nil, nil))
		ends(t, nil, a, b)
		w.check(1)
	})
}

func TestSeedsThatComeLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 40, 20)
		nodes := together(t, w, "a", "b")
		a, b := nodes[0], nodes[1]
		must(t, w.control.Start(t.Context(), nil, w.seeds(1)))
		eventually(t, "some of it is fetched", func() bool { return w.count() > 100 })
		must(t, w.control.Add(t.Context(), w.seeds(30)))
		a.n.NewScopeSeed("http://elsewhere.test/")
		ends(t, nil, a, b)
		w.check(1)
		if !w.tally["b http://elsewhere.test/"] || w.tally["a http://elsewhere.test/"] {
			t.Errorf("of a's new root b should be told: %v", w.tally)
		}
		if err := w.control.Add(t.Context(), w.seeds(1)); !errors.Is(err, desired.ErrState) {
			t.Errorf("seeds were added to a crawl that is done: %v", err)
		}
	})
}

func TestANodeOfAnotherVersionIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 10, 10)
		a := w.start("a", "1")
		b, err := w.hub.Join("stranger~1")
		must(t, err)
		must(t, b.Send("a~1", nil))
		for _, msg := range []string{"m\x04test", "m\x05other", "m\x90", "l\x04test", "t\x04test\xff", "q\x04test{",
			"z\x04test"} {
			must(t, b.Send("a~1", append([]byte{node.Protocol}, msg...)))
			must(t, b.Send("a~1", append([]byte{node.Protocol - 1}, msg...)))
		}
		must(t, w.control.Start(t.Context(), nil, w.seeds(1)))
		ends(t, nil, a)
		w.check(1)
		if b.Close() != nil || !errors.Is(b.Send("a~1", nil), bus.ErrClosed) {
			t.Error("the stranger is still there")
		}
	})
}
