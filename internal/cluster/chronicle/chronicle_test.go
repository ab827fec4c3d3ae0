package chronicle

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"
)

// Each change is recorded once, whichever node continues the chronicle, and old events are dropped.
func TestNote(t *testing.T) {
	var c Chronicle
	now := time.Date(2026, 11, 26, 11, 0, 0, 0, time.UTC)
	is := Snapshot{State: "running", Since: now.Add(-time.Minute), Nodes: []Node{{Node: "c~1", Role: Member},
		{Node: "a~1", Role: Member}, {Node: "b~1", Role: Member}}}
	node := func(name string) *Node {
		return &is.Nodes[slices.IndexFunc(is.Nodes, func(n Node) bool { return n.Node == name })]
	}
	note := func() {
		t.Helper()
		now = now.Add(time.Second)
		kept, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if c, err = Parse(kept); err != nil { // another node continues
			t.Fatal(err)
		}
		pic := is
		pic.Nodes = slices.Clone(is.Nodes)
		c.Update(pic, now)
		pic.Nodes = slices.Clone(is.Nodes)
		if c.Update(pic, now) {
			t.Error("what is as it was is noted")
		}
	}
	note()
	for _, step := range []func(){
		func() { is.Leader, is.Epoch, is.Settled = "a", 3, true },
		func() { node("b~1").Silent = true },
		func() { node("b~1").Silent = false },
		func() { node("c~1").Offline = true },
		func() { node("c~1").Offline, node("b~1").Silent = false, true },
		func() { node("b~1").Role, is.Settled = Dead, false },
		func() {
			is.Nodes = slices.DeleteFunc(is.Nodes, func(n Node) bool { return n.Node == "b~1" })
			is.Epoch, is.Settled = 4, true
		},
		func() { is.Nodes = append(is.Nodes, Node{Node: "b~2", Role: Joining}) },
		func() { node("b~2").Role = Member },
		func() { node("a~1").Role, is.Leader = Leaving, "c" },
		func() { is.Nodes = slices.DeleteFunc(is.Nodes, func(n Node) bool { return n.Node == "a~1" }) },
		func() { is.State, is.Why, is.Since = "stopping", "limit", now },
	} {
		step()
		note()
	}
	want := []string{"the crawl is running", "a is a member", "b is a member", "c is a member", "a is the leader",
		"epoch 3 is complete: all members have their hosts", "b is silent: it is dead, or cannot reach the other nodes",
		"b is no longer silent", "c is offline: it reaches no web server",
		"b is silent: it is dead, or cannot reach the other nodes",
		"c is online again", "b has died: the other nodes take over its hosts",
		"the hosts of b were taken over",
		"epoch 4 is complete: all members have their hosts", "b joins", "b is a member",
		"a is leaving and hands over its hosts",
		"c is the leader, replacing a", "a has left", "the crawl is stopping (limit)"}
	var said []string
	for _, e := range c.Events {
		said = append(said, e.What)
	}
	if !slices.Equal(said, want) {
		t.Errorf("noted is\n%q\nwant\n%q", said, want)
	}
	if first := c.Events[0].Time; !first.Equal(time.Date(2026, 11, 26, 10, 59, 0, 0, time.UTC)) {
		t.Errorf("the crawl runs since %v", first)
	}
	for i := range 2 * MaxEvents {
		is.Leader = fmt.Sprint("n", i)
		note()
	}
	if len(c.Events) != MaxEvents || c.Events[MaxEvents-1].What != "n199 is the leader, replacing n198" {
		t.Errorf("%d events are kept, the last %v", len(c.Events), c.Events[len(c.Events)-1])
	}
}

// An event that several nodes have recorded counts once.
func TestMerged(t *testing.T) {
	at := time.Date(2026, 11, 26, 11, 0, 0, 0, time.UTC)
	e := func(seconds int, what string) Event { return Event{at.Add(time.Duration(seconds) * time.Second), what} }
	all := Merge([]Event{e(5, "b is a member"), e(90, "b is gone")}, []Event{e(0, "b is a member"), e(80, "b is gone"),
		e(200, "b is a member")}, nil)
	want := []Event{e(0, "b is a member"), e(80, "b is gone"), e(200, "b is a member")}
	if !slices.Equal(all, want) {
		t.Errorf("%v, want %v", all, want)
	}
}

// Any chronicle can be parsed without harm.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"was":{"nodes":[{"node":"a~1","is":"member"}]},"events":[{"time":"2026-11-26T11:00:00Z","what":"x"}]}`))
	f.Add([]byte(`{"was":{"nodes":null},"events":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse(data)
		if err != nil {
			return
		}
		c.Update(Snapshot{Nodes: []Node{{Node: "~", Role: Member}, {Role: Dead}}}, time.Time{})
		if len(c.Events) > MaxEvents {
			t.Errorf("%d events", len(c.Events))
		}
	})
}
