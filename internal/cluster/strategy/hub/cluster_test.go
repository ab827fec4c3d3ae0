package hub

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central"
	"kumo/internal/cluster/strategy/central/centraltest"
	"kumo/internal/cluster/strategy/central/hosttable"
	"kumo/internal/cluster/strategy/leader"
)

func newCluster(nodes ...strategy.Node) *centraltest.Cluster {
	return centraltest.New(func(n strategy.Node) *central.Strategy { return New(at(n)) }, nodes...)
}

func at(n strategy.Node) Config { return Config{Config: central.Config{Self: n}} }

// TestNearest: a node that reaches a host in time gets it, and probes hosts of the same domain first.
func TestNearest(t *testing.T) {
	c := newCluster("a~1", "b~1", "c~1", "d~1")
	c.Reach = func(n strategy.Node, host string) time.Duration {
		if n == "c~1" {
			return time.Millisecond
		}
		return 0
	}
	c.Settle()
	c.RequestOwners("a~1", "one.example.com")
	c.Settle()
	if got := c.Owners("one.example.com"); !slices.Equal(got, []strategy.Node{"c~1"}) {
		t.Fatalf("the host is %v's", got)
	}
	c.Probes = nil
	c.RequestOwners("b~1", "two.example.com")
	c.Settle()
	if got := c.Owners("two.example.com"); !slices.Equal(got, []strategy.Node{"c~1"}) || len(c.Probes) != 1 {
		t.Errorf("its neighbour is %v's after %d probes", got, len(c.Probes))
	}
	for _, n := range []strategy.Node{"a~1", "b~1"} {
		if o, s := c.Nodes[n].View().Owner("one.example.com"); n == "a~1" && (o != "c~1" || s != strategy.Owned) {
			t.Errorf("%s knows that it is %s's (%v)", n, o, s)
		}
	}
}

// TestNobodyReachesIt: the host is parked, probed again with longer timeouts, and finally left to its owner.
func TestNobodyReachesIt(t *testing.T) {
	c := newCluster("a~1", "b~1")
	c.Reach = func(strategy.Node, string) time.Duration { return 0 }
	c.Settle()
	c.RequestOwners("a~1", "far.example.com")
	c.Run(5 * time.Second)
	if _, s := c.Nodes["a~1"].View().Owner("far.example.com"); s != strategy.Parked {
		t.Fatalf("it is %v", s)
	}
	c.RequestOwners("b~1", "far.example.com")
	c.Run(2 * time.Second)
	if o, s := c.Nodes["b~1"].View().Owner("far.example.com"); o != "a~1" || s != strategy.Owned {
		t.Errorf("b sends its links to %q (%v)", o, s)
	}
	parked := 0
	err := central.ReadTable(hosttable.Key{}, nil, c.Read, func(h central.Host) bool {
		if parked++; h.State != "parked" || h.Owner != "a~1" || len(h.Failed) != 2 || h.Round != 1 ||
			h.RetryAt.Before(c.Now) {
			t.Errorf("%+v", h)
		}
		return true
	})
	if err != nil || parked != 1 {
		t.Errorf("%d hosts, %v", parked, err)
	}
	c.Run(2 * time.Minute)
	if _, s := c.Nodes["a~1"].View().Owner("far.example.com"); s != strategy.Owned {
		t.Errorf("in the end it is %v", s)
	}
	if first, last := c.Probes[0].Timeout, c.Probes[len(c.Probes)-1].Timeout; len(c.Probes) != 6 || last < 4*first {
		t.Errorf("%d probes, the last for %v, the first for %v", len(c.Probes), last, first)
	}
}

