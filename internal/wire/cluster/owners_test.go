package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kumo/internal/inspect"
	"kumo/internal/member"
	"kumo/internal/node"
	"kumo/internal/strategy"
	"kumo/internal/strategy/hub"
	"kumo/internal/synthweb"
	"kumo/internal/wire"
)

// What nodes write into the table of members about how they place hosts can be read from it.
func TestLayoutIsRead(t *testing.T) {
	for _, name := range Strategies() {
		for _, preset := range Presets() {
			n := &Node{job: &wire.Job{Name: "x", Dir: "x"}, opts: NodeOptions{Strategy: name, Preset: preset, Slots: 77}}
			if err := n.check(); err != nil {
				t.Fatal(err)
			}
			p, err := parseLayout(n.layout())
			switch {
			case err != nil || (p.hub == nil) != (n.placing.hub == nil):
				t.Errorf("%s: %+v, %v", n.layout(), p, err)
			case p.hub == nil && p.shard != n.placing.shard:
				t.Errorf("%s: %+v, want %+v", n.layout(), p.shard, n.placing.shard)
			case p.hub != nil && *p.hub != *n.placing.hub:
				t.Errorf("%s: %+v, want %+v", n.layout(), *p.hub, *n.placing.hub)
			}
		}
	}
	for _, bad := range []string{"", "protocol 9, hub, preset lan", "protocol 2, luck, preset lan",
		"protocol 2, shard luck of 3 slots, preset lan", "protocol 2, hub/luck, preset lan"} {
		if p, err := parseLayout(bad); err == nil {
			t.Errorf("%q: %+v", bad, p)
		}
	}
}

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

// A list that is cut has the first hosts of all, and counts the others.
func TestOwnerListIsCut(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	table := &member.Table{Members: []strategy.Member{{Node: "a~1"}, {Node: "b~1"}}}
	nodes := []strategy.Node{"a~1", "b~1", "a~0"}
	const limit, n = 50, 5000
	l := &ownerList{limit: limit, by: map[strategy.Node]*inspect.OwnedBy{}, table: table}
	var want []string
	for _, i := range rng.Perm(n) {
		h := hub.Host{Name: fmt.Sprintf("h%04d", i), Owner: nodes[i%3], State: "reached"}
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

// Of two who say that they are the control unit it is the one whom others ask; of none, nobody.
func TestControlUnit(t *testing.T) {
	say := func(name, control string, leads bool) NodeStatus {
		return NodeStatus{Node: strategy.Node(name + "~1"), Member: true,
			Report: node.Report{Facts: &node.Facts{Control: control, Leads: leads}}}
	}
	dead := say("d", "d", true)
	dead.Dead = true
	old := NodeStatus{Node: "e~1", Member: true} // of a strategy without control unit, or of another version
	for _, c := range []struct {
		nodes []NodeStatus
		want  string
	}{
		{nil, ""}, {[]NodeStatus{old}, ""}, {[]NodeStatus{say("a", "d", false), dead, old}, ""},
		{[]NodeStatus{say("a", "a", true), say("b", "a", false)}, "a"},
		{[]NodeStatus{say("a", "a", true), say("b", "b", true), say("c", "b", false)}, "b"},
	} {
		if got := controlUnit(c.nodes); got != c.want {
			t.Errorf("of %+v: %q, want %q", c.nodes, got, c.want)
		}
	}
}

// The table of hosts can be asked while nodes crawl, and after: here from a control unit's log, there from a hash.
func TestOwnersOfACluster(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"hub", "shard"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			web := serve(t, synthweb.Clean(5, 10, 100))
			c := newCluster(t, web)
			c.strategy = how
			if _, err := c.control.Owners(t.Context(), HostQuery{}); err == nil {
				t.Error("a crawl that nobody has begun has owners")
			}
			a, b := c.start("a"), c.start("b")
			c.members(2)
			c.begin()
			if how == "hub" {
				c.eventually("one of them is the control unit", func() bool {
					all, err := c.control.Look(t.Context(), "test")
					return err == nil && (all.Control == "a" || all.Control == "b") && all.Nodes[0].Facts != nil
				})
			}
			c.eventually("most is fetched", func() bool { return web.Requests() > 80 })
			host := func(i int) string { return fmt.Sprintf("h%04d.synth.test:%d", i, web.Port()) }
			if how == "shard" {
				if _, err := c.control.Owners(t.Context(), HostQuery{}); err == nil {
					t.Error("a hash has a list of hosts")
				}
				all, err := c.control.Owners(t.Context(), HostQuery{Names: []string{host(0), host(1)}})
				if err != nil || len(all.Hosts) != 2 || all.Hosts[1].State != inspect.HostHashed {
					t.Fatalf("%+v, %v", all, err)
				}
				for _, o := range all.Hosts {
					n := a
					if o.Owner == "b" {
						n = b
					}
					if l := n.life.Load(); l == nil || !l.router.Ours(o.Host) {
						t.Errorf("%s is said to be %s's", o.Host, o.Owner)
					}
				}
			} else {
				c.eventually("all hosts have owners", func() bool {
					all, err := c.control.Owners(t.Context(), HostQuery{})
					return err == nil && len(all.Hosts) == 10 && all.More == 0
				})
				all, err := c.control.Owners(t.Context(), HostQuery{Names: []string{"synth.test", "nosuch.example"}, Limit: 3})
				if err != nil || len(all.Hosts) != 3 || all.More != 7 || !slices.Equal(all.Missing, []string{"nosuch.example"}) ||
					all.By[0].Hosts == 0 {
					t.Errorf("%+v, %v", all, err)
				}
				if all, err = c.control.Owners(t.Context(), HostQuery{Parked: true}); err != nil || len(all.Hosts) != 0 ||
					len(all.By) == 0 {
					t.Errorf("parked: %+v, %v", all, err)
				}
			}
			o, err := c.control.Owner(t.Context(), host(3), "", time.Minute)
			if err != nil || o == nil || o.Here || time.Since(o.Since) > time.Hour && how == "hub" {
				t.Fatalf("%+v, %v", o, err)
			}
			if again, err := c.control.Owner(t.Context(), host(3), o.Node, time.Minute); err != nil || !again.Here {
				t.Errorf("asked by its owner: %+v, %v", again, err)
			}
			if o, err := c.control.Owner(t.Context(), "nosuch.example", "", time.Minute); err != nil ||
				(o == nil) != (how == "hub") {
				t.Errorf("of a host that nobody knows: %+v, %v", o, err)
			}
			c.ends(nil, a, b)
		})
	}
}
