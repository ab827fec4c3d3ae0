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
	meetQuietPeriod = 20 * time.Second
	// bytes of events in a node's report, and in those of all nodes
	maxEventBytes      = 1 << 10
	maxTotalEventBytes = mesh.MaxReportBytes / 4
	// of an event beside its words
	eventOverhead = 50
)

// A chronicler notes what this node meets: others that come and go in its neighbourhood, and what becomes of itself.
// There is no place that all nodes share: each tells with its report what it has met. It is the loop's.
type chronicler struct {
	all      chronicle.Chronicle
	joinedAt time.Time // when this node had its place
}

func (r *reporter) noteEvents(now time.Time) {
	now = now.Truncate(time.Second) // which is shorter to tell
	c := &r.chronicler
	if r.engine.get() == nil || !r.peer.Machine().KnowsPlace() {
		return
	}
	f := Figures{}
	if r.figures != nil {
		f = r.figures()
	}
	rec := r.watcher.known.Load().record
	is := chronicle.Snapshot{State: string(rec.State), Why: rec.Why, Since: rec.Changed,
		Nodes: []chronicle.Node{{Node: string(r.self), Role: chronicle.Member, Offline: f.Offline > 0}}}
	if rec.State == desired.Waiting {
		is.State = ""
	}
	first := c.joinedAt.IsZero()
	if first {
		c.joinedAt = now
		c.all.Update(is, now)
		return
	}
	o := r.peer.Overlay()
	for _, near := range o.Neighbors(nil) {
		is.Nodes = append(is.Nodes, chronicle.Node{Node: near.Node, Role: chronicle.Member})
	}
	is.Nodes = c.addDistant(is.Nodes, func(node string) bool {
		_, lives := o.Contact(node)
		return lives
	})
	met := c.all.Events
	if c.all.Update(is, now) && now.Sub(c.joinedAt) < meetQuietPeriod {
		c.all.Events = met
	}
}

// addDistant adds nodes that were near when it was looked last, and live: where there are many, who comes may be nearer.
func (c *chronicler) addDistant(near []chronicle.Node, lives func(node string) bool) []chronicle.Node {
	all := near
	for _, was := range c.all.Last.Nodes {
		if !slices.ContainsFunc(near, func(n chronicle.Node) bool { return n.Node == was.Node }) && lives(was.Node) {
			all = append(all, was)
		}
	}
	return all
}

// recent are the last events that this node has met, as far as they may make its report longer: reports of many nodes are
// to fit where those of few do.
func (c *chronicler) recent(nodes int) []chronicle.Event {
	left, from := min(maxEventBytes, maxTotalEventBytes/max(nodes, 1)), len(c.all.Events)
	for from > 0 {
		if left -= len(c.all.Events[from-1].What) + eventOverhead; left < 0 {
			break
		}
		from--
	}
	return c.all.Events[from:]
}
