package hub

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central"
	"kumo/internal/cluster/strategy/central/centraltest"
	"kumo/internal/cluster/strategy/central/hosttable"
)

// TestPlan checks the transfers after nodes have reported their hosts three times.
func TestPlan(t *testing.T) {
	many := slices.Repeat([]int{100}, 49)
	for _, c := range []struct {
		name  string
		hosts []int
		want  []int // hosts of each node afterwards
	}{
		{"one has all", []int{40, 0, 0}, []int{14, 13, 13}},
		{"two have all", []int{20, 20, 0}, []int{14, 14, 12}},
		{"few", []int{5, 0}, []int{3, 2}},
		{"two", []int{2, 0}, []int{1, 1}},
		{"one alone", []int{1, 0}, []int{1, 0}},
		{"fewer than nodes", []int{1, 1, 1, 0}, []int{1, 1, 1, 0}},
		{"even", []int{20, 20, 20}, []int{20, 20, 20}},
		{"nearly even", []int{24, 20, 16}, []int{24, 20, 16}},
		{"chance, where there are few", []int{7, 4, 2}, []int{7, 4, 2}},
		{"one has too much", []int{100, 50, 50}, []int{68, 66, 66}},
		{"one has too little", []int{100, 100, 20}, []int{74, 74, 72}},
		{"one of many has nothing", append(slices.Clone(many), 0), nil},
		{"a million", []int{1e6, 0}, []int{1e6 - 500, 500}},
		{"nothing waits", []int{0, 0}, []int{0, 0}},
	} {
		l := newBalancer()
		nodes := make([]strategy.Node, len(c.hosts))
		for i := range nodes {
			nodes[i] = strategy.Node(fmt.Sprintf("n%02d~1", i))
		}
		report := func() {
			for i, n := range nodes {
				l.update(time.Unix(1e9, 0), strategy.Load{Node: n, Hosts: c.hosts[i]})
			}
		}
		report() // the first node reports before the others are known
		l.resetStreaks()
		for range minReports {
			if gives, _ := l.plan(); len(gives) > 0 {
				t.Errorf("%s: something moves before it was reported often enough", c.name)
			}
			report()
		}
		gives, _ := l.plan()
		got := slices.Clone(c.hosts)
		givers := map[strategy.Node]bool{}
		for _, g := range gives {
			got[slices.Index(nodes, g.from)] -= g.hosts
			got[slices.Index(nodes, g.to)] += g.hosts
			givers[g.from] = true
		}
		if c.want == nil {
			if len(givers) > maxDonors || got[len(got)-1] < 75 || slices.Min(got) < 75 {
				t.Errorf("%s: %d give, and they have %v", c.name, len(givers), got)
			}
		} else if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v have %v, not %v: %v", c.name, c.hosts, got, c.want, gives)
		}
	}
}

// loaded is a cluster whose nodes report every second how many hosts they have, each with ten pending URLs. Hosts that
// are handed over move at once.
type loaded struct {
	*centraltest.Cluster
	t     *testing.T
	all   []string
	with  map[string]strategy.Node // current node of hosts that have moved
	times int                      // number of steps in which hosts moved
	epoch uint64
}

func newLoaded(t *testing.T, hosts int, nodes ...strategy.Node) *loaded {
	c := &loaded{Cluster: newCluster(nodes...), t: t, with: map[string]strategy.Node{}, epoch: 1}
	for i := range hosts {
		c.all = append(c.all, fmt.Sprintf("h%d.example", i))
	}
	c.Queues = func(n strategy.Node) (queues []strategy.Queue) {
		for _, h := range c.all {
			if slices.Contains(c.Owners(h), n) {
				queues = append(queues, strategy.Queue{Host: h, Pending: 10})
			}
		}
		return queues
	}
	return c
}

// has returns the number of hosts of each node.
func (c *loaded) has() map[strategy.Node]int {
	n := map[strategy.Node]int{}
	for _, h := range c.all {
		for _, owner := range c.Owners(h) {
			n[owner]++
		}
	}
	return n
}

// works advances the time by seconds; nodes report in each.
func (c *loaded) works(seconds int) {
	for range seconds {
		c.report()
		c.Run(time.Second)
		c.carry()
	}
}

