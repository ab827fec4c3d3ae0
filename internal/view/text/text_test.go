package text

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"kumo/internal/app/inspect"
)

var at0 = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

// A cluster with a controller shows the nodes' hosts, one without shows slots.
func TestHubForPeople(t *testing.T) {
	c := &inspect.Cluster{Crawl: "news", State: "running", Since: at0, Time: at0, Epoch: 3, Settled: true, Control: "b",
		Nodes: []inspect.Node{
			{Node: "a~1", Name: "a", Is: inspect.NodeMember, Slot: -1, Age: 1, Clock: at0,
				Facts: &inspect.Facts{TimeoutMS: 2125.4, Owned: 7, Parked: 2, Unsettled: 3}},
			{Node: "b~1", Name: "b", Is: inspect.NodeMember, Slot: -1, Age: 1, Clock: at0,
				Facts: &inspect.Facts{Leads: true, TimeoutMS: 150, Owned: 5}},
			{Node: "c~1", Name: "c", Is: inspect.NodeDead, Slot: -1, Age: 1, Clock: at0,
				Facts: &inspect.Facts{TimeoutMS: 150, Owned: 90}},
			{Node: "d~1", Name: "d", Is: inspect.NodeWaiting, Slot: -1, Age: 1, Clock: at0},
		}}
	var b strings.Builder
	Cluster(&b, c, "", 0)
	const want = `news: running since 2026-11-22T09:00:00Z, 4 nodes, epoch 3 settled, control unit b
  pages   /s  hosts  waiting  known  outbox  in flight  unshipped  owned  parked  timeout   heard  node
      0  0.0      0        0      0       0          0        0 B      7       2   2.125s  1s ago  a
      0  0.0      0        0      0       0          0        0 B      5       0    150ms  1s ago  b
      0  0.0      0        0      0       0          0        0 B     90       0    150ms  1s ago  c (dead)
      0  0.0      0        0      0       0          0        0 B      -       -        -  1s ago  d (waiting)
      0  0.0      0        0      0       0          0        0 B     12       2                   all
note: c~1 was declared dead: the other nodes take over its hosts
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	c.Control = ""
	Cluster(&b, c, "", 0)
	if !strings.Contains(b.String(), "settled\n") || !strings.Contains(b.String(),
		"note: no node is known to be the control unit") {
		t.Errorf("without one:\n%s", b.String())
	}
	text, err := json.Marshal(inspect.Node{Name: "a"})
	if err != nil || strings.Contains(string(text), "owned") {
		t.Errorf("of a node without facts: %s, %v", text, err)
	}
}

// With the strategy balance, it shows the master's assignments.
func TestBalanceForPeople(t *testing.T) {
	off := 0.084
	c := &inspect.Cluster{Crawl: "docs", Strategy: "balance", State: "running", Since: at0, Time: at0, Epoch: 3,
		Settled: true, Control: "b", Nodes: []inspect.Node{
			{Node: "a~1", Name: "a", Is: inspect.NodeMember, Slot: -1, Age: 1, Clock: at0, Facts: &inspect.Facts{Owned: 7,
				Quota: &inspect.Quota{Given: 300, Done: 120, Left: 180, Predicted: 12.4, Error: &off, Basis: "learnt"}}},
			{Node: "b~1", Name: "b", Is: inspect.NodeMember, Slot: -1, Age: 1, Clock: at0, Facts: &inspect.Facts{Owned: 5,
				Leads: true, Quota: &inspect.Quota{Basis: "nothing"}}},
			{Node: "c~1", Name: "c", Is: inspect.NodeMember, Slot: -1, Age: 1, Clock: at0, Facts: &inspect.Facts{}},
		}}
	var b strings.Builder
	Cluster(&b, c, "", 0)
	const want = `docs: running since 2026-11-22T09:00:00Z, 3 nodes, epoch 3 settled, master b
  pages   /s  hosts  waiting  known  outbox  in flight  unshipped  owned  given  done  left  predicted  error       by   heard  node
      0  0.0      0        0      0       0          0        0 B      7    300   120   180       12 s    8 %   learnt  1s ago  a
      0  0.0      0        0      0       0          0        0 B      5      0     0     0        0 s      ?  nothing  1s ago  b
      0  0.0      0        0      0       0          0        0 B      0      -     -     -          -      -        -  1s ago  c
      0  0.0      0        0      0       0          0        0 B     12                                                        all
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	c.Control = ""
	Cluster(&b, c, "", 80)
	if s := b.String(); !strings.Contains(s, "no node is known to be the master") ||
		!strings.Contains(s, "predicted  error") {
		t.Errorf("on a narrow terminal, without one:\n%s", s)
	}
}

