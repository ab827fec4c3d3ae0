package text

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"kumo/internal/app/inspect"
	"kumo/internal/base/stats"
)

// Cluster prints a cluster for a terminal of width columns (0: no limit). settings is a line with the crawl's live
// settings, or "".
func Cluster(w io.Writer, c *inspect.Cluster, settings string, width int) {
	fmt.Fprintf(w, "%s: %s", c.Crawl, c.State)
	if c.Why != "" {
		fmt.Fprintf(w, " (%s)", c.Why)
	}
	if !c.Since.IsZero() {
		fmt.Fprintf(w, " since %s", Time(c.Since))
	}
	count := len(c.Nodes)
	if g := c.Gathered; g != nil {
		count = g.Nodes
	}
	fmt.Fprintf(w, ", %d %s", count, stats.Either(count, "node", "nodes"))
	if c.Epoch > 0 {
		fmt.Fprintf(w, ", epoch %d %s", c.Epoch, map[bool]string{true: "settled",
			false: "not settled: hosts change owner"}[c.Settled])
	}
	if c.HasLeader() && c.Control != "" {
		fmt.Fprintf(w, ", %s %s", c.LeaderWord(), c.Control)
	}
	if g := c.Gathered; g != nil {
		fmt.Fprintf(w, ", gathered by %s within %.1f s, %.0f s ago", g.By, g.Took, g.Age)
	}
	fmt.Fprintln(w)
	if c.Trouble != "" {
		fmt.Fprintf(w, "too few servers run, so the cluster is stopped; its state %s:\n", c.LastHeard())
	}
	if settings != "" {
		fmt.Fprintf(w, "settings: %s\n", settings)
	}
	if len(c.Nodes) == 0 && c.Gone.Nodes == 0 {
		return
	}
	printNodes(w, c, width)
	for _, text := range append([]string{c.Forecast(), measuresLine(c), uploadLine(c), browserLine(c)}, sinkLines(c)...) {
		if text != "" {
			fmt.Fprintln(w, text)
		}
	}
	for _, note := range c.Notes() {
		fmt.Fprintf(w, "note: %s\n", note)
	}
}

// browserLine lists the nodes with and without a browser; "" if the crawl renders no pages.
func browserLine(c *inspect.Cluster) string {
	if !c.Renders() {
		return ""
	}
	var with, without []string
	for i := range c.Nodes {
		switch n := &c.Nodes[i]; {
		case n.Is == inspect.NodeLeft || n.Is == inspect.NodeDead:
		case n.Browser != "":
			with = append(with, n.Name+" "+filepath.Base(n.Browser))
		default:
			without = append(without, n.Name)
		}
	}
	line := fmt.Sprintf("browsers: %d of %s", len(with), stats.Count(len(with)+len(without), "nodes"))
	if len(with) > 0 {
		line += " (" + strings.Join(with, ", ") + ")"
	}
	if len(without) > 0 {
		line += "; none on " + strings.Join(without, ", ") + ", which cannot take part in a crawl with --render: install " +
			"chromium there, or name the program with --browser"
	}
	return line
}

// sinkLines sums the figures of the nodes by sink.
func sinkLines(c *inspect.Cluster) (lines []string) {
	var names []string
	sums := map[string]stats.Sink{}
	for i := range c.Nodes {
		for _, s := range c.Nodes[i].Sinks {
			if !slices.Contains(names, s.Sink) {
				names = append(names, s.Sink)
			}
			sum := sums[s.Sink]
			sum.Sent, sum.Bytes, sum.Waiting = sum.Sent+s.Sent, sum.Bytes+s.Bytes, sum.Waiting+s.Waiting
			sum.Behind = max(sum.Behind, s.Behind)
			sums[s.Sink] = sum
		}
	}
	for _, name := range names {
		sum := sums[name]
		text := fmt.Sprintf("sink: %s sent to %s (%s)", stats.Count(sum.Sent, "records"), name, stats.Bytes(sum.Bytes))
		if waits := sum.Summary(); waits != "" {
			text += ", " + waits
		}
		lines = append(lines, text)
	}
	return lines
}

// measuresLine returns the measures of the crawl; "" if no node fetches.
func measuresLine(c *inspect.Cluster) string {
	if c.Measures == nil {
		return ""
	}
	return "measures: " + c.Measures.String()
}