func (c *loaded) report() {
	has := c.has()
	for _, n := range c.Names() {
		c.Post(n, strategy.Load{Node: n, Hosts: has[n], Pending: int64(10 * has[n]), Rate: 1})
	}
}

// carry moves the hosts that were handed over, in one epoch for each sender.
func (c *loaded) carry() {
	moves := c.Moves
	c.Moves = nil
	for _, m := range moves {
		if c.Nodes[m.To] == nil {
			continue // the donor will learn that the receiver has left
		}
		var all []strategy.Move
		for _, h := range m.Hosts {
			if o := c.Owners(h); len(o) > 0 {
				c.t.Errorf("%s is %v's while it moves to %s", h, o, m.To)
			}
			if c.with[h] != "" {
				c.t.Errorf("%s moves from %s to %s", h, c.with[h], m.To)
			}
			c.with[h] = m.To
			all = append(all, strategy.Move{Host: h, From: m.From, To: m.To})
		}
		c.epoch++
		c.times++
		c.Members(c.epoch, c.epoch-1, all...)
		c.Post(m.To, strategy.Held{Hosts: m.Hosts})
		c.Members(c.epoch, c.epoch)
	}
}

func (c *loaded) join(n strategy.Node) {
	c.Add(n)
	c.epoch++
	c.Members(c.epoch, c.epoch)
}

// TestWhoComesLateGetsHosts: a node that joins when all hosts have owners gets its share, in few moves of many hosts,
// and no host moves back.
func TestWhoComesLateGetsHosts(t *testing.T) {
	c := newLoaded(t, 60, "a~1", "b~1")
	c.Run(5 * time.Second)
	c.RequestOwners("a~1", c.all...)
	c.works(5)
	if has := c.has(); has["a~1"] != 30 || has["b~1"] != 30 {
		t.Fatalf("at first they have %v", has)
	}
	c.join("c~1")
	c.works(30)
	if has := c.has(); has["c~1"] < 16 || len(c.with) > 22 || c.times > 4 {
		t.Errorf("half a minute later they have %v, and %d have moved, in %d moves", has, len(c.with), c.times)
	}
	err := central.ReadTable(hosttable.Key{}, nil, c.Read, func(h central.Host) bool {
		if moved := c.with[h.Name] != ""; h.Moved != moved || moved && (h.Owner != "c~1" || h.State != "reached") {
			t.Errorf("%+v, moved to %q", h, c.with[h.Name])
		}
		return true
	})
	if err != nil {
		t.Error(err)
	}
	gone := len(c.with)
	// the other nodes have no work left
	c.Queues, c.all = nil, slices.DeleteFunc(c.all, func(h string) bool { return c.with[h] == "" })
	c.works(120)
	if has := c.has(); len(c.with) != gone || has["c~1"] != gone {
		t.Errorf("they have %v: what has moved has moved again", has)
	}
}

// TestATakerThatDoesNotReachIt: hosts stay where they are if the receiver does not reach them.
func TestATakerThatDoesNotReachIt(t *testing.T) {
	c := newLoaded(t, 20, "a~1")
	c.Run(5 * time.Second)
	c.RequestOwners("a~1", c.all...)
	c.works(5)
	c.Reach = func(n strategy.Node, _ string) time.Duration {
		if n == "b~1" {
			return 0
		}
		return time.Millisecond
	}
	c.join("b~1")
	c.works(30)
	if has := c.has(); has["a~1"] != 20 || len(c.with) > 0 {
		t.Errorf("they have %v", has)
	}
	if n := c.Nodes["a~1"].Status().Unsettled; n > 0 {
		t.Errorf("%d hosts are offered yet", n)
	}
}

// TestAFarTakerIsNotBetter: a node much farther from a host than its owner does not get it, unless the owner is
// overloaded.
func TestAFarTakerIsNotBetter(t *testing.T) {
	c := newLoaded(t, 20, "a~1")
	c.Run(5 * time.Second)
	c.Reach = func(n strategy.Node, _ string) time.Duration {
		if n == "b~1" {
			return time.Second
		}
		return time.Millisecond
	}
	c.RequestOwners("a~1", c.all...)
	c.works(5)
	c.join("b~1")
	c.works(30)
	if has := c.has(); has["a~1"] != 20 {
		t.Errorf("they have %v", has)
	}
}

