package inspect

import (
	"fmt"
	"slices"
	"time"

	"kumo/internal/base/stats"
)

// A Column is a column of the table of nodes.
type Column struct {
	Head string
	Of   func(n *Node) string
	Sum  func(c *Cluster) string // nil: no sum
	// Columns with the greatest number are dropped first if the table is too wide; 0: never.
	DropOrder int
}

func loadColumn(head string, less int, of func(l *Load) string) Column {
	return Column{head, func(n *Node) string { return of(&n.Load) },
		func(c *Cluster) string { return of(&c.Totals) }, less}
}

// Columns returns the columns of a table of nodes for the crawl's strategy.
func (c *Cluster) Columns() []Column {
	all := []Column{
		loadColumn("pages", 0, func(l *Load) string { return fmt.Sprint(l.Pages) }),
		loadColumn("/s", 0, func(l *Load) string { return fmt.Sprintf("%.1f", l.Rate) }),
		loadColumn("hosts", 3, func(l *Load) string { return fmt.Sprint(l.Hosts) }),
		loadColumn("waiting", 1, func(l *Load) string { return fmt.Sprint(l.Waiting) }),
		loadColumn("known", 4, func(l *Load) string { return fmt.Sprint(l.Known) }),
		loadColumn("outbox", 7, func(l *Load) string { return fmt.Sprint(l.Outbox) }),
		loadColumn("in flight", 6, func(l *Load) string { return fmt.Sprint(l.InFlight) }),
	}
	if c.Gathered != nil {
		return append(all, optionalColumn("backlog", 2, func(n *Node) *Peering { return n.Peering }, func(p *Peering) string {
			return fmt.Sprintf("%.0f s", p.Backlog)
		}),
			peeringColumn("guests", 8, func(p *Peering) int { return p.Guests }),
			peeringColumn("peers", 5, func(p *Peering) int { return p.Peers }), Column{"heard", lastHeard, nil, 4})
	}
	all = append(all, loadColumn("unshipped", 8, func(l *Load) string { return stats.Bytes(l.Lag) }))
	if !c.HasLeader() {
		all = append(all, Column{"slot", func(n *Node) string {
			if n.Slot < 0 {
				return "-"
			}
			return fmt.Sprint(n.Slot)
		}, nil, 9})
	} else if c.Strategy == balance {
		all = append(all, factColumn("owned", 5, func(f *Facts) int { return f.Owned }),
			quotaColumn("given", 3, func(q *Quota) string { return fmt.Sprint(q.Given) }),
			quotaColumn("done", 3, func(q *Quota) string { return fmt.Sprint(q.Done) }),
			quotaColumn("left", 1, func(q *Quota) string { return fmt.Sprint(q.Left) }),
			quotaColumn("predicted", 0, func(q *Quota) string { return fmt.Sprintf("%.0f s", q.Predicted) }),
			quotaColumn("error", 0, quotaError), quotaColumn("by", 2, func(q *Quota) string { return q.Basis }))
	} else {
		all = append(all, factColumn("owned", 2, func(f *Facts) int { return f.Owned }),
			factColumn("parked", 5, func(f *Facts) int { return f.Parked }),
			optionalColumn("timeout", 10, func(n *Node) *Facts { return n.Facts }, func(f *Facts) string {
				return milliseconds(f.TimeoutMS)
			}))
		if slices.ContainsFunc(c.Nodes, hasBounds) {
			all = append(all, optionalColumn("bounds", 11, func(n *Node) *Facts { return n.Facts }, func(f *Facts) string {
				if f.MostMS == 0 { // a node of an earlier version
					return "-"
				}
				return milliseconds(f.LeastMS) + "-" + milliseconds(f.MostMS)
			}))
		}
	}
	return append(all, Column{"heard", lastHeard, nil, 4})
}

// hasBounds reports whether a node's timeout has bounds.
func hasBounds(n Node) bool { return n.Facts != nil && n.MostMS > 0 }

func milliseconds(n float64) string {
	return time.Duration(n * float64(time.Millisecond)).Round(time.Millisecond).String()
}

// factColumn returns a column of Facts. It is empty for dead nodes, whose facts no longer hold.
func factColumn(head string, less int, of func(f *Facts) int) Column {
	one := func(n *Node) string {
		if n.Facts == nil {
			return "-"
		}
		return fmt.Sprint(of(n.Facts))
	}
	return Column{head, one, func(c *Cluster) string {
		sum := 0
		for i := range c.Nodes {
			if n := &c.Nodes[i]; n.Facts != nil && n.Is != NodeDead {
				sum += of(n.Facts)
			}
		}
		return fmt.Sprint(sum)
	}, less}
}

// optionalColumn returns a column without a sum for a part of the report that some nodes lack.
func optionalColumn[T any](head string, less int, part func(*Node) *T, of func(*T) string) Column {
	return Column{head, func(n *Node) string {
		if x := part(n); x != nil {
			return of(x)
		}
		return "-"
	}, nil, less}
}

// quotaColumn returns a column of the quota that the master assigned to a node.
func quotaColumn(head string, less int, of func(q *Quota) string) Column {
	return optionalColumn(head, less, func(n *Node) *Quota {
		if n.Facts == nil {
			return nil
		}
		return n.Quota
	}, of)
}

// quotaError returns the error of the node's recent predictions.
func quotaError(q *Quota) string {
	if q.Error == nil {
		return "?"
	}
	return fmt.Sprintf("%.0f %%", 100**q.Error)
}

// peeringColumn returns a column of Peering.
func peeringColumn(head string, less int, of func(p *Peering) int) Column {
	return optionalColumn(head, less, func(n *Node) *Peering { return n.Peering }, func(p *Peering) string {
		return fmt.Sprint(of(p))
	})
}

func lastHeard(n *Node) string {
	if n.Clock.IsZero() {
		return "-"
	}
	return fmt.Sprintf("%.0fs ago", max(n.Age, 0))
}