// uploadLine sums the nodes' uploads; "" if they have no storage location.
func uploadLine(c *inspect.Cluster) string {
	sum, some := stats.Uploads{}, false
	var states uploadSums
	for i := range c.Nodes {
		if u := c.Nodes[i].Uploads; u != nil {
			some = true
			sum.Files, sum.Bytes = sum.Files+u.Files, sum.Bytes+u.Bytes
			sum.Waiting, sum.WaitSize = sum.Waiting+u.Waiting, sum.WaitSize+u.WaitSize
			states.add(u.State)
		}
	}
	if !some {
		return ""
	}
	text := fmt.Sprintf("storage: %s (%s)", stats.Count(sum.Files, "files"), stats.Bytes(sum.Bytes))
	if sum.Waiting > 0 {
		text += fmt.Sprintf(", and %s (%s) being uploaded", stats.Count(sum.Waiting, "files"),
			stats.Bytes(sum.WaitSize))
	}
	return text + states.text()
}

// uploadSums sums the uploads of the nodes' states.
type uploadSums struct {
	nodes, with int // nodes that upload their state; nodes with an uploaded checkpoint
	sum         stats.UploadedState
}

func (p *uploadSums) add(s *stats.UploadedState) {
	if s == nil {
		return
	}
	p.nodes++
	if s.Position > 0 {
		p.with++
	}
	if s.Last.After(p.sum.Last) {
		p.sum.Last = s.Last
	}
	p.sum.InTransit, p.sum.CutBytes, p.sum.Kept = p.sum.InTransit+s.InTransit, p.sum.CutBytes+s.CutBytes, p.sum.Kept+s.Kept
}

func (p *uploadSums) text() string {
	if p.nodes == 0 {
		return ""
	}
	text := fmt.Sprintf("\nstates: checkpoints of %d of %s", p.with, stats.Count(int64(p.nodes), "nodes"))
	if !p.sum.Last.IsZero() {
		text += ", the newest of " + stats.Span(max(time.Since(p.sum.Last), 0).Truncate(time.Second)) + " ago"
	}
	if p.sum.InTransit > 0 {
		text += ", and " + stats.Bytes(p.sum.InTransit) + " on the way"
	}
	return text + fmt.Sprintf("; journals: %s cut, %s kept by the servers", stats.Bytes(p.sum.CutBytes),
		stats.Bytes(p.sum.Kept))
}

// printNodes prints the table of nodes. On a narrow terminal it omits columns, and never cuts names.
func printNodes(w io.Writer, c *inspect.Cluster, width int) {
	all := c.Columns()
	table := nodeTable(c, all)
	for width > 0 && widest(table) > width {
		least := slices.MaxFunc(all, func(a, b inspect.Column) int { return cmp.Compare(a.DropOrder, b.DropOrder) })
		if least.DropOrder == 0 {
			break
		}
		all = slices.DeleteFunc(all, func(col inspect.Column) bool { return col.Head == least.Head })
		table = nodeTable(c, all)
	}
	_, _ = io.WriteString(w, table) // a Builder never fails
}

func nodeTable(c *inspect.Cluster, all []inspect.Column) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(cell func(inspect.Column) string, name string) {
		for _, col := range all {
			fmt.Fprintf(t, "%s\t", cell(col))
		}
		fmt.Fprintf(t, "  %s\n", name)
	}
	line(func(col inspect.Column) string { return col.Head }, "node")
	for i := range c.Nodes {
		line(func(col inspect.Column) string { return col.Of(&c.Nodes[i]) }, nodeLine(&c.Nodes[i]))
	}
	if g := c.Gathered; g != nil && g.Nodes > len(c.Nodes) {
		more := g.Nodes - len(c.Nodes)
		line(func(inspect.Column) string { return "" }, fmt.Sprintf("(%d %s not listed)", more,
			stats.Either(more, "that is", "that are")))
	}
	if c.Gone.Nodes > 0 {
		line(func(col inspect.Column) string {
			if col.Head == "pages" {
				return fmt.Sprint(c.Gone.Pages)
			}
			return ""
		}, fmt.Sprintf("(%d %s gone)", c.Gone.Nodes, stats.Either(c.Gone.Nodes, "that has", "that have")))
	}
	if len(c.Nodes)+c.Gone.Nodes > 1 {
		line(func(col inspect.Column) string {
			if col.Sum == nil {
				return ""
			}
			return col.Sum(c)
		}, "all")
	}
	_ = t.Flush() // a Builder never fails
	return b.String()
}

func widest(text string) (n int) {
	for line := range strings.Lines(text) {
		n = max(n, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
	}
	return n
}

// Rows returns the number of terminal rows of a text: lines longer than width wrap.
func Rows(text string, width int) (n int) {
	for line := range strings.Lines(text) {
		n++
		if long := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); width > 0 && long > width {
			n += (long - 1) / width
		}
	}
	return n
}

func nodeLine(n *inspect.Node) string {
	line := n.Name
	if n.Is != inspect.NodeMember {
		line += " (" + string(n.Is) + ")"
	}
	if n.Idle {
		line += " idle"
	}
	return line
}
