package inspect

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kumo/internal/base/stats"
)

// LastHeard describes when the last report of any node was received.
func (c *Cluster) LastHeard() string {
	age := -1.0
	for i := range c.Nodes {
		if n := &c.Nodes[i]; !n.Clock.IsZero() && (age < 0 || n.Age < age) {
			age = max(n.Age, 0)
		}
	}
	if age < 0 {
		return "when they still did"
	}
	return fmt.Sprintf("%.0f s ago", age)
}

// HasLeader reports whether one node assigns the hosts.
func (c *Cluster) HasLeader() bool {
	for i := range c.Nodes { // there may be many, and they are large
		if c.Nodes[i].Facts != nil {
			return true
		}
	}
	return false
}

// LeaderWord returns the strategy's name for the node that assigns the hosts.
func (c *Cluster) LeaderWord() string {
	if c.Strategy == balance {
		return "master"
	}
	return "control unit"
}

const balance = "balance"

// Forecast describes when the crawl ends, by the slowest node, and whether the queue of all nodes grows.
func (c *Cluster) Forecast() string {
	var last *Node
	growth := 0.0
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if n.Forecast == "" || n.Is == NodeDead || n.Waiting == 0 {
			continue
		}
		if growth += n.Growth; last == nil || n.EndsIn > last.EndsIn {
			last = n
		}
	}
	if last == nil || c.State != "running" {
		return ""
	}
	text := fmt.Sprintf("ends: %s (%s)", last.Forecast, last.Name)
	if len(c.Nodes) > 1 && growth >= 0.1 {
		text += fmt.Sprintf("; queue: +%.1f URLs/s (all nodes)", growth)
	}
	return text
}

const (
	maxSkew     = 5  // tolerated clock difference in seconds
	silentAfter = 20 // seconds without a report after which a node is mentioned
)

// Notes describes unusual conditions.
func (c *Cluster) Notes() (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for i := range c.Nodes {
		n := &c.Nodes[i]
		switch {
		case n.Is == NodeLeft:
		case n.Is == NodeDead:
			say("%s was declared dead: the other nodes take over its hosts", n.Node)
		case n.Clock.IsZero():
		case n.Age < -maxSkew:
			say("the clock of %s is %.0f s ahead of this machine's: synchronize the clocks of all machines (NTP)", n.Name,
				-n.Age)
		case n.IsSilent() && c.Trouble == "": // then no node is heard from
			say("no report from %s for %.0f s: it is dead or disconnected, or its clock is behind this machine's", n.Name, n.Age)
		}
		if n.CutOff > 0 && n.Is != NodeDead {
			say("%s has reached no host on the web for %.0f s, and fetches nothing until it does: %s", n.Name, n.CutOff,
				n.CutOffWhy)
		}
		if n.Stalled > 0 && n.CutOff == 0 && n.Is == NodeMember {
			say("%s is STALLED: no response for %.0f s: %s; what to do: %s", n.Name, n.Stalled, n.StallWhy,
				n.StallDo)
		}
		if n.Uploads != nil && n.Uploads.Why != "" && n.Is != NodeDead {
			say("%s: place: %s", n.Name, n.Uploads.Summary())
		}
		if n.Uploads != nil && n.Uploads.State.MissingHint() != "" && n.Is != NodeDead {
			say("%s: place: %s", n.Name, n.Uploads.State.MissingHint())
		}
		for i := range n.Sinks {
			if s := &n.Sinks[i]; s.Why != "" && n.Is != NodeDead {
				say("%s: sink %s: %s", n.Name, s.Sink, s.Summary())
			}
		}
		if n.Peering != nil && n.Alone > 0 {
			say("%s lost contact with all other nodes %.0f s ago and continues alone until one answers", n.Name, n.Alone)
		}
		if n.Slips > 0 {
			say("%s had %d requests that ended after its lease", n.Name, n.Slips)
		}
	}
	atWork := func(n Node) bool { return n.Facts != nil && n.Is == NodeMember }
	if c.Control == "" && slices.ContainsFunc(c.Nodes, atWork) {
		say("no node is known to be the %s: one of three members takes over within seconds; new hosts wait until then",
			c.LeaderWord())
	}
	if g := c.Gathered; g != nil && g.Missing > 0 {
		say("%d %s of the ID space: nodes that have just died or are disconnected; the sums do not include them",
			g.Missing, stats.Either(g.Missing, "node has not answered for its part",
				"nodes have not answered for their parts"))
	}
	if c.Gone.Again > 0 {
		say("%s of lost nodes %s fetched again: their records had not been uploaded",
			stats.Count(c.Gone.Again, "pages"), stats.Either(c.Gone.Again, "is", "are"))
	}
	if versions := c.Versions(); len(versions) > 1 {
		say("the nodes run several versions of kumo: %s", strings.Join(versions, ", "))
	}
	return all
}

// Versions returns the versions of kumo that the nodes run.
func (c *Cluster) Versions() []string {
	all := map[string]bool{}
	for i := range c.Nodes {
		if v := c.Nodes[i].Version; v != "" {
			all[v] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// IsSilent reports whether a live node has not reported for a while.
func (n *Node) IsSilent() bool {
	return !n.Clock.IsZero() && n.Age > silentAfter && n.Is != NodeLeft && n.Is != NodeDead
}
