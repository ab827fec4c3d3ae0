package admin

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"kumo/internal/app/inspect"
	"kumo/internal/app/node"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central"
)

func TestMatcher(t *testing.T) {
	m := newMatcher([]string{"example.com", "a.example:81", "b.example:81", "[::1]:8080", "c.example"})
	for host, want := range map[string]bool{"example.com": true, "www.example.com": true, "a.b.example.com:8443": true,
		"badexample.com": false, "com": false,
		"a.example:81": true, "a.example": false, "www.a.example:81": false, "[::1]:8080": true, "[::1]": false} {
		if m.match(host) != want {
			t.Errorf("%s: %v", host, !want)
		}
	}
	if got := m.missing(); !slices.Equal(got, []string{"b.example:81", "c.example"}) {
		t.Errorf("missing: %q", got)
	}
	if !newMatcher(nil).match("x") {
		t.Error("without names nothing matches")
	}
}

// A truncated list has the first hosts of all, and counts the others.
func TestOwnerListIsCut(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	table := &quorum.Table{Members: []strategy.Member{{Node: "a~1"}, {Node: "b~1"}}}
	nodes := []strategy.Node{"a~1", "b~1", "a~0"}
	const limit, n = 50, 5000
	l := &ownerList{limit: limit, by: map[strategy.Node]*inspect.OwnedBy{}, table: table, placement: &Placement{}}
	var want []string
	for _, i := range rng.Perm(n) {
		h := central.Host{Name: fmt.Sprintf("h%04d", i), Owner: nodes[i%3], State: "reached"}
		if i%10 == 0 {
			h.State = "parked"
		}
		l.add(h, true)
		want = append(want, string(h.Owner)+" "+h.Name)
		if len(l.owners.Hosts) > 2*limit+1000 {
			t.Fatalf("%d hosts are kept", len(l.owners.Hosts))
		}
	}
	all := l.all()
	slices.Sort(want)
	for i, o := range all.Hosts {
		if got := o.Node + " " + o.Host; got != want[i] {
			t.Fatalf("seed %d: host %d is %s, want %s", seed, i, got, want[i])
		}
	}
	if len(all.Hosts) != limit || all.More != n-limit {
		t.Errorf("seed %d: %d hosts, %d more", seed, len(all.Hosts), all.More)
	}
	if len(all.By) != 3 || all.By[0] != (inspect.OwnedBy{Owner: "a", Node: "a~0", Hosts: 1666, Parked: 166, Gone: true}) ||
		all.By[1].Hosts+all.By[2].Hosts != n-1666 {
		t.Errorf("seed %d: %+v", seed, all.By)
	}
}

// If two nodes claim to be the control unit, the one to which other nodes send requests counts.
func TestControlUnit(t *testing.T) {
	say := func(name, control string, leads bool) node.Status {
		return node.Status{Node: strategy.Node(name + "~1"), Member: true,
			Report: node.Report{Facts: &node.Facts{Control: control, Leads: leads}}}
	}
	dead := say("d", "d", true)
	dead.Dead = true
	old := node.Status{Node: "e~1", Member: true} // of a strategy without a control unit, or of another version
	for _, c := range []struct {
		nodes []node.Status
		want  string
	}{
		{nil, ""}, {[]node.Status{old}, ""}, {[]node.Status{say("a", "d", false), dead, old}, ""},
		{[]node.Status{say("a", "a", true), say("b", "a", false)}, "a"},
		{[]node.Status{say("a", "a", true), say("b", "b", true), say("c", "b", false)}, "b"},
	} {
		if got := node.Leader(c.nodes); got != c.want {
			t.Errorf("of %+v: %q, want %q", c.nodes, got, c.want)
		}
	}
}
