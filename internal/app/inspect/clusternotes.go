package inspect

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kumo/internal/base/stats"
)

// LastHeard says when a node was heard of last.
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

// HasLeader reports whether one node says whose hosts are.
func (c *Cluster) HasLeader() bool {
	for i := range c.Nodes { // there may be many, and they are large
		if c.Nodes[i].Facts != nil {
			return true
		}
	}
	return false
}

// LeaderWord is what the node is called that says whose hosts are.
func (c *Cluster) LeaderWord() string {
	if c.Strategy == balance {
		return "master"
	}
	return "control unit"
}

const balance = "balance"

// Forecast is what is to be expected of the crawl: what the node says that takes longest, and whether more waits
// with each second at all nodes together.
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
		text += fmt.Sprintf("; of all nodes %.1f URLs a second more wait", growth)
	}
	return text
}

const (
	maxSkew     = 5  // seconds that clocks may differ by
	silentAfter = 20 // seconds after which a node that was not heard of is worth a word
)

// Notes are what is out of the ordinary.
func (c *Cluster) Notes() (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for i := range c.Nodes {
		n := &c.Nodes[i]
		switch {
		case n.Is == NodeLeft:
		case n.Is == NodeDead:
			say("%s was given up: the others take over what it had", n.Node)
		case n.Clock.IsZero():
		case n.Age < -maxSkew:
			say("the clock of %s is %.0f s ahead of this machine's: let all machines ask a time server", n.Name, -n.Age)
		case n.IsSilent() && c.Trouble == "": // then nobody is heard of
			say("%s was not heard of for %.0f s: it is dead or cut off, or its clock is behind this machine's", n.Name, n.Age)
		}
		if n.CutOff > 0 && n.Is != NodeDead {
			say("%s reaches nothing on the web for %.0f s, waits, and fetches nothing until it does: %s", n.Name, n.CutOff,
				n.CutOffWhy)
		}
		if n.Stalled > 0 && n.CutOff == 0 && n.Is == NodeMember {
			say("%s is STALLED: nothing was answered for %.0f s: %s; what to do: %s", n.Name, n.Stalled, n.StallWhy,
				n.StallDo)
		}
		if n.Uploads != nil && n.Uploads.Why != "" && n.Is != NodeDead {
			say("%s: place: %s", n.Name, n.Uploads.Summary())
		}
		if n.Uploads != nil && n.Uploads.State.MissingHint() != "" && n.Is != NodeDead {
			say("%s: place: %s", n.Name, n.Uploads.State.MissingHint())
		}
		if n.Peering != nil && n.Alone > 0 {
			say("%s has lost all other nodes %.0f s ago: until one answers it goes on alone", n.Name, n.Alone)
		}
		if n.Slips > 0 {
			say("%s has ended %d requests later than its lease", n.Name, n.Slips)
		}
	}
	atWork := func(n Node) bool { return n.Facts != nil && n.Is == NodeMember }
	if c.Control == "" && slices.ContainsFunc(c.Nodes, atWork) {
		say("no node is known to be the %s: one of three members takes its place within seconds; new hosts wait until then",
			c.LeaderWord())
	}
	if g := c.Gathered; g != nil && g.Missing > 0 {
		say("%d %s of the space of ids: nodes that have just died, or are cut off; what they have is not in the sums",
			g.Missing, stats.Either(g.Missing, "node has not answered for its part",
				"nodes have not answered for their parts"))
	}
	if c.Gone.Again > 0 {
		say("%s of nodes that were lost %s fetched again: their records had not reached a place",
			stats.Count(c.Gone.Again, "pages"), stats.Either(c.Gone.Again, "is", "are"))
	}
	if versions := c.Versions(); len(versions) > 1 {
		say("the nodes are of several versions of kumo: %s", strings.Join(versions, ", "))
	}
	return all
}

// Versions are those of kumo that the nodes are of.
func (c *Cluster) Versions() []string {
	all := map[string]bool{}
	for i := range c.Nodes {
		if v := c.Nodes[i].Version; v != "" {
			all[v] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// IsSilent reports whether a node that should be was not heard of for a while.
func (n *Node) IsSilent() bool {
	return !n.Clock.IsZero() && n.Age > silentAfter && n.Is != NodeLeft && n.Is != NodeDead
}
