package overlay_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/overlay"
	"kumo/internal/cluster/overlay/overlaytest"
	"kumo/internal/lab/testmain"
)

func names(contacts []overlay.Contact) []string {
	all := make([]string, len(contacts))
	for i, c := range contacts {
		all[i] = c.Node
	}
	return all
}

// lookUps lets nodes find the closest nodes to ids, all at the same time, and waits for the results.
func lookUps(t *testing.T, w *overlaytest.World, nodes []*overlaytest.Node, ids []xor.ID, want int) {
	t.Helper()
	for i, n := range nodes {
		n.Handle(overlay.Find{ID: ids[i], Tag: uint64(i), Want: want})
	}
	for range 120 {
		w.Run(time.Second)
		if !slices.ContainsFunc(nodes, func(n *overlaytest.Node) bool { return n.LookUps() > 0 }) {
			break
		}
	}
	for i, n := range nodes {
		if t.Failed() {
			break // one error is enough
		}
		f, done := n.Found[uint64(i)]
		if !done {
			t.Fatalf("%s: a look-up did not end", n.Name)
		}
		delete(n.Found, uint64(i))
		if got, right := names(f.Closest), w.Closest(ids[i], want); !slices.Equal(got, right) {
			t.Errorf("%s looked %v up: %q (exact %v), right is %q", n.Name, ids[i], got, f.Exact, right)
		}
		if c, exact := n.Closest(ids[i], want, nil); exact && !slices.Equal(names(c), w.Closest(ids[i], want)) {
			t.Errorf("%s says that it knows what is closest to %v: %q, right is %q", n.Name, ids[i], names(c),
				w.Closest(ids[i], want))
		}
	}
	for _, n := range w.Live() {
		if len(n.Table) != n.Len() {
			t.Errorf("%s has %d contacts, and has told of %d", n.Name, n.Len(), len(n.Table))
		}
	}
}

// joinAll starts nodes with pauses in between. Each node joins through an existing one.
func joinAll(w *overlaytest.World, n int, pause time.Duration) {
	for _, name := range w.Names(n) {
		if len(w.Live()) == 0 {
			w.Start(name)
		} else {
			w.Start(name, w.RandomNode().Name)
		}
		if pause > 0 {
			w.Run(time.Duration(w.Rand().Int64N(int64(pause))))
		}
	}
}

// TestEveryNetworkOfEightIDs enumerates all networks in a space of three bits, and in each all lookups of all nodes,
// for one and for two nodes, first after the nodes have joined and then after half of them have crashed.
func TestEveryNetworkOfEightIDs(t *testing.T) {
	name := map[int]string{}
	w := overlaytest.New(0)
	w.Config.Width = 3
	for _, n := range w.Names(8) {
		name[int(w.IDOf(n)[0]>>5)] = n
	}
	for members := 1; members < 256; members++ {
		for k := 1; k <= 2; k++ {
			w := overlaytest.New(uint64(members))
			w.Config = overlay.Config{Width: 3, K: k, Neighbors: k, Refresh: time.Minute, Check: 20 * time.Second}
			var last string
			for _, i := range w.Rand().Perm(8) {
				switch {
				case members&(1<<i) == 0:
					continue
				case last == "":
					w.Start(name[i])
				default:
					w.Start(name[i], last)
				}
				last = name[i]
				w.Run(time.Second)
			}
			for round := range 2 {
				w.Run(3 * time.Minute)
				for i := range 8 {
					ids := make([]xor.ID, len(w.Live()))
					for j := range ids {
						ids[j][0] = byte(i << 5)
					}
					lookUps(t, w, slices.Clone(w.Live()), ids, k)
				}
				if t.Failed() {
					t.Fatalf("members %08b, k %d, round %d", members, k, round)
				}
				for i, n := range slices.Clone(w.Live()) {
					if i%2 == members%2 {
						w.Crash(n)
					}
				}
			}
		}
	}
}

