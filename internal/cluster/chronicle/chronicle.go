// Package chronicle records the history of a crawl's nodes.
//
// Its events are: a node joined, left, died or went offline, the leader changed, and an epoch was completed. Each
// update compares the current state with the state in the chronicle. So another node can continue the chronicle, and it
// includes changes that happened between updates.
package chronicle

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// An Event is something that has happened.
type Event struct {
	Time time.Time `json:"time"` // by the clock of who has noted it
	What string    `json:"what"`
}

// MaxEvents is how many events are kept.
const MaxEvents = 100

// maxNodes bounds the nodes of a picture: of more only the sum of their doings is told.
const maxNodes = 2000

// A Chronicle is how all was when it was looked at last, and what had happened until then.
type Chronicle struct {
	Last   *Snapshot `json:"was,omitempty"`
	Events []Event   `json:"events"` // the newest last
}

// A Picture is how all is at one time.
type Snapshot struct {
	State   string    `json:"state,omitempty"` // of the crawl
	Why     string    `json:"why,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Leader  string    `json:"leader,omitempty"` // its name
	Epoch   uint64    `json:"epoch,omitempty"`
	Settled bool      `json:"settled,omitempty"`
	Nodes   []Node    `json:"nodes"`
}

// A Node is one of the nodes.
type Node struct {
	Node    string `json:"node"` // its identity: the name, "~" and its life
	Role    Role   `json:"is"`
	Silent  bool   `json:"silent,omitempty"`  // it is not heard of
	Offline bool   `json:"cut_off,omitempty"` // it reaches no host of the web
}

func (n *Node) name() string { return strategy.Node(n.Node).Name() }

// A Standing is what a node is to the others.
type Role string

// The standings.
const (
	Joining Role = "joining" // others know of it, and nothing is its own yet
	Member  Role = "member"
	Leaving Role = "leaving" // it hands over what it has
	Dead    Role = "dead"    // others hand over what it had
	Left    Role = "left"    // it has handed over all it had; its lease has not ended yet
)

// Parse reads a chronicle in JSON; nil is one of which nothing was noted yet.
func Parse(data []byte) (c Chronicle, err error) {
	if data == nil {
		return c, nil
	}
	if err = json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("read what has happened in the cluster: %w", err)
	}
	c.Events = c.Events[max(len(c.Events)-MaxEvents, 0):]
	return c, nil
}

// Update notes what has happened until now, if anything has, and reports whether it has.
func (c *Chronicle) Update(is Snapshot, now time.Time) bool {
	slices.SortFunc(is.Nodes, func(a, b Node) int { return cmp.Compare(a.Node, b.Node) })
	is.Nodes = is.Nodes[:min(len(is.Nodes), maxNodes)]
	was := c.Last
	if was != nil && was.equal(&is) {
		return false
	}
	if was == nil {
		was = &Snapshot{}
	}
	all := append(slices.Clone(c.Events), diff(was, &is, now.UTC())...)
	c.Last, c.Events = &is, all[max(len(all)-MaxEvents, 0):]
	return true
}

func (p *Snapshot) equal(o *Snapshot) bool {
	a, b := *p, *o
	same := a.Since.Equal(b.Since) && slices.Equal(a.Nodes, b.Nodes)
	a.Since, b.Since, a.Nodes, b.Nodes = time.Time{}, time.Time{}, nil, nil
	return same && reflect.DeepEqual(a, b)
}

// diff is what has happened between two looks.
func diff(was, is *Snapshot, now time.Time) (all []Event) {
	say := func(format string, args ...any) { all = append(all, Event{now, fmt.Sprintf(format, args...)}) }
	if was.State != is.State && is.State != "" {
		why := ""
		if is.Why != "" {
			why = " (" + is.Why + ")"
		}
		say("the crawl is %s%s", is.State, why)
		if !is.Since.IsZero() {
			all[0].Time = is.Since.UTC()
		}
	}
	diffNodes(was, is, say)
	switch {
	case was.Leader == is.Leader || is.Leader == "":
	case was.Leader != "":
		say("%s leads now, in place of %s", is.Leader, was.Leader)
	default:
		say("%s leads now", is.Leader)
	}
	if is.Settled && (!was.Settled || was.Epoch != is.Epoch) && is.Epoch > 0 {
		say("epoch %d is settled: all members have what is theirs", is.Epoch)
	}
	return all
}

func diffNodes(was, is *Snapshot, say func(string, ...any)) {
	before := map[string]*Node{}
	for i := range was.Nodes {
		before[was.Nodes[i].Node] = &was.Nodes[i]
	}
	for i := range is.Nodes {
		n := &is.Nodes[i]
		old := before[n.Node]
		delete(before, n.Node)
		if old == nil {
			old = &Node{}
		}
		diffNode(old, n, say)
	}
	if len(is.Nodes) == maxNodes {
		return // who is missing may only have no place in the picture
	}
	for i := range was.Nodes {
		if n := &was.Nodes[i]; before[n.Node] != nil {
			say("%s", describeGone(n))
		}
	}
}

// diffNode says what has happened to a node that is there.
func diffNode(old, n *Node, say func(string, ...any)) {
	if old.Role != n.Role {
		say("%s %s", n.name(), map[Role]string{Joining: "joins", Member: "is a member",
			Leaving: "leaves: it hands over what it has",
			Dead:    "has died: it was given up, and the others take over what it had",
			Left:    "has handed over all that it had"}[n.Role])
	}
	if n.Role != Member {
		return
	}
	switch {
	case n.Silent && !old.Silent:
		say("%s is not heard of: it is dead, or cut off from the others", n.name())
	case old.Silent && !n.Silent:
		say("%s is heard of again", n.name())
	}
	switch {
	case n.Offline && !old.Offline:
		say("%s reaches nothing on the web", n.name())
	case old.Offline && !n.Offline:
		say("%s reaches the web again", n.name())
	}
}

// describeGone says what became of a node that is not there any more, by what it was.
func describeGone(n *Node) string {
	switch {
	case n.Role == Dead:
		return "what " + n.name() + " had was taken over"
	case n.Role == Leaving, n.Role == Left:
		return n.name() + " has left"
	case n.Role == Joining:
		return n.name() + " is gone"
	case n.Silent:
		return n.name() + " has died: it was given up, and others have what it had"
	}
	return n.name() + " is gone: it has left, or was given up, and others have what it had"
}

// Merge are the events that several have noted, each for itself, the newest last: what several have met within a
// minute is one.
func Merge(lists ...[]Event) (all []Event) {
	for _, l := range lists {
		all = append(all, l...)
	}
	slices.SortFunc(all, func(a, b Event) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.What, b.What)) })
	last := map[string]time.Time{}
	all = slices.DeleteFunc(all, func(e Event) bool {
		met, is := last[e.What]
		if is && e.Time.Sub(met) < mergeWindow {
			return true
		}
		last[e.What] = e.Time
		return false
	})
	return all[max(len(all)-MaxEvents, 0):]
}

const mergeWindow = time.Minute
