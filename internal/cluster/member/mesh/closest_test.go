package mesh

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
	"kumo/internal/lab/testmain"
)

// TestRecordsLieAtTheClosest lets nodes join, leave, die with their disks and come back in thousands of random
// networks. When the network is quiet, the three nodes closest to a host have its whole history, and no other node has
// any of it. In every second network, the history moves in lists. KUMO_TEST_MESH_NETWORKS is the number of networks for
// each width of ids.
func TestRecordsLieAtTheClosest(t *testing.T) {
	networks := testmain.Rounds(15, 40)
	if n, err := strconv.Atoi(os.Getenv("KUMO_TEST_MESH_NETWORKS")); err == nil {
		networks = n
	}
	for _, bits := range []int{8, 12, 16} {
		t.Run(fmt.Sprintf("%d bits", bits), func(t *testing.T) {
			t.Parallel()
			names := namesOf("node", bits, func(i int) string { return fmt.Sprintf("n%d~1", i) })
			hosts := namesOf("backup", bits, func(i int) string { return fmt.Sprintf("h%d.test", i) })
			for seed := range uint64(networks) {
				c := newChurn(t, rand.New(rand.NewPCG(seed, uint64(bits))), bits, names, hosts, seed%2 == 1)
				c.run()
				c.judge()
				if t.Failed() {
					t.Fatalf("seed %d: %v", seed, c.did)
				}
			}
		})
	}
}

// namesOf returns names whose ids begin with given bits: one for each value of these.
func namesOf(kind string, bits int, name func(i int) string) []string {
	names := make([]string, 1<<bits)
	for i, left := 0, len(names); left > 0; i++ {
		s := name(i)
		id := xor.Of(kind, s)
		at := (int(id[0])<<8 | int(id[1])) >> (16 - bits)
		if names[at] == "" {
			names[at] = s
			left--
		}
	}
	return names
}

// A churn is a network in which nodes join and leave.
type churn struct {
	*world
	rng   *rand.Rand
	ids   func() int
	names []string
	hosts []string
	away  []strategy.Node // with their disks
	wiped int             // disks lost since the network was quiet
	did   []string
}

const (
	churnRest = 100 * time.Second
	mostWiped = 2 // of three backups
)

func newChurn(t *testing.T, rng *rand.Rand, bits int, names, hosts []string, lists bool) *churn {
	c := &churn{rng: rng, names: names, world: &world{t: t, now: time.Unix(1e9, 0), nodes: map[strategy.Node]*worldNode{},
		lists: lists}}
	// most ids are in a part of the space, so that some buckets are full and others empty
	near, shift := rng.IntN(1<<bits), rng.IntN(bits-4)
	c.ids = func() int {
		if shift == 0 || rng.IntN(4) == 0 {
			return rng.IntN(1 << bits)
		}
		return near ^ rng.IntN(1<<(bits-shift))
	}
	for range 1 + rng.IntN(10) {
		if name := c.fresh(); name != "" {
			c.nodes[name] = &worldNode{name: name, history: map[string]map[Hash]Link{}}
			c.live = append(c.live, name)
		}
	}
	for range 6 {
		host := hosts[c.ids()]
		c.hosts = append(c.hosts, host)
		for _, n := range c.backups(host) {
			c.nodes[n].history[host] = map[Hash]Link{}
			for _, l := range someLinks[:1+len(host)%len(someLinks)] {
				c.nodes[n].history[host][Hash{l}] = Link{Hash: Hash{l}, State: Dispatched, Item: []byte{l}}
			}
		}
	}
	for _, name := range c.live {
		c.start(name)
	}
	return c
}

// fresh returns a name that no node has had; "" if none is found soon.
func (c *churn) fresh() strategy.Node {
	for range 20 {
		if name := strategy.Node(c.names[c.ids()]); c.nodes[name] == nil {
			return name
		}
	}
	return ""
}

func (c *churn) backups(host string) []strategy.Node {
	all, _ := everybody{nodes: c.live}.Closest(xor.Of("backup", host), 3)
	return all
}

func (c *churn) run() {
	for range 3 + c.rng.IntN(6) {
		c.step()
		if c.rng.IntN(3) == 0 {
			c.pass(time.Duration(c.rng.Int64N(int64(40 * time.Second))))
		}
	}
	c.rest()
}

func (c *churn) rest() {
	c.pass(churnRest)
	c.wiped = 0
}

func (c *churn) step() {
	name := c.live[c.rng.IntN(len(c.live))]
	switch what := c.rng.IntN(8); {
	case what < 3:
		if name = c.fresh(); name != "" {
			c.note("comes", name)
			c.come(name)
		}
	case what < 5 && len(c.live) > 4 && len(c.away) < mostWiped-c.wiped:
		c.note("sleeps", name)
		c.away = append(c.away, name)
		c.world.gone(name, false)
	case what < 6 && len(c.away) > 0:
		name, c.away = c.away[0], c.away[1:]
		c.note("wakes", name)
		c.come(name)
	case what < 7 && len(c.live) > 4 && c.wiped+len(c.away) < mostWiped:
		c.note("dies", name)
		c.wiped++
		c.world.gone(name, false)
		c.nodes[name].history = nil
	case len(c.live) > 1:
		c.note("leaves", name)
		c.leaves(name)
	}
}

// leaves lets a node hand over everything to the others, which know that it leaves, and end.
func (c *churn) leaves(name strategy.Node) {
	others := slices.DeleteFunc(slices.Clone(c.live), func(n strategy.Node) bool { return n == name })
	for _, o := range others {
		n := c.nodes[o]
		n.knows = slices.Clone(others)
		c.tell(n, NodeGone{Node: name, Left: true, Near: true}, NeighborsChanged{})
	}
	n := c.nodes[name]
	c.tell(n, Leave{})
	for range 200 {
		if c.pass(time.Second); n.left {
			break
		}
	}
	if !n.left {
		c.t.Errorf("%s does not come to leave", name)
	}
	c.live, n.m, n.history = others, nil, nil
}

func (c *churn) note(what string, name strategy.Node) {
	c.did = append(c.did, fmt.Sprintf("%v %s %s", c.now.Sub(time.Unix(1e9, 0)), name, what))
}

func (c *churn) judge() {
	for len(c.away) > 0 {
		c.come(c.away[0])
		c.away = c.away[1:]
	}
	c.rest()
	for _, host := range c.hosts {
		backups := c.backups(host)
		for _, name := range c.live {
			got, want := len(c.nodes[name].history[host]), 0
			if slices.Contains(backups, name) {
				want = 1 + len(host)%len(someLinks)
			}
			if got != want {
				c.t.Errorf("%s has %d links of %s, and should have %d: of %d nodes %v are its backups", name, got, host, want,
					len(c.live), backups)
			}
		}
	}
}