func TestModelForPeople(t *testing.T) {
	m := &inspect.Model{Crawl: "docs", Samples: 31, Trained: 25, Least: 20, HeldBack: 6, Error: 0.094, ErrorByPace: 0.17,
		Nodes: []inspect.NodeModel{
			{Name: "a", Member: true, Samples: 30, Machine: inspect.Machine{Cores: 0.5, GHz: 2.6, MemoryGB: 23.5406,
				DiskMbps: 1790},
				Basis: "learnt", Predictions: []inspect.Prediction{{URLs: 10, Seconds: 0.0122}, {URLs: 1000, Seconds: 12345}}},
			{Name: "old", Samples: 1, Basis: "pace", Predictions: []inspect.Prediction{{URLs: 10, Seconds: 1},
				{URLs: 1000, Seconds: 100}}},
		}}
	for _, c := range []struct {
		change func()
		want   string
	}{
		{func() {}, "a network, trained on 25; its error on 6 held back is 9 %, and 17 % when predicting by pages " +
			"per second only\n"},
		{func() { m.HeldBack = 0 }, "a network, trained on 25; none is held back yet, so its error is unknown\n"},
		{func() { m.Trained = 0 }, "no network yet: it needs 20 training samples, plus those held back\n"},
	} {
		c.change()
		want := "docs: 31 samples\n" + c.want + `
samples cores GHz GB net Mb/s disk Mb/s rests on 10 URLs 1000 URLs node
30 0.5 2.6 23.5 - 1790 learnt 0.0122 s 12300 s a
1 - - - - - pace 1 s 100 s old (left)
`
		var b strings.Builder
		if err := Model(&b, m); err != nil {
			t.Fatal(err)
		}
		got := strings.ReplaceAll(spaces.ReplaceAllString(b.String(), " "), "\n ", "\n")
		if got != strings.ReplaceAll(want, "\n\n", "\n") {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

func TestOwnersForPeople(t *testing.T) {
	all := &inspect.Owners{Moving: true, More: 3, Missing: []string{"x.example"},
		By: []inspect.OwnedBy{{Owner: "a", Node: "a~1", Hosts: 12, Parked: 2}, {Owner: "b", Node: "b~1", Hosts: 1,
			Gone: true}},
		Hosts: []inspect.Owned{
			{Host: "a.example", Owner: "a", Node: "a~1", State: inspect.HostReached, Since: at0},
			{Host: "b.example", Owner: "a", Node: "a~1", State: inspect.HostParked, Since: at0, Rounds: 2,
				Failed: []string{"a", "b"}, Again: at0.Add(time.Minute)},
			{Host: "c.example", Owner: "a", Node: "a~1", State: inspect.HostParked, Since: at0},
			{Host: "d.example", Owner: "a", Node: "a~1", State: inspect.HostReached, Since: at0, Rounds: 3},
			{Host: "e.example", Owner: "b", Node: "b~1", State: inspect.HostPromised, Since: at0, Gone: true},
			{Host: "f.example", Owner: "b", Node: "b~2", State: inspect.HostHashed},
			{Host: "g.example", Owner: "a", Node: "a~1", State: inspect.HostReached, Since: at0, Moved: true},
			{Host: "h.example", Owner: "a", Node: "a~1", State: inspect.HostPromised, Since: at0, Moved: true},
		}}
	var b strings.Builder
	if err := Owners(&b, all); err != nil {
		t.Fatal(err)
	}
	const want = `  hosts  parked  owner
     12       2  a
      1       0  b~1 (gone)

owner       host       since                 state
a           a.example  2026-11-22T09:00:00Z  reached
a           b.example  2026-11-22T09:00:00Z  parked: no node reaches it, tried 2 times by all, last by a b; again at 2026-11-22T09:01:00Z
a           c.example  2026-11-22T09:00:00Z  parked: received from another node, and being tried
a           d.example  2026-11-22T09:00:00Z  left with its owner: no node has reached it, tried 3 times by all
b~1 (gone)  e.example  2026-11-22T09:00:00Z  being moved there from its previous node
b           f.example  -                     by its hash
a           g.example  2026-11-22T09:00:00Z  reached; moved there for load, from a node with more work
a           h.example  2026-11-22T09:00:00Z  being moved there for load: its node had more work
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	if notes := strings.Join(OwnerNotes(all), "\n"); !strings.Contains(notes, "3 more hosts are not listed: --limit 0") ||
		!strings.Contains(notes, "x.example has no owner yet") || !strings.Contains(notes, "the membership is changing") {
		t.Errorf("notes:\n%s", notes)
	}
	b.Reset()
	if err := OwnersJSON(&b, all); err != nil || strings.Count(b.String(), "\n") != 10 {
		t.Errorf("in JSON: %v\n%s", err, b.String())
	}
}

var spaces = regexp.MustCompile(` +`)

func TestExplainedForPeople(t *testing.T) {
	here := inspect.Owned{Host: "h.example", Owner: "a", Node: "a~1", Here: true, State: inspect.HostReached, Since: at0}
	parked, other, moved := here, here, here
	moved.Moved = true
	parked.State, parked.Rounds = inspect.HostParked, 1
	other.Here, other.Address = false, "a.internal:7071"
	gone := other
	gone.Gone = true
	given, taken := here, moved
	given.State, taken.State = inspect.HostGiven, inspect.HostGiven
	waits := &inspect.Explanation{Fate: inspect.Waiting, Host: &inspect.Host{Waiting: 1}, Waits: &inspect.Item{},
		Scope: inspect.Scope{In: true, Why: "any host"}}
	unmet := &inspect.Explanation{Fate: inspect.Unknown, Scope: inspect.Scope{In: true, Why: "any host"}}
	cut := &inspect.Explanation{Fate: inspect.Unknown, LinksCut: 2, Scope: unmet.Scope}
	scripts := &inspect.Explanation{Fate: inspect.Unknown, NeedsScript: 1, Scope: unmet.Scope}
	for _, c := range []struct {
		x    Explained
		want string // "!" before a part: it must be missing
	}{
		{Explained{Explanation: waits, Owner: &here, ClusterQueried: true}, "fate waiting\n|owner a, this node, since " +
			"2026-11-22T09:00:00Z\n|!that node knows"},
		{Explained{Explanation: waits, Owner: &moved, ClusterQueried: true}, "this node, since 2026-11-22T09:00:00Z\n|reached; " +
			"moved there for load, from a node with more work"},
		{Explained{Explanation: waits, Owner: &parked, ClusterQueried: true},
			"fate waiting: no node can reach its host\n| parked: " +
				"no node reaches it, tried once by all\n"},
		{Explained{Explanation: unmet, Owner: &other, ClusterQueried: true},
			"unknown here: another node owns its host\n|owner " +
				"a, since|on that node, run kumo explain with its folder, on its machine (a.internal:7071)\n"},
		{Explained{Explanation: unmet, ClusterQueried: true}, "unknown: no page in scope|owner none yet"},
		{Explained{Explanation: cut}, "unknown: no link to it was read, but 2 pages have more links than were read"},
		{Explained{Explanation: scripts}, "unknown: no page links to it, but 1 page shows nothing without JavaScript"},
		{Explained{Explanation: unmet, ClusterQueried: true, Strategy: "balance", Links: &inspect.Links{Links: 3, Nodes: 2}},
			"unknown here: no node is assigned to its host yet\n|owner none yet: the master assigns the host " +
				"when a node has little work left|3 links to it wait on 2 nodes\n|!not reported"},
		{Explained{Explanation: unmet, ClusterQueried: true, Strategy: "hub", Links: &inspect.Links{Links: 1, Nodes: 1, Silent: 1}},
			"none yet: the nodes that can reach it are still being determined\n|1 link to it waits on 1 node\n| 1 " +
				"node has not reported"},
		{Explained{ClusterQueried: true, Strategy: "balance"}, "no node has found a link to it, or the master is " +
			"about to decide"},
		{Explained{Owner: &taken, ClusterQueried: true}, "taken from a node that would have finished later"},
		{Explained{Owner: &given, ClusterQueried: true}, "owner a, this node, since|!given"},
		{Explained{Explanation: unmet}, "unknown: no page in scope|!owner"},
		{Explained{Owner: &gone, ClusterQueried: true}, "owner a~1, which has left|!fate|!on that node"},
		{Explained{Explanation: unmet, ClusterQueried: true, ClusterErr: errors.New("no node with a server is at 127.0.0.1:1")},
			"owner unknown: no node with a server is at 127.0.0.1:1: give a node with --join"},
	} {
		var b strings.Builder
		if err := Explain(&b, &c.x); err != nil {
			t.Fatal(err)
		}
		got := spaces.ReplaceAllString(b.String(), " ")
		for _, part := range strings.Split(c.want, "|") {
			part, not := strings.CutPrefix(part, "!")
			if strings.Contains(got, part) == not {
				t.Errorf("%q is there: %v, in\n%s", part, !not, got)
			}
		}
	}
}
