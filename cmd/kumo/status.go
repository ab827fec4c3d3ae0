package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"kumo/internal/admin"
	"kumo/internal/bus"
	"kumo/internal/inspect"
	"kumo/internal/stats"
	"kumo/internal/wire/cluster"
)

const statusLong = `Say how a crawl goes. Of one on this machine alone, in the folder that --out names: whether it runs, or how it has ended, what it
has fetched, what waits, why URLs were left out, when it ends at the earliest, and what is in the way if it stands still. --json gives report.json's
fields and what is told of a crawl that runs: see docs/forecast.md. A crawl that runs goes on undisturbed.

Of a crawl of several nodes (--crawl): what it does, and of each node what it is to the others, how many hosts it owns, what waits there,
what it fetches, which links it has for others, how much of its journal is not shipped yet, and when it was last heard of.

A node tells this every few seconds, with its lease; --json gives the same as one object, the fields of which docs/cluster.md
explains. With --watch it is shown again and again until Ctrl-C, or until the nodes end. The pages of all nodes are also those of nodes that
have gone. On a narrow terminal some columns are left out.

While too few of the cluster's servers run it shows, after 3 s, what those that run knew last, says which are away, and exits with 1.

With the strategy hub it says which node is the control unit, how many hosts each node was given, how many of them are parked because nobody
reaches them, and how long it waits for a connection to a new host. --hosts lists whose the hosts are, since when, and of those that are parked
who has failed to reach them and when they are tried again. With the strategies shard and mesh it says of hosts that are named whose they are.

With the strategy balance it says which node is the master, and of each node how many URLs it was given and has done since that began, how many it
has left, for how long by prediction, how far its last predictions were off, and by what they are made: kumo balance model --help explains.

With the strategy mesh no node knows all others: the one that is asked has them add up what they say, over a tree that their ids make, and says
how long that took and how old it is. At most 64 nodes are listed.`

const statusExample = `  kumo status -o crawls/example.com
  kumo status -o crawls/example.com --watch
  kumo status --crawl news
  kumo status --crawl news --watch
  kumo status --crawl news --json | jq .totals.pages
  kumo status --crawl news --hosts --parked
  kumo status --crawl news --hosts example.com www.example.org`

func statusCommand() *cobra.Command {
	c := &clusterFlags{}
	s, h := &statusView{}, &hostsView{}
	dir := ""
	cmd := &cobra.Command{Use: "status --out FOLDER | --crawl NAME [--hosts [HOST|DOMAIN...]]",
		Short: "Say how a crawl goes", Long: statusLong,
		Example: statusExample, DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := h.check(cmd.Flags(), args, s.watch); err != nil {
				return err
			}
			s.out, s.err = cmd.OutOrStdout(), cmd.ErrOrStderr()
			if dir != "" {
				return s.folder(cmd, dir)
			}
			if c.crawl == "" {
				return usagef("which crawl? name its folder with --out or, if it is one of several nodes, itself with --crawl")
			}
			open := c.view
			if h.on {
				open = c.control
			}
			return open(cmd.Context(), cmd.ErrOrStderr(), func(ctx context.Context, control admin.Client) error {
				if h.on {
					return h.show(cmd.Context(), s, control, c, args)
				}
				if s.watch {
					return s.follow(context.WithoutCancel(ctx), cmd.Context(), control, c.crawl)
				}
				all, err := control.Look(ctx, c.crawl)
				if err != nil {
					return cluster.Advise(err)
				}
				return errors.Join(s.show(all), cluster.Advise(control.Trouble()))
			})
		}}
	f := cmd.Flags()
	f.StringVarP(&dir, "out", "o", "", "the `FOLDER` of a crawl on this machine (needed without --crawl)")
	c.bindCommand(f)
	f.Lookup("crawl").Usage = "the `NAME` of a crawl of several nodes (needed without --out): letters, digits, - and _"
	f.BoolVarP(&s.watch, "watch", "w", false, "show it again and again")
	durationVar(f, &s.every, "every", 2*time.Second, "with --watch: this often")
	f.BoolVar(&s.json, "json", false, "answer in JSON, an object a line")
	h.bind(f)
	f.SortFlags = false
	return cmd
}

