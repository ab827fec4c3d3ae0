package meshnode

import (
	"slices"
	"time"

	"kumo/internal/cluster/chronicle"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/member/mesh"
)

const (
	// a node that has just begun meets all others, who have been there before
	meetAfter = 20 * time.Second
	// bytes of events in a node's report, and in those of all nodes
	mostTold = 1 << 10
	allTold  = mesh.MaxReportBytes / 4
	// of an event beside its words
	eventBytes = 50
)

// A chronicler notes what this node meets: others that come and go in its neighbourhood, and what becomes of itself.
// There is no place that all nodes share: each tells with its report what it has met. It is the loop's.
type chronicler struct {
	all   chronicle.Chronicle
	begun time.Time // when this node had its place
}

func (r *reporter) note(now time.Time) {
	now = now.Truncate(time.Second) // which is shorter to tell
	c := &r.chronicler
	if r.engine.get() == nil || !r.peer.Machine().KnowsPlace() {
		return
	}
	f := Figures{}
	if r.figures != nil {
		f = r.figures()
	}
	rec := r.follow.known.Load().record
	is := chronicle.Snapshot{State: string(rec.State), Why: rec.Why, Since: rec.Changed,
		Nodes: []chronicle.Node{{Node: string(r.self), Role: chronicle.Member, Offline: f.Offline > 0}}}
	if rec.State == desired.Waiting {
		is.State = ""
	}
	first := c.begun.IsZero()
	if first {
		c.begun = now
		c.all.Update(is, now)
		return
	}
	o := r.peer.Overlay()
	for _, near := range o.Neighbors(nil) {
		is.Nodes = append(is.Nodes, chronicle.Node{Node: near.Node, Role: chronicle.Member})
	}
	is.Nodes = c.withFar(is.Nodes, func(node string) bool {
		_, lives := o.Contact(node)
		return lives
	})
	met := c.all.Events
	if c.all.Update(is, now) && now.Sub(c.begun) < meetAfter {
		c.all.Events = met
	}
}

// withFar adds nodes that were near when it was looked last, and live: where there are many, who comes may be nearer.
func (c *chronicler) withFar(near []chronicle.Node, lives func(node string) bool) []chronicle.Node {
	all := near
	for _, was := range c.all.Last.Nodes {
		if !slices.ContainsFunc(near, func(n chronicle.Node) bool { return n.Node == was.Node }) && lives(was.Node) {
			all = append(all, was)
		}
	}
	return all
}

// told are the last events that this node has met, as far as they may make its report longer: reports of many nodes are
// to fit where those of few do.
func (c *chronicler) told(nodes int) []chronicle.Event {
	left, from := min(mostTold, allTold/max(nodes, 1)), len(c.all.Events)
	for from > 0 {
		if left -= len(c.all.Events[from-1].What) + eventBytes; left < 0 {
			break
		}
		from--
	}
	return c.all.Events[from:]
}
