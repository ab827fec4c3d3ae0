package meshnode

import (
	"slices"
	"time"

	"kumo/internal/cluster/chronicle"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/member/mesh"
)

const (
	// A node that has just joined discovers existing nodes; these are not events.
	meetQuietPeriod = 20 * time.Second
	// Maximum bytes of events in a node's report, and in the reports of all nodes together.
	maxEventBytes      = 1 << 10
	maxTotalEventBytes = mesh.MaxReportBytes / 4
	// Size of an event without its text.
	eventOverhead = 50
)

// A chronicler records events that this node observes: its own state, and nodes that join or leave its neighborhood. A
// mesh has no shared storage for events, so each node's report contains its own. It belongs to the loop.
type chronicler struct {
	all      chronicle.Chronicle
	joinedAt time.Time // when this node joined
}

func (r *reporter) recordEvents(now time.Time) {
	now = now.Truncate(time.Second) // a shorter encoding
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

// addDistant adds live nodes that were near at the last update. In a large crawl, new nodes may be nearer than these.
func (c *chronicler) addDistant(near []chronicle.Node, lives func(node string) bool) []chronicle.Node {
	all := near
	for _, was := range c.all.Last.Nodes {
		if !slices.ContainsFunc(near, func(n chronicle.Node) bool { return n.Node == was.Node }) && lives(was.Node) {
			all = append(all, was)
		}
	}
	return all
}

// recent returns the latest events. It limits their size by the number of nodes, so that the reports of many nodes are
// not longer than those of few.
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
