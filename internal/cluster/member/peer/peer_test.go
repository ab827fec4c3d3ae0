package peer

import (
	"testing"
	"time"

	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/overlay"
)

// TestTwoPeersMeet lets two peers exchange messages at once: each learns that it shares the hosts.
func TestTwoPeersMeet(t *testing.T) {
	now := time.Unix(1e9, 0)
	var sent []func()
	peers := map[string]*Peer{}
	timers := map[string]time.Time{}
	views := map[string]*mesh.View{}
	var tell func(name string, events ...Event)
	carry := func(name string, actions []Action) {
		for _, a := range actions {
			switch a := a.(type) {
			case Send:
				if len(a.To.Addrs) == 0 && a.To.Node != "one" {
					t.Errorf("%s sends to %q, whose address it knows", name, a.To.Node)
				}
				sent = append(sent, func() {
					tell(a.To.Node, Message{overlay.Contact{Node: name, Addrs: []string{"at " + name}}, a.Data})
				})
			case Wake:
				timers[name] = a.At
			case mesh.Publish:
				views[name] = a.View
			}
		}
	}
	tell = func(name string, events ...Event) { carry(name, peers[name].Step(now, events, nil)) }
	for _, name := range []string{"one", "two"} {
		peers[name] = New(Config{Overlay: overlay.Config{Self: overlay.Contact{Node: name}},
			Mesh: mesh.Config{HasPending: func(string) bool { return false }}})
		carry(name, peers[name].Start(now, nil))
	}
	tell("one", Join{})
	tell("two", Join{Contacts: []overlay.Contact{{Node: "one"}}}, Message{Data: []byte{}}, Message{Data: []byte("x")})
	for range 200 {
		now = now.Add(100 * time.Millisecond)
		for _, name := range []string{"one", "two"} {
			if at := timers[name]; !at.IsZero() && !at.After(now) {
				tell(name, Tick{})
			}
		}
		for len(sent) > 0 {
			f := sent[0]
			sent = sent[1:]
			f()
		}
	}
	one, two := 0, 0
	for _, host := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		if views["one"].Ours(host) == views["two"].Ours(host) {
			t.Errorf("%s is both's or nobody's", host)
		}
		if views["one"].Ours(host) {
			one++
		} else {
			two++
		}
	}
	if one == 0 || two == 0 {
		t.Errorf("%d hosts are one's, %d the other's", one, two)
	}
	for name, v := range views {
		if !v.Until().After(now) {
			t.Errorf("%s's view has ended", name)
		}
	}
}
