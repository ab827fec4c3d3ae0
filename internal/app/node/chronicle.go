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

// EventsKey is the registry key of the nodes' events.
const EventsKey = "events"

// Chronicle reads the nodes' events, and their revision.
func (c Control) Chronicle(ctx context.Context) (chronicle.Chronicle, uint64, error) {
	e, err := c.Registry.Get(ctx, EventsKey)
	if err != nil {
		return chronicle.Chronicle{}, 0, err
	}
	all, err := chronicle.Parse(e.Value)
	return all, e.Revision, err
}

// RecordEvents records the events since the last call of any node. It returns bus.ErrStale if another node does so at
// the same time. silent reports whether a node has stopped reporting. leases is consumed.
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

// Role returns the role of the node in the cluster.
func (s *Status) Role() chronicle.Role {
	switch {
	case s.Dead:
		return chronicle.Dead
	case s.Leaving:
		return chronicle.Leaving
	case s.Member:
		return chronicle.Member
	case s.Known > 0: // a new node knows no URLs
		return chronicle.Left
	}
	return chronicle.Joining
}

// Leader returns the name of the member that is the leader. A former leader may not know that it was replaced, so the
// reports of the other nodes decide.
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
