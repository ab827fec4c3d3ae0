package node

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
)

// A Status is the state of a node, according to the registry.
type Status struct {
	Node    strategy.Node
	Member  bool // in the table
	Leaving bool // it transfers its hosts to others
	Dead    bool // its lease is revoked, or it has none
	Slot    int  // in the table of logical nodes; -1: none
	Epoch   uint64
	Settled bool // all members have received all their hosts
	Report
}

// Status reads the crawl's record, and the state of all nodes.
func (c Control) Status(ctx context.Context) (desired.Record, []Status, error) {
	leases, err := c.Leases(ctx)
	if err != nil {
		return desired.Record{}, nil, err
	}
	return c.statusBy(ctx, leases)
}

// statusBy is Status with the given leases, which it consumes.
func (c Control) statusBy(ctx context.Context, leases map[strategy.Node]quorum.Lease) (desired.Record, []Status,
	error) {
	r, _, err := c.Record(ctx)
	if err != nil {
		return r, nil, err
	}
	e, err := c.Registry.Get(ctx, quorum.TableKey)
	if err != nil {
		return r, nil, fmt.Errorf("read the table of members: %w", err)
	}
	table := new(quorum.Table)
	if e.Value != nil {
		if table, err = quorum.ParseTable(e.Value); err != nil {
			return r, nil, err
		}
	}
	var all []Status
	add := func(n strategy.Node, s Status) {
		lease, alive := leases[n]
		delete(leases, n)
		s.Node, s.Epoch, s.Settled, s.Dead = n, table.Epoch, table.Finalized == table.Epoch, !alive || lease.Revoked
		s.Report, _ = ParseReport(lease.Report) // the report may be missing, or of another version
		all = append(all, s)
	}
	for _, m := range table.Members {
		add(m.Node, Status{Member: true, Slot: m.Slot})
	}
	for _, n := range table.Leaving {
		add(n, Status{Leaving: true, Slot: -1})
	}
	for _, n := range table.Failed {
		add(n, Status{Slot: -1})
	}
	for n, l := range leases {
		if !l.Revoked { // about to join
			add(n, Status{Slot: -1})
		}
	}
	slices.SortFunc(all, func(a, b Status) int { return strings.Compare(string(a.Node), string(b.Node)) })
	return r, all, nil
}

// Leases reads all leases.
func (c Control) Leases(ctx context.Context) (map[strategy.Node]quorum.Lease, error) {
	entries, err := bus.ReadAll(ctx, c.Registry, quorum.LeasePrefix)
	if err != nil {
		return nil, err
	}
	all := map[strategy.Node]quorum.Lease{}
	for _, e := range entries {
		if l, err := quorum.ParseLease(e.Value); err == nil { // skip leases of another version
			all[strategy.Node(strings.TrimPrefix(e.Key, quorum.LeasePrefix))] = l
		}
	}
	return all, nil
}
