package ui

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"kumo/internal/app/inspect"
)

// A clusterMap is a bar with the shares of nodes, or a line with their positions.
type clusterMap struct {
	Name, Says string
	Height     int
	Bars       []bar
	Ticks      []ticks
	From, To   string
}

type bar struct {
	Tone     int
	X, Width string
	Says     string
}

// ticks are the ticks of one tone.
type ticks struct {
	Tone int
	Path string
}

// A nodeRow is a row of the table of nodes.
type nodeRow struct {
	Name, Link  string
	Is          inspect.NodeRole
	Leads, Idle bool
	Silent, Bad bool
	Tone        int
	Share       string
	Cells       []string
}

// A clusterShown is the part of a cluster's page that changes.
type clusterShown struct {
	Maps    []clusterMap
	Heads   []string
	Rows    []nodeRow
	Sums    []string
	SumName string
	Next    string
	After   string
	Events  []Event

	Gathered bool // no node knows all nodes
}

func (h *crawlPages) clusterPage(c *crawl, r *http.Request) (*filled, error) {
	x, err := c.cluster.snapshot(r.Context())
	if err != nil {
		return nil, err
	}
	return &filled{"cluster", struct {
		top
		clusterShown
		X       *clusterSnapshot
		Words   []Word
		Live    map[string]string
		Done    string
		Started bool
	}{h.out.top(c, "Cluster", "cluster"), shownCluster(r, x), x, x.words, clusterLiveValues(x.Cluster), doneText(r),
		x.State == "running" || x.State == "paused"}}, nil
}

// clusterPart serves the part of the page that a script reloads.
func (h *crawlPages) clusterPart(c *crawl, r *http.Request) (*filled, error) {
	x, err := c.cluster.snapshot(r.Context())
	if err != nil {
		return nil, err
	}
	return &filled{"clusterpart", shownCluster(r, x)}, nil
}

// shownEvents is the number of events on a page; the REST API returns all.
const shownEvents = 30

func shownCluster(r *http.Request, x *clusterSnapshot) clusterShown {
	p := clusterShown{After: r.FormValue("after"), Events: x.events[:min(shownEvents, len(x.events))],
		Maps:     mapsOf(x.Cluster),
		Gathered: x.Gathered != nil}
	columns := slices.DeleteFunc(x.Columns(), func(c inspect.Column) bool { return c.Head == "by" })
	if x.Gathered == nil {
		columns = append(columns, inspect.Column{Head: "moved here", Of: func(n *inspect.Node) string {
			return strconv.FormatInt(n.Moved, 10)
		}})
	}
	if slices.ContainsFunc(x.Nodes, func(n inspect.Node) bool { return clockOff(&n) != "–" }) {
		columns = append(columns, inspect.Column{Head: "clock off", Of: clockOff})
	}
	if len(x.Versions()) > 1 {
		columns = append(columns, inspect.Column{Head: "version", Of: func(n *inspect.Node) string {
			return cmp.Or(n.Version, "–")
		}})
	}
	for _, c := range columns {
		p.Heads = append(p.Heads, c.Head)
	}
	share := shareOf(x.Cluster)
	all := 0
	for i := range x.Nodes {
		all += share.of(&x.Nodes[i])
	}
	var some []inspect.Node
	some, p.Next = someNodes(x.Cluster, p.After, defaultNodes)
	first := slices.IndexFunc(x.Nodes, func(n inspect.Node) bool { return len(some) > 0 && n.Node == some[0].Node })
	for i := range some {
		n := &some[i]
		row := nodeRow{Name: n.Name, Link: linkOf(r, n), Is: n.Is, Idle: n.Idle,
			Leads: n.Facts != nil && n.Leads && n.Name == x.Control, Tone: tone(first + i),
			Silent: x.Trouble == "" && n.IsSilent(),
			Bad:    n.Is == inspect.NodeDead || n.CutOff > 0 || n.Stalled > 0 || n.IsSilent(), Share: percent(int64(share.of(n)),
				int64(all))}
		for _, c := range columns {
			row.Cells = append(row.Cells, c.Of(n))
		}
		p.Rows = append(p.Rows, row)
	}
	if len(x.Nodes)+x.Gone.Nodes > 1 {
		p.SumName = fmt.Sprintf("all %d", len(x.Nodes))
		if x.Gathered != nil {
			p.SumName = fmt.Sprintf("all %d", x.Gathered.Nodes)
		}
		if x.Gone.Nodes > 0 {
			p.SumName += fmt.Sprintf(", and %d gone", x.Gone.Nodes)
		}
		for _, c := range columns {
			sum := ""
			if c.Sum != nil {
				sum = c.Sum(x.Cluster)
			}
			p.Sums = append(p.Sums, sum)
		}
	}
	return p
}

const tones = 6

func tone(i int) int { return max(i, 0) % tones }

// clockOff returns by how much a node's clock is ahead of this machine's, if that is visible: its reports cannot come
// from the future.
func clockOff(n *inspect.Node) string {
	if n.Clock.IsZero() || n.Age > -1 {
		return "–"
	}
	return fmt.Sprintf("%+.0f s", -n.Age)
}