// TestEveryNodeFindsTheClosest uses random networks: nodes join, some crash or leave, others join. After a quiet time
// every node finds the closest nodes to any id.
func TestEveryNodeFindsTheClosest(t *testing.T) {
	rounds := testmain.Rounds(10, 30)
	for _, space := range []struct{ width, nodes, networks int }{
		{8, 32, rounds}, {12, 32, rounds}, {16, 32, rounds}, {16, 200, 2}, {256, 32, rounds}, {256, 300, 1},
	} {
		t.Run(fmt.Sprintf("%d bits, %d nodes", space.width, space.nodes), func(t *testing.T) {
			networks := space.networks
			if n, err := strconv.Atoi(os.Getenv("KUMO_TEST_OVERLAY_NETWORKS")); err == nil {
				networks = n
			} else if testing.Short() {
				networks = max(networks/10, 1)
			}
			first := rand.Uint64()
			for seed := first; seed < first+uint64(networks); seed++ {
				w := overlaytest.New(seed)
				w.Config = overlay.Config{Width: space.width}
				if seed%2 == 0 { // so few contacts that most nodes know only a part of the others
					w.Config.K, w.Config.Neighbors = 3, 4
				}
				w.Config.Refresh, w.Config.Check = 2*time.Minute, 30*time.Second
				nodes := 2 + w.Rand().IntN(space.nodes-1)
				joinAll(w, max(nodes/2, 1), 500*time.Millisecond)
				w.Run(20 * time.Second)
				for _, n := range slices.Clone(w.Live())[1:] {
					switch w.Rand().IntN(6) {
					case 0:
						w.Crash(n)
					case 1:
						w.Leave(n)
					}
				}
				joinAll(w, nodes-max(nodes/2, 1), 500*time.Millisecond)
				w.Run(3 * time.Minute)
				live := slices.Clone(w.Live())
				ids := make([]xor.ID, len(live))
				for round := range 2 {
					for i := range ids {
						ids[i] = w.IDOf(strconv.FormatUint(w.Rand().Uint64(), 36))
					}
					lookUps(t, w, live, ids, 1+2*round)
				}
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}

// TestEveryIDOfASmallSpace lets all nodes of a network look up all ids of the space.
func TestEveryIDOfASmallSpace(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	w := overlaytest.New(seed)
	w.Config = overlay.Config{Width: 8, K: 3, Neighbors: 4, Refresh: 2 * time.Minute, Check: 30 * time.Second}
	joinAll(w, 24, time.Second)
	w.Run(2 * time.Minute)
	live := slices.Clone(w.Live())
	ids := make([]xor.ID, len(live))
	for i := range 256 {
		for j := range ids {
			ids[j][0] = byte(i)
		}
		lookUps(t, w, live, ids, 1+i%3)
	}
}

// percent returns a part in percent.
func percent(part, whole int) float64 { return 100 * float64(part) / float64(max(whole, 1)) }

// TestChurn has nodes stay for 20 minutes on average. As many join as leave, half of those without a farewell, and one
// message in twenty is lost. Nodes look up ids continuously, and answer for ids near their own.
func TestChurn(t *testing.T) {
	testmain.Slow(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	nodes, stay, quiet, minutes := scale(300), 20*time.Minute, 3*time.Minute, 4
	if nodes > 2000 {
		quiet, minutes = 45*time.Second, 1
	}
	w := overlaytest.New(seed)
	w.Loss = 0.05
	if n, err := strconv.Atoi(os.Getenv("KUMO_TEST_OVERLAY_TRIES")); err == nil {
		w.Config.Tries = n
	}
	began := time.Now()
	joinAll(w, nodes, min(200*time.Millisecond, 2*time.Minute/time.Duration(nodes)))
	w.Run(quiet)
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	t.Logf("%d nodes, %.0f contacts each, %.1f KB of heap a node with all that is on its way; %d steps in %v", nodes,
		contacts(w), float64(m.HeapAlloc)/1024/float64(nodes), w.Steps, time.Since(began))
	w.Reset()
	w.Run(time.Minute)
	t.Logf("none come or go: %.2f messages/s a node, %.0f bytes/s, %.2f steps/s; %.2f contacts an hour are taken "+
		"for dead and live", rate(w, w.Messages, time.Minute), rate(w, w.Bytes, time.Minute), rate(w, w.Steps, time.Minute),
		3600*rate(w, w.FalseDeaths, time.Minute))

	var next func()
	next = func() {
		if n := w.RandomNode(); w.Rand().IntN(2) == 0 {
			w.Leave(n)
		} else {
			w.Crash(n)
		}
		w.Start(w.Names(1)[0], w.RandomNode().Name, w.RandomNode().Name, w.RandomNode().Name)
		w.After(time.Duration(w.Rand().ExpFloat64()*float64(stay)/float64(nodes)), next)
	}
	next()
	w.Run(quiet)
	w.Reset()
	var near, found tally
	var took, longest time.Duration
	measured := time.Duration(minutes) * time.Minute
	for range minutes * 60 {
		for range max(nodes/300, 1) {
			id := w.IDOf(strconv.FormatUint(w.Rand().Uint64(), 36))
			closest := w.ByID(overlay.IDOf(w.Closest(id, 1)[0]))
			c, exact := closest.Closest(id, 3, nil)
			near.count(names(c), exact, w.Closest(id, 3))
			if w.Rand().IntN(2) > 0 {
				continue
			}
			n, asked := w.RandomNode(), w.Now()
			n.OnFound = func(f overlay.Found) {
				if n.Alive {
					found.count(names(f.Closest), f.Exact, w.Closest(id, 3))
					took += w.Now() - asked
					longest = max(longest, w.Now()-asked)
				}
			}
			n.Handle(overlay.Find{ID: id, Want: 3})
		}
		w.Run(time.Second)
	}
	t.Logf("nodes come and go: %.2f messages/s a node, %.0f bytes/s, %.2f steps/s, %.0f contacts, largest message "+
		"%d bytes",
		rate(w, w.Messages, measured), rate(w, w.Bytes, measured), rate(w, w.Steps, measured), contacts(w), w.Largest)
	t.Logf("tables of the closest nodes: %v", &near)
	t.Logf("look-ups of any node: %v; %v in the mean, %v at most", &found, took/time.Duration(max(found.all, 1)), longest)
	for what, c := range map[string]*tally{"tables": &near, "look-ups": &found} {
		// if 98 of 100 lookups are right, one seed in a thousand has fewer than 93 % right among 120
		if percent(c.right, c.all) < 93 || percent(c.sure, c.all) < 80 || percent(c.sureRight, c.sure) < 93 {
			t.Errorf("%s: %v", what, c)
		}
	}
	if m := rate(w, w.Messages, measured); m > 12 {
		t.Errorf("%.1f messages/s a node", m)
	}
}

// A tally counts answers.
type tally struct{ all, right, sure, sureRight int }

func (c *tally) count(got []string, exact bool, want []string) {
	right := slices.Equal(got, want)
	c.all++
	if right {
		c.right++
	}
	if exact {
		c.sure++
	}
	if exact && right {
		c.sureRight++
	}
}

func (c *tally) String() string {
	return fmt.Sprintf("%d asked, %.2f %% right, %.2f %% said to be exact, of which %.2f %% right", c.all,
		percent(c.right, c.all), percent(c.sure, c.all), percent(c.sureRight, c.sure))
}

// rate returns how often a node does something per second.
func rate(w *overlaytest.World, n int, in time.Duration) float64 {
	return float64(n) / in.Seconds() / float64(len(w.Live()))
}

// contacts returns the mean number of contacts per node.
func contacts(w *overlaytest.World) float64 {
	n := 0
	for _, node := range w.Live() {
		n += node.Len()
	}
	return float64(n) / float64(len(w.Live()))
}

// scale returns the number of nodes in tests whose figures depend on it: KUMO_TEST_OVERLAY_NODES, or the given number.
func scale(otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv("KUMO_TEST_OVERLAY_NODES")); err == nil {
		return n
	}
	return otherwise
}

// TestSize: nodes know the size of a small network exactly, and that of a large one approximately.
func TestSize(t *testing.T) {
	for _, n := range []int{1, 5, 12, 200} {
		w := overlaytest.New(uint64(n))
		joinAll(w, n, time.Second)
		w.Run(2 * time.Minute)
		sum := 0.0
		for _, node := range w.Live() {
			size := node.Overlay.Size()
			if n <= 12 && size != n {
				t.Errorf("of %d nodes one says %d", n, size)
			}
			sum += float64(size)
		}
		if mean := sum / float64(n); mean < float64(n)*0.7 || mean > float64(n)*1.5 {
			t.Errorf("of %d nodes all say %.0f in the mean", n, mean)
		}
	}
}
