package admin

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"kumo/internal/app/inspect"
	"kumo/internal/app/node"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/chronicle"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/strategy"
)

// Cluster returns the state of the crawl's cluster as recorded in the registry.
func (c *client) Cluster(ctx context.Context, crawl string) (*inspect.Cluster, error) {
	r, nodes, err := c.control.Status(ctx)
	if err != nil {
		return nil, err
	}
	waiting, err := c.waitingNodes(ctx)
	if err != nil {
		return nil, err
	}
	all := clusterOf(crawl, r, nodes, time.Now())
	s, _ := c.Strategy(ctx) // unknown for a newer kumo
	all.Strategy = s.Name
	if c.cfg.Trouble != nil {
		all.Trouble = c.cfg.Trouble.Error()
	}
	for i := range waiting {
		addWaitingNode(all, nodeOf(&waiting[i], all.Time))
	}
	for i := range all.Nodes {
		if n := &all.Nodes[i]; n.Is == inspect.NodeLeft {
			n.Load, n.Facts = inspect.Load{Pages: n.Pages}, nil // other nodes have the rest now
		}
		all.Totals.Add(all.Nodes[i].Load)
	}
	if err := c.addDeparted(ctx, all); err != nil {
		return nil, err
	}
	told, _, err := c.control.Chronicle(ctx)
	if err != nil {
		return nil, err
	}
	all.Events = toEvents(told.Events)
	sortNodes(all.Nodes)
	all.Measure()
	return all, nil
}

func sortNodes(all []inspect.Node) {
	slices.SortFunc(all, func(a, b inspect.Node) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Node, b.Node))
	})
}

func toEvents(told []chronicle.Event) (all []inspect.NodeEvent) {
	for _, e := range told {
		all = append(all, inspect.NodeEvent(e))
	}
	return all
}

// addDeparted adds the pages of departed nodes to the totals, so that the sum does not fall.
func (c *client) addDeparted(ctx context.Context, all *inspect.Cluster) error {
	totals := node.Totals{Registry: c.control.Registry}
	gone, err := totals.Departed(ctx)
	if err != nil {
		return err
	}
	known, err := totals.Known(ctx)
	if err != nil {
		return err
	}
	now, whole := node.Pages{}, all.Settled
	for i := range all.Nodes {
		n := &all.Nodes[i]
		now[strategy.Node(n.Node)] = n.Pages
		whole = whole && n.Is != inspect.NodeDead
	}
	if err := c.addRevoked(ctx, now, gone); err != nil { // not listed any more, and perhaps not recorded yet
		return err
	}
	all.Totals.Pages = gone.SumWith(now)
	for n := range now {
		delete(gone, n)
	}
	again, err := totals.Refetched(ctx)
	if err != nil {
		return err
	}
	all.Gone = inspect.Gone{Nodes: len(gone), Pages: gone.SumWith(nil), Again: again.SumWith(nil)}
	// While hosts move, two nodes may count the same URLs.
	if all.Totals.Known = max(all.Totals.Known, known); !whole && known > 0 {
		all.Totals.Known = max(known, all.Totals.Waiting) // pending URLs are known, whenever the count was recorded
	}
	return nil
}

// addRevoked adds the page counts in the leases of nodes that are not shown.
func (c *client) addRevoked(ctx context.Context, shown, gone node.Pages) error {
	leases, err := c.control.Leases(ctx)
	if err != nil {
		return err
	}
	for n, lease := range leases {
		if _, is := shown[n]; is {
			continue
		}
		if r, err := node.ParseReport(lease.Report); err == nil && r.Pages > 0 {
			gone[n] = max(gone[n], r.Pages)
		}
	}
	return nil
}

// waitingNodes returns the nodes that wait for the start of the crawl.
func (c *client) waitingNodes(ctx context.Context) (all []node.Status, err error) {
	found, err := bus.ReadAll(ctx, c.control.Registry, node.WaitingPrefix)
	if err != nil {
		return nil, err
	}
	for _, e := range found {
		r, err := node.ParseReport(e.Value)
		if err == nil && r.IsWaiting() {
			all = append(all, node.Status{Node: strategy.Node(strings.TrimPrefix(e.Key, node.WaitingPrefix)), Slot: -1,
				Report: r})
		}
	}
	return all, nil
}