// TestAParkedHostIsReachedByAnother: its owner hands it over.
func TestAParkedHostIsReachedByAnother(t *testing.T) {
	c := newCluster("a~1", "b~1")
	up := false
	c.Reach = func(n strategy.Node, _ string) time.Duration {
		if up && n == "b~1" {
			return time.Millisecond
		}
		return 0
	}
	c.Settle()
	c.RequestOwners("a~1", "far.example.com")
	c.Run(5 * time.Second)
	up = true
	c.Run(30 * time.Second)
	if len(c.Moves) != 1 || c.Moves[0].To != "b~1" {
		t.Fatalf("moves: %v", c.Moves)
	}
	if got := c.Owners("far.example.com"); len(got) != 0 {
		t.Errorf("it is %v's before it has come", got)
	}
	c.Post("b~1", strategy.Held{Hosts: []string{"far.example.com"}})
	c.Run(time.Second)
	if got := c.Owners("far.example.com"); !slices.Equal(got, []strategy.Node{"b~1"}) {
		t.Errorf("it is %v's when it has come", got)
	}
}

// TestAnotherTakesItsPlace: a new control unit has the table of the previous one, even if the log was trimmed, and the
// previous one can decide nothing.
func TestAnotherTakesItsPlace(t *testing.T) {
	c := newCluster("a~1", "b~1", "c~1")
	c.Settle()
	if c.Leader() != "a~1" {
		t.Fatalf("the control unit is %q", c.Leader())
	}
	const hosts = 30_000
	for i := 0; i < hosts; i += 500 {
		var some []string
		for k := range 500 {
			some = append(some, fmt.Sprintf("h%d.example%d.com", i+k, i%7))
		}
		c.RequestOwners([]strategy.Node{"a~1", "b~1", "c~1"}[i/500%3], some...)
		c.Run(3 * time.Second)
	}
	c.Settle()
	if c.Base == 0 {
		t.Error("the log was never trimmed")
	}
	old := c.Nodes["a~1"]
	delete(c.Nodes, "a~1")
	c.Run(8 * time.Second)
	if c.Leader() != "b~1" {
		t.Fatalf("8 s after its end the control unit is %q", c.Leader())
	}
	if got := owned(t, c); got != hosts {
		t.Errorf("it has %d hosts, not %d", got, hosts)
	}
	c.Members(2, 2) // without the dead node
	late := newCluster("d~1")
	late.Log, late.Base = c.Log, c.Base
	late.Run(5 * time.Second)
	if got := owned(t, late); got != hosts {
		t.Errorf("who reads what is left of the log has %d hosts, not %d", got, hosts)
	}
	c.Nodes["a~1"] = old // the old leader returns and still considers itself the leader
	c.Post("a~1", strategy.OwnersNeeded{Hosts: []string{"late.example.com"}})
	c.Run(30 * time.Second)
	if old.Status().Leads {
		t.Error("two lead")
	}
}

// owned returns the number of hosts in the log's table.
func owned(t *testing.T, c *centraltest.Cluster) (n int) {
	t.Helper()
	err := central.ReadTable(hosttable.Key{}, nil, c.Read, func(central.Host) bool { n++; return true })
	if err != nil {
		t.Error(err)
	}
	return n
}

// BenchmarkClaims measures the decisions of a control unit, including the encoding of each claim's entry, but without
// the log.
func BenchmarkClaims(b *testing.B) {
	c := newCluster("a~1", "b~1")
	c.Settle()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		w := varint.Writer{byte(leader.Question), 1, 1}
		for range 1000 {
			n++
			w.Byte('c') // a claim: host, microseconds, and two empty fields
			w.String(fmt.Sprintf("www%d.example%d.com", n, n%1000))
			w.Uint(5000)
			w.String("")
			w.String("")
		}
		c.Post("a~1", strategy.Message{From: "b~1", Data: w})
		c.Step("a~1")
		c.Step("a~1")
		c.Step("b~1")
		c.Log, c.Base = nil, c.Base+len(c.Log)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "claims/s")
	if got := c.Nodes["b~1"].Status().Owned; got < n*9/10 {
		b.Errorf("%d of %d claims were granted", got, n)
	}
}