// TestTheControlUnitDiesWithOffers: hosts offered to a dead control unit are offered to the next one, and each has one
// owner in the end.
func TestTheControlUnitDiesWithOffers(t *testing.T) {
	for late := range 8 { // steps after the first offer
		c := newLoaded(t, 20, "b~1", "c~1")
		c.Run(5 * time.Second)
		c.RequestOwners("c~1", c.all...)
		c.works(5)
		c.all = slices.DeleteFunc(c.all, func(h string) bool { return slices.Contains(c.Owners(h), "b~1") })
		c.join("d~1")
		for range 40 {
			c.report()
			for end := c.Now.Add(time.Second); c.Now.Before(end) && c.Nodes["c~1"].Status().Unsettled == 0; {
				c.Run(20 * time.Millisecond)
			}
		}
		if c.Nodes["c~1"].Status().Unsettled == 0 {
			t.Fatal("nothing is offered")
		}
		c.Run(time.Duration(late) * 40 * time.Millisecond)
		delete(c.Nodes, "b~1")
		c.epoch++
		c.Members(c.epoch, c.epoch)
		c.works(30)
		for _, h := range c.all {
			if o := c.Owners(h); len(o) != 1 {
				t.Errorf("%d steps later: %s is %v's", late, h, o)
			}
		}
		if len(c.with) == 0 {
			t.Errorf("%d steps later: nothing has moved", late)
		}
	}
}

// TestTheFirstHostsWait: nodes that join some tenths of a second apart share the seeds.
func TestTheFirstHostsWait(t *testing.T) {
	c := newLoaded(t, 40, "a~1")
	c.RequestOwners("a~1", c.all...)
	c.Run(600 * time.Millisecond)
	c.join("b~1")
	c.Run(900 * time.Millisecond)
	c.join("c~1")
	c.Run(10 * time.Second)
	has := c.has()
	for _, n := range c.Names() {
		if has[n] < 12 || has[n] > 15 {
			t.Errorf("they have %v", has)
		}
	}
}

// TestNodesThatComeOneAfterTheOther: hosts that moved to a late node move on to a later one, and no further.
func TestNodesThatComeOneAfterTheOther(t *testing.T) {
	c := newLoaded(t, 60, "a~1")
	c.Run(12 * time.Second)
	c.RequestOwners("a~1", c.all...)
	c.works(5)
	for _, n := range []strategy.Node{"b~1", "c~1", "d~1"} {
		c.join(n)
		clear(c.with) // a host may move once to each new node
		c.works(40)
	}
	has := c.has()
	for _, n := range c.Names() {
		if has[n] < 12 || has[n] > 19 {
			t.Errorf("they have %v", has)
		}
	}
	if c.times > 8 {
		t.Errorf("hosts have moved %d times", c.times)
	}
	clear(c.with)
	c.works(120)
	if len(c.with) > 0 {
		t.Errorf("%d have moved though nobody came", len(c.with))
	}
}

// TestNodesThatAreKnownToCome: the first hosts wait for nodes that are known to be joining, but not forever.
func TestNodesThatAreKnownToCome(t *testing.T) {
	for _, dead := range []bool{false, true} {
		c := newLoaded(t, 40, "a~1")
		c.Post("a~1", strategy.Joining{Nodes: []strategy.Node{"a~1", "b~1", "c~1"}})
		c.RequestOwners("a~1", c.all...)
		c.Run(15 * time.Second)
		c.join("b~1")
		c.Run(10 * time.Second)
		if has := c.has(); len(has) > 0 {
			t.Fatalf("they have %v before all are there", has)
		}
		if dead {
			c.Run(6 * time.Second)
		} else {
			c.join("c~1")
		}
		c.Run(5 * time.Second)
		has := c.has()
		for _, n := range c.Names() {
			if mean := 40 / len(c.Names()); has[n] < mean-2 || has[n] > mean+3 {
				t.Errorf("c is dead: %v: they have %v", dead, has)
			}
		}
	}
}