// addWaitingNode adds a node that waits. It may be a member whose lease is from an earlier process.
func addWaitingNode(all *inspect.Cluster, w inspect.Node) {
	i := slices.IndexFunc(all.Nodes, func(n inspect.Node) bool { return n.Node == w.Node })
	if i < 0 {
		w.Is = inspect.NodeWaiting
		all.Nodes = append(all.Nodes, w)
		return
	}
	if n := &all.Nodes[i]; n.Clock.Before(w.Clock) {
		n.Is, n.Age, n.Clock, n.Version, n.Rate, n.InFlight = inspect.NodeWaiting, w.Age, w.Clock, w.Version, 0, 0
		n.CutOff, n.CutOffWhy, n.Browser = 0, "", w.Browser
		n.EndsIn, n.Growth, n.Forecast = 0, 0, ""
		n.Stalled, n.StalledBy, n.StallWhy, n.StallDo = 0, "", "", ""
		if n.Facts != nil && n.Leads { // as an earlier process
			n.Leads, all.Control = false, ""
		}
	}
}

func clusterOf(crawl string, r desired.Record, nodes []node.Status, now time.Time) *inspect.Cluster {
	all := &inspect.Cluster{Crawl: crawl, State: string(r.State), Why: r.Why, Since: r.Changed.UTC(), Time: now.UTC(),
		Settings: r.Settings, Nodes: []inspect.Node{}}
	if r.Changed.IsZero() {
		all.Since = time.Time{}
	}
	for _, c := range r.Log {
		all.Changes = append(all.Changes, inspect.Change(c))
	}
	for i := range nodes {
		all.Epoch, all.Settled = nodes[i].Epoch, nodes[i].Settled
		all.Nodes = append(all.Nodes, nodeOf(&nodes[i], now))
	}
	all.Control = node.Leader(nodes)
	return all
}

func nodeOf(s *node.Status, now time.Time) inspect.Node {
	n := inspect.Node{
		Node:      string(s.Node),
		Name:      s.Node.Name(),
		Is:        inspect.NodeRole(s.Role()),
		Slot:      s.Slot,
		Clock:     s.Clock,
		Version:   s.Version,
		Address:   s.Address,
		Browser:   s.Browser,
		Server:    s.Server,
		Epoch:     s.Report.Epoch,
		Idle:      s.Idle,
		Slips:     s.Slips,
		Moved:     s.Moved,
		CutOff:    roundTenth(s.Offline),
		CutOffWhy: s.OfflineReason,
		EndsIn:    roundTenth(s.EndsIn),
		Growth:    roundTenth(s.Growth),
		Forecast:  s.Forecast,
		Stalled:   roundTenth(s.Stalled),
		StalledBy: s.StalledBy,
		StallWhy:  s.StallWhy,
		StallDo:   s.StallDo,
		Uploads:   s.Uploads,
		Sinks:     s.Sinks,
		Load: inspect.Load{Pages: s.Pages, Rate: roundTenth(s.Rate), ByteRate: roundTenth(s.ByteRate),
			Duplicates: s.Duplicates, Hosts: s.Hosts, Waiting: s.Waiting, Known: s.Known,
			Outbox: s.Outbox, InFlight: s.InFlight, Lag: s.Lag, MessageBytes: s.MessageBytes, ShippedBytes: s.ShippedBytes,
			RegistryBytes: s.RegistryBytes},
	}
	if !s.Clock.IsZero() {
		n.Age = roundTenth(now.Sub(s.Clock).Seconds())
	}
	if f := s.Facts; f != nil {
		n.Facts = &inspect.Facts{Leads: f.Leads && n.Is == inspect.NodeMember,
			TimeoutMS: f.TimeoutMS, LeastMS: f.LeastMS, MostMS: f.MostMS,
			Requests: f.Requests, PerSecond: roundTenth(f.PerSecond),
			Owned: f.Owned, Parked: f.Parked, Unsettled: f.Unsettled, Quota: (*inspect.Quota)(f.Quota)}
	}
	n.Machine = (*inspect.Machine)(s.Machine)
	return n
}

func roundTenth(f float64) float64 { return math.Round(f*10) / 10 }
