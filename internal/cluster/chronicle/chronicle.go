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

// An Event is a change of a node, the leader, the epoch or the crawl's state.
type Event struct {
	Time time.Time `json:"time"` // by the clock of the node that recorded it
	What string    `json:"what"`
}

// MaxEvents is the number of events that are kept.
const MaxEvents = 100

// maxNodes bounds the nodes of a snapshot. In a larger crawl, changes of other nodes are not recorded.
const maxNodes = 2000

// A Chronicle has the last snapshot, and the events until then.
type Chronicle struct {
	Last   *Snapshot `json:"was,omitempty"`
	Events []Event   `json:"events"` // the latest last
}

// A Snapshot is the state of the nodes at one time.
type Snapshot struct {
	State   string    `json:"state,omitempty"` // of the crawl
	Why     string    `json:"why,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Leader  string    `json:"leader,omitempty"` // the node's name
	Epoch   uint64    `json:"epoch,omitempty"`
	Settled bool      `json:"settled,omitempty"`
	Nodes   []Node    `json:"nodes"`
}

// A Node is a node of a snapshot.
type Node struct {
	Node    string `json:"node"` // identity: the name, "~" and a part that differs for each incarnation
	Role    Role   `json:"is"`
	Silent  bool   `json:"silent,omitempty"`  // other nodes do not hear from it
	Offline bool   `json:"cut_off,omitempty"` // it reaches no web server
}

func (n *Node) name() string { return strategy.Node(n.Node).Name() }

// A Role is a node's state in the cluster.
type Role string

// The roles.
const (
	Joining Role = "joining" // known to other nodes, without hosts of its own yet
	Member  Role = "member"
	Leaving Role = "leaving" // handing over its hosts
	Dead    Role = "dead"    // other nodes hand over its hosts
	Left    Role = "left"    // it has handed over all its hosts; its lease has not ended yet
)

// Parse decodes a chronicle from JSON; nil is an empty one.
func Parse(data []byte) (c Chronicle, err error) {
	if data == nil {
		return c, nil
	}
	if err = json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("read the chronicle: %w", err)
	}
	c.Events = c.Events[max(len(c.Events)-MaxEvents, 0):]
	return c, nil
}

// Update adds the events between the last snapshot and this one, and reports whether the snapshots differ.
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

// diff returns the events between two snapshots.
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
		say("%s is the leader, replacing %s", is.Leader, was.Leader)
	default:
		say("%s is the leader", is.Leader)
	}
	if is.Settled && (!was.Settled || was.Epoch != is.Epoch) && is.Epoch > 0 {
		say("epoch %d is complete: all members have their hosts", is.Epoch)
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
		return // a missing node may only have had no room in the snapshot
	}
	for i := range was.Nodes {
		if n := &was.Nodes[i]; before[n.Node] != nil {
			say("%s", describeGone(n))
		}
	}
}

// diffNode reports the changes of a node that is in both snapshots or new.
func diffNode(old, n *Node, say func(string, ...any)) {
	if old.Role != n.Role {
		say("%s %s", n.name(), map[Role]string{Joining: "joins", Member: "is a member",
			Leaving: "is leaving and hands over its hosts",
			Dead:    "has died: the other nodes take over its hosts",
			Left:    "has handed over all its hosts"}[n.Role])
	}
	if n.Role != Member {
		return
	}
	switch {
	case n.Silent && !old.Silent:
		say("%s is silent: it is dead, or cannot reach the other nodes", n.name())
	case old.Silent && !n.Silent:
		say("%s is no longer silent", n.name())
	}
	switch {
	case n.Offline && !old.Offline:
		say("%s is offline: it reaches no web server", n.name())
	case old.Offline && !n.Offline:
		say("%s is online again", n.name())
	}
}

// describeGone describes what happened to a node that is missing in the new snapshot.
func describeGone(n *Node) string {
	switch {
	case n.Role == Dead:
		return "the hosts of " + n.name() + " were taken over"
	case n.Role == Leaving, n.Role == Left:
		return n.name() + " has left"
	case n.Role == Joining:
		return n.name() + " is gone"
	case n.Silent:
		return n.name() + " has died: other nodes have taken over its hosts"
	}
	return n.name() + " is gone: it has left or died, and other nodes have its hosts"
}

// Merge combines the events that several nodes have recorded, the latest last. Equal events within a minute count as
// one.
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
