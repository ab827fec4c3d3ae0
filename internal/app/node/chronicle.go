package node

import (
	"context"
	"encoding/json"
	"time"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/chronicle"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
)

// EventsKey is where the registry has what has happened to the nodes.
const EventsKey = "events"

// Chronicle reads what has happened to the nodes, and its revision.
func (c Control) Chronicle(ctx context.Context) (chronicle.Chronicle, uint64, error) {
	e, err := c.Registry.Get(ctx, EventsKey)
	if err != nil {
		return chronicle.Chronicle{}, 0, err
	}
	all, err := chronicle.Parse(e.Value)
	return all, e.Revision, err
}

// RecordEvents notes what has happened since somebody has noted it last. It returns bus.ErrStale where another one does so at
// the same time. silent says of whom nothing is heard; the leases are used up.
func (c Control) RecordEvents(ctx context.Context, leases map[strategy.Node]quorum.Lease,
	silent func(strategy.Node) bool) error {
	r, nodes, err := c.statusBy(ctx, leases)
	if err != nil {
		return err
	}
	all, rev, err := c.Chronicle(ctx)
	if err != nil {
		return err
	}
	is := chronicle.Snapshot{State: string(r.State), Why: r.Why, Since: r.Changed, Leader: Leader(nodes)}
	for i := range nodes {
		s := &nodes[i]
		is.Epoch, is.Settled = s.Epoch, s.Settled
		is.Nodes = append(is.Nodes, chronicle.Node{Node: string(s.Node), Role: s.Role(), Offline: s.Offline > 0,
			Silent: s.Member && !s.Dead && silent(s.Node)})
	}
	if !all.Update(is, time.Now()) {
		return nil
	}
	value, err := json.Marshal(all)
	if err == nil && len(value) > bus.MaxData {
		err = bus.ErrTooLarge
	}
	if err == nil {
		_, err = c.Registry.Put(ctx, EventsKey, value, rev)
	}
	return err
}

// Role is what a node is to the others.
func (s *Status) Role() chronicle.Role {
	switch {
	case s.Dead:
		return chronicle.Dead
	case s.Leaving:
		return chronicle.Leaving
	case s.Member:
		return chronicle.Member
	case s.Known > 0: // who is new knows nothing
		return chronicle.Left
	}
	return chronicle.Joining
}

// Leader is the name of the member that says that it says whose hosts are. One whose time is over may not know yet:
// most nodes do.
func Leader(nodes []Status) (name string) {
	said := map[string]int{}
	for i := range nodes {
		if s := &nodes[i]; s.Role() == chronicle.Member && s.Facts != nil {
			said[s.Control]++
		}
	}
	most := -1
	for i := range nodes {
		if s := &nodes[i]; s.Role() == chronicle.Member && s.Facts != nil && s.Leads && said[s.Node.Name()] > most {
			name, most = s.Node.Name(), said[s.Node.Name()]
		}
	}
	return name
}