// A statusView shows a cluster.
type statusView struct {
	out   io.Writer
	err   io.Writer
	watch bool
	json  bool
	every time.Duration
	drawn int // lines on the terminal, to be drawn over
}

// follow shows the cluster until the user has seen enough, or there is nobody to ask any more.
func (s *statusView) follow(ctx, enough context.Context, control admin.Client, crawl string) error {
	tick := time.NewTicker(max(s.every, 100*time.Millisecond))
	defer tick.Stop()
	ends := false // the nodes do, as far as was seen
	for {
		one, cancel := context.WithTimeout(ctx, clusterWait)
		all, err := control.Look(one, crawl)
		cancel()
		switch {
		case err != nil && ends:
			return nil
		case errors.Is(err, bus.ErrUnavailable): // it is shown again when they are back
			fmt.Fprintf(s.err, "%s %v: too few servers answer; kumo status without --watch says which\n",
				time.Now().UTC().Format(time.TimeOnly), err)
			s.drawn = 0
		case err != nil:
			return cluster.Advise(err)
		}
		if err == nil {
			ends = all.State == "stopping" || all.State == "done"
			if err := s.show(all); err != nil {
				return err
			}
		}
		select {
		case <-enough.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s *statusView) show(all *inspect.Cluster) error {
	if s.json {
		enc := json.NewEncoder(s.out)
		enc.SetEscapeHTML(false)
		return enc.Encode(all)
	}
	width := s.width()
	var b strings.Builder
	printCluster(&b, all, width)
	return s.draw(b.String(), width)
}

// width is how many columns there are; 0: as many as are needed.
func (s *statusView) width() int {
	if isTerminal(s.out) {
		return terminalWidth()
	}
	return 0
}

// draw shows a text, over the one before if that can be.
func (s *statusView) draw(text string, width int) error {
	if s.watch && draws(s.out) {
		drawn := rows(text, width)
		if s.drawn > 0 {
			text = fmt.Sprintf("\r\x1b[%dA\x1b[J", s.drawn) + text
		}
		s.drawn = drawn
	}
	_, err := io.WriteString(s.out, text)
	return err
}

// rows is how many rows of a terminal a text takes, which breaks lines that are longer than it is wide.
func rows(text string, width int) (n int) {
	for line := range strings.Lines(text) {
		n++
		if long := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); width > 0 && long > width {
			n += (long - 1) / width
		}
	}
	return n
}

// terminalWidth is how many columns the terminal has; 0 if that is not known.
func terminalWidth() int {
	width, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 0
	}
	return width
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// draws reports whether lines may be drawn over: w is a terminal that can (TERM=dumb says that it cannot).
func draws(w io.Writer) bool { return isTerminal(w) && os.Getenv("TERM") != "dumb" }

// printCluster is a cluster for people, for a terminal of so many columns; 0: as many as it needs.
func printCluster(w io.Writer, c *inspect.Cluster, width int) {
	fmt.Fprintf(w, "%s: %s", c.Crawl, c.State)
	if c.Why != "" {
		fmt.Fprintf(w, " (%s)", c.Why)
	}
	if !c.Since.IsZero() {
		fmt.Fprintf(w, " since %s", when(c.Since))
	}
	count := len(c.Nodes)
	if g := c.Gathered; g != nil {
		count = g.Nodes
	}
	fmt.Fprintf(w, ", %d %s", count, plural(count, "node", "nodes"))
	if c.Epoch > 0 {
		fmt.Fprintf(w, ", epoch %d %s", c.Epoch, map[bool]string{true: "settled",
			false: "being settled: hosts change owner"}[c.Settled])
	}
	if hasHub(c) && c.Control != "" {
		fmt.Fprintf(w, ", %s %s", leaderWord(c.Strategy), c.Control)
	}
	if g := c.Gathered; g != nil {
		fmt.Fprintf(w, ", as %s has gathered it within %.1f s, %.0f s ago", g.By, g.Took, g.Age)
	}
	fmt.Fprintln(w)
	if c.Trouble != "" {
		fmt.Fprintf(w, "too few servers run, and nothing goes on; this is how it was %s:\n", lastHeard(c))
	}
	if line := settingsLine(c.Settings); line != "" {
		fmt.Fprintf(w, "settings: %s\n", line)
	}
	if len(c.Nodes) == 0 && c.Gone.Nodes == 0 {
		return
	}
	printNodes(w, c, width)
	if text := forecastLine(c); text != "" {
		fmt.Fprintln(w, text)
	}
	if text := placeLine(c); text != "" {
		fmt.Fprintln(w, text)
	}
	for _, note := range notes(c) {
		fmt.Fprintf(w, "note: %s\n", note)
	}
}

// placeLine is what the nodes have brought to their places, and what waits; "" if their files stay with them.
func placeLine(c *inspect.Cluster) string {
	sum, some := stats.Uploads{}, false
	for i := range c.Nodes {
		if u := c.Nodes[i].Uploads; u != nil {
			some = true
			sum.Files, sum.Bytes = sum.Files+u.Files, sum.Bytes+u.Bytes
			sum.Waiting, sum.WaitSize = sum.Waiting+u.Waiting, sum.WaitSize+u.WaitSize
		}
	}
	if !some {
		return ""
	}
	text := fmt.Sprintf("places: %s (%s)", stats.Count(sum.Files, "files"), stats.Bytes(sum.Bytes))
	if sum.Waiting > 0 {
		text += fmt.Sprintf(", and %s (%s) on the way", stats.Count(sum.Waiting, "files"), stats.Bytes(sum.WaitSize))
	}
	return text
}

// lastHeard says when a node was heard of last.
func lastHeard(c *inspect.Cluster) string {
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

// hasHub reports whether a control unit says whose hosts are.
func hasHub(c *inspect.Cluster) bool {
	return slices.ContainsFunc(c.Nodes, func(n inspect.Node) bool { return n.Facts != nil })
}

// leaderWord is what the node is called that says whose hosts are.
func leaderWord(strategy string) string {
	if strategy == admin.Balance {
		return "master"
	}
	return "control unit"
}

// A column is one of the table of nodes.
type column struct {
	head string
	of   func(n *inspect.Node) string
	sum  func(c *inspect.Cluster) string // nil: none
	// of columns that do not fit, those with the greatest number are left out first; 0: stays
	less int
}

// loadColumn is a column of what there is a sum of.
func loadColumn(head string, less int, of func(l *inspect.Load) string) column {
	return column{head, func(n *inspect.Node) string { return of(&n.Load) },
		func(c *inspect.Cluster) string { return of(&c.Totals) }, less}
}

func columns(c *inspect.Cluster) []column {
	all := []column{
		loadColumn("pages", 0, func(l *inspect.Load) string { return fmt.Sprint(l.Pages) }),
		loadColumn("/s", 0, func(l *inspect.Load) string { return fmt.Sprintf("%.1f", l.Rate) }),
		loadColumn("hosts", 3, func(l *inspect.Load) string { return fmt.Sprint(l.Hosts) }),
		loadColumn("waiting", 1, func(l *inspect.Load) string { return fmt.Sprint(l.Waiting) }),
		loadColumn("known", 4, func(l *inspect.Load) string { return fmt.Sprint(l.Known) }),
		loadColumn("outbox", 7, func(l *inspect.Load) string { return fmt.Sprint(l.Outbox) }),
		loadColumn("in flight", 6, func(l *inspect.Load) string { return fmt.Sprint(l.InFlight) }),
	}
	if c.Gathered != nil {
		return append(all, peeringColumn("level", 2, func(p *inspect.Peering) int { return p.Level }),
			peeringColumn("guests", 8, func(p *inspect.Peering) int { return p.Guests }),
			peeringColumn("peers", 5, func(p *inspect.Peering) int { return p.Peers }),
			column{"heard", heard, nil, 4})
	}
	all = append(all, loadColumn("unshipped", 8, func(l *inspect.Load) string { return stats.Bytes(l.Lag) }))
	if !hasHub(c) {
		all = append(all, column{"slot", func(n *inspect.Node) string { return slotOf(n.Slot) }, nil, 9})
	} else if c.Strategy == admin.Balance {
		all = append(all, factColumn("owned", 5, func(f *inspect.Facts) int { return f.Owned }),
			quotaColumn("given", 3, func(q *inspect.Quota) string { return fmt.Sprint(q.Given) }),
			quotaColumn("done", 3, func(q *inspect.Quota) string { return fmt.Sprint(q.Done) }),
			quotaColumn("left", 1, func(q *inspect.Quota) string { return fmt.Sprint(q.Left) }),
			quotaColumn("predicted", 0, func(q *inspect.Quota) string { return fmt.Sprintf("%.0f s", q.Predicted) }),
			quotaColumn("error", 0, quotaError),
			quotaColumn("by", 2, func(q *inspect.Quota) string { return q.Basis }))
	} else {
		all = append(all, factColumn("owned", 2, func(f *inspect.Facts) int { return f.Owned }),
			factColumn("parked", 5, func(f *inspect.Facts) int { return f.Parked }),
			column{"timeout", timeoutOf, nil, 10})
	}
	return append(all, column{"heard", heard, nil, 4})
}

// factColumn is a column of what a strategy tells; of those that are dead nothing is true any more.
func factColumn(head string, less int, of func(f *inspect.Facts) int) column {
	one := func(n *inspect.Node) string {
		if n.Facts == nil {
			return "-"
		}
		return fmt.Sprint(of(n.Facts))
	}
	return column{head, one, func(c *inspect.Cluster) string {
		sum := 0
		for i := range c.Nodes {
			if n := &c.Nodes[i]; n.Facts != nil && n.Is != inspect.NodeDead {
				sum += of(n.Facts)
			}
		}
		return fmt.Sprint(sum)
	}, less}
}

// quotaColumn is a column of what the master has told a node.
func quotaColumn(head string, less int, of func(q *inspect.Quota) string) column {
	return column{head, func(n *inspect.Node) string {
		if n.Facts == nil || n.Quota == nil {
			return "-"
		}
		return of(n.Quota)
	}, nil, less}
}

// quotaError is how far the node's last predictions were off.
func quotaError(q *inspect.Quota) string {
	if q.Error == nil {
		return "?"
	}
	return wholePercent(*q.Error)
}

// peeringColumn is a column of what a node tells where there is no centre.
func peeringColumn(head string, less int, of func(p *inspect.Peering) int) column {
	return column{head, func(n *inspect.Node) string {
		if n.Peering == nil {
			return "-"
		}
		return fmt.Sprint(of(n.Peering))
	}, nil, less}
}

func timeoutOf(n *inspect.Node) string {
	if n.Facts == nil {
		return "-"
	}
	return time.Duration(n.TimeoutMS * float64(time.Millisecond)).Round(time.Millisecond).String()
}

// printNodes is the table of nodes. Where the terminal is too narrow for it, columns are left out, and never a part of
// a name.
func printNodes(w io.Writer, c *inspect.Cluster, width int) {
	all := columns(c)
	table := nodeTable(c, all)
	for width > 0 && widest(table) > width {
		least := slices.MaxFunc(all, func(a, b column) int { return cmp.Compare(a.less, b.less) })
		if least.less == 0 {
			break
		}
		all = slices.DeleteFunc(all, func(col column) bool { return col.head == least.head })
		table = nodeTable(c, all)
	}
	_, _ = io.WriteString(w, table) // into a builder
}

func nodeTable(c *inspect.Cluster, all []column) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(cell func(column) string, name string) {
		for _, col := range all {
			fmt.Fprintf(t, "%s\t", cell(col))
		}
		fmt.Fprintf(t, "  %s\n", name)
	}
	line(func(col column) string { return col.head }, "node")
	for i := range c.Nodes {
		line(func(col column) string { return col.of(&c.Nodes[i]) }, nodeLine(&c.Nodes[i]))
	}
	if g := c.Gathered; g != nil && g.Nodes > len(c.Nodes) {
		more := g.Nodes - len(c.Nodes)
		line(func(column) string { return "" }, fmt.Sprintf("(%d %s not listed)", more, plural(more, "that is", "that are")))
	}
	if c.Gone.Nodes > 0 {
		line(func(col column) string {
			if col.head == "pages" {
				return fmt.Sprint(c.Gone.Pages)
			}
			return ""
		}, fmt.Sprintf("(%d %s gone)", c.Gone.Nodes, plural(c.Gone.Nodes, "that has", "that have")))
	}
	if len(c.Nodes)+c.Gone.Nodes > 1 {
		line(func(col column) string {
			if col.sum == nil {
				return ""
			}
			return col.sum(c)
		}, "all")
	}
	_ = t.Flush() // into a builder
	return b.String()
}

func widest(text string) (n int) {
	for line := range strings.Lines(text) {
		n = max(n, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
	}
	return n
}

func slotOf(slot int) string {
	if slot < 0 {
		return "-"
	}
	return fmt.Sprint(slot)
}

func heard(n *inspect.Node) string {
	if n.Clock.IsZero() {
		return "-"
	}
	return fmt.Sprintf("%.0fs ago", max(n.Age, 0))
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

// forecastLine is what is to be expected of the crawl: what the node says that takes longest, and whether more waits
// with each second at all nodes together.
func forecastLine(c *inspect.Cluster) string {
	var last *inspect.Node
	growth := 0.0
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if n.Forecast == "" || n.Is == inspect.NodeDead || n.Waiting == 0 {
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
	skewed = 5  // seconds that clocks may differ by
	silent = 20 // seconds after which a node that was not heard of is worth a word
)

// notes are what is out of the ordinary.
func notes(c *inspect.Cluster) (all []string) {
	versions := map[string]bool{}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if n.Version != "" {
			versions[n.Version] = true
		}
		switch {
		case n.Is == inspect.NodeLeft:
		case n.Is == inspect.NodeDead:
			all = append(all, fmt.Sprintf("%s was given up: the others take over what it had", n.Node))
		case n.Clock.IsZero():
		case n.Age < -skewed:
			all = append(all, fmt.Sprintf("the clock of %s is %.0f s ahead of this machine's: let all machines ask a time server", n.Name, -n.Age))
		case n.Age > silent && c.Trouble == "": // then nobody is heard of
			all = append(all, fmt.Sprintf("%s was not heard of for %.0f s: it is dead or cut off, or its clock is behind "+
				"this machine's", n.Name, n.Age))
		}
		if n.CutOff > 0 && n.Is != inspect.NodeDead {
			all = append(all, fmt.Sprintf("%s reaches nothing on the web for %.0f s, waits, and fetches nothing until it does: %s", n.Name, n.CutOff, n.CutOffWhy))
		}
		if n.Stalled > 0 && n.CutOff == 0 && n.Is == inspect.NodeMember {
			all = append(all, fmt.Sprintf("%s is STALLED: nothing was answered for %.0f s: %s; what to do: %s", n.Name, n.Stalled,
				n.StallWhy, n.StallDo))
		}
		if n.Uploads != nil && n.Uploads.Why != "" && n.Is != inspect.NodeDead {
			all = append(all, fmt.Sprintf("%s: place: %s", n.Name, n.Uploads.Words()))
		}
		if n.Peering != nil && n.Alone > 0 {
			all = append(all, fmt.Sprintf("%s has lost all other nodes %.0f s ago: until one answers it goes on alone", n.Name,
				n.Alone))
		}
		if n.Slips > 0 {
			all = append(all, fmt.Sprintf("%s has ended %d requests later than its lease", n.Name, n.Slips))
		}
	}
	atWork := func(n inspect.Node) bool { return n.Facts != nil && n.Is == inspect.NodeMember }
	if c.Control == "" && slices.ContainsFunc(c.Nodes, atWork) {
		all = append(all, "no node is known to be the "+leaderWord(c.Strategy)+": one of three members takes its place within seconds; "+
			"new hosts wait until then")
	}
	if g := c.Gathered; g != nil && g.Missing > 0 {
		all = append(all, fmt.Sprintf("%d %s of the space of ids: nodes that have just died, or are cut off; what they have "+
			"is not in the sums", g.Missing, plural(g.Missing, "node has not answered for its part",
			"nodes have not answered for their parts")))
	}
	if c.Gone.Again > 0 {
		all = append(all, fmt.Sprintf("%s of nodes that were lost %s fetched again: their records had not reached a place",
			stats.Count(c.Gone.Again, "pages"), stats.Either(c.Gone.Again, "is", "are")))
	}
	if len(versions) > 1 {
		all = append(all, "the nodes are of several versions of kumo: "+joined(versions))
	}
	return all
}

func joined(words map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(words)), ", ") }