// linkOf returns the URL of a node's own page, if the node publishes it and the client can reach it. A loopback URL is
// linked only if the client used a loopback address, too.
func linkOf(r *http.Request, n *inspect.Node) string {
	u, err := url.Parse(n.Address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return ""
	}
	called := (&url.URL{Host: r.Host}).Hostname()
	if loopback(u.Hostname()) && !loopback(called) {
		return ""
	}
	return u.String()
}

func loopback(name string) bool {
	ip, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && ip.IsLoopback()
}

// A share is a quantity that is divided among nodes.
type share struct {
	name string
	of   func(*inspect.Node) int
}

func shareOf(x *inspect.Cluster) share {
	if x.HasLeader() {
		return share{"Hosts, by owner", func(n *inspect.Node) int {
			if n.Facts == nil || n.Is == inspect.NodeDead {
				return 0
			}
			return n.Owned
		}}
	}
	return share{"Hosts with pending URLs, by owner", func(n *inspect.Node) int { return n.Hosts }}
}

// mapsOf returns the maps of a cluster: shares of hosts and of pending URLs and, if owners are determined by hash, the
// positions of nodes.
func mapsOf(x *inspect.Cluster) []clusterMap {
	hosts := shareOf(x)
	all := []clusterMap{bars(x, hosts), bars(x, share{"Pending URLs, by node", func(n *inspect.Node) int {
		return n.Waiting
	}})}
	slots, leads := 1024, x.HasLeader() // or as many as are occupied
	var placed, points []float64
	for i := range x.Nodes {
		slots = max(slots, x.Nodes[i].Slot+1)
	}
	for i := range x.Nodes {
		n := &x.Nodes[i]
		at, point := -1.0, -1.0
		if n.Slot >= 0 && !leads {
			at = (float64(n.Slot) + .5) / float64(slots)
		}
		if n.Peering != nil {
			if v, err := strconv.ParseUint(n.ID[:min(len(n.ID), 16)], 16, 64); err == nil && len(n.ID) >= 16 {
				point = float64(v) / (1 << 64)
			}
		}
		placed, points = append(placed, at), append(points, point)
	}
	bySlot := line(x, fmt.Sprintf("Slots of the table of nodes, of %d: a host's hash selects one of them", slots),
		placed)
	bySlot.From, bySlot.To = "0", strconv.Itoa(slots-1)
	byID := line(x, "Identifier space: a host belongs to the nodes whose identifiers are closest to its own", points)
	byID.From, byID.To = "0000…", "ffff…"
	all = append(all, bySlot, byID)
	return slices.DeleteFunc(all, func(m clusterMap) bool { return len(m.Bars)+len(m.Ticks) == 0 })
}

const (
	maxBars      = 60
	maxDescribed = 12 // nodes in a map's description; the table has all
	maxTicks     = 500
)

func bars(x *inspect.Cluster, s share) clusterMap {
	m := clusterMap{Name: s.name, Height: 24}
	sum := 0
	var order []int
	for i := range x.Nodes {
		if n := s.of(&x.Nodes[i]); n > 0 {
			sum += n
			order = append(order, i)
		}
	}
	if sum == 0 {
		return m
	}
	if len(order) > maxBars { // the largest, in their order
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.of(&x.Nodes[b]), s.of(&x.Nodes[a])) })
		order = order[:maxBars]
		slices.Sort(order)
	}
	at, said := 0.0, []string{}
	put := func(tone int, name string, n int) {
		width := 1000 * float64(n) / float64(sum)
		words := fmt.Sprintf("%s: %s, %s", plain(name), strings.TrimSpace(percent(int64(n), int64(sum))), strconv.Itoa(n))
		m.Bars = append(m.Bars, bar{tone, fmt.Sprintf("%.1f", at), fmt.Sprintf("%.1f", max(width-1.5, 0.5)), words})
		at += width
		said = append(said, words)
	}
	rest := sum
	for _, i := range order {
		n := &x.Nodes[i]
		put(tone(i), n.Name, s.of(n))
		rest -= s.of(n)
	}
	if rest > 0 {
		put(tones-2, "others", rest)
	}
	m.Says = s.name + ". " + describeShares(said)
	return m
}

func describeShares(said []string) string {
	if len(said) > maxDescribed {
		return strings.Join(said[:maxDescribed], "; ") + fmt.Sprintf("; and %d more, in the table", len(said)-maxDescribed)
	}
	return strings.Join(said, "; ")
}

// line draws a tick for each node with a position, as a fraction of the whole.
func line(x *inspect.Cluster, name string, places []float64) clusterMap {
	m := clusterMap{Name: name, Height: 24}
	var paths [tones]strings.Builder
	var said []string
	for i, at := range places {
		if at < 0 || len(said) == maxTicks {
			continue
		}
		fmt.Fprintf(&paths[tone(i)], "M%.1f 2V22", at*1000)
		said = append(said, fmt.Sprintf("%s at %s", plain(x.Nodes[i].Name), percent(int64(at*1000), 1000)))
	}
	for i := range paths {
		if paths[i].Len() > 0 {
			m.Ticks = append(m.Ticks, ticks{i, paths[i].String()})
		}
	}
	m.Says = name + ". " + describeShares(said)
	return m
}
