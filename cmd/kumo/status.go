package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"kumo/internal/look"
	"kumo/internal/stats"
	"kumo/internal/wire"
)

const statusLong = `Say how a crawl of several nodes goes: what it does, and of each node what it is to the others, how many hosts it owns, what waits there,
what it fetches, which links it has for others, how much of its journal is not shipped yet, and when it was last heard of.

A node tells this every few seconds, with its lease; --json gives the same as one object, the fields of which docs/cluster.md
explains. With --watch it is shown again and again until Ctrl-C, or until the nodes end.

With the strategy hub it says which node is the control unit, how many hosts each node was given, how many of them are parked because nobody
reaches them, and how long it waits for a connection to a new host. --hosts lists whose the hosts are, since when, and of those that are parked
who has failed to reach them and when they are tried again. With the strategy shard it says of hosts that are named whose they are.`

const statusExample = `  kumo status --crawl news
  kumo status --crawl news --watch
  kumo status --crawl news --json | jq .totals.pages
  kumo status --crawl news --hosts --parked
  kumo status --crawl news --hosts example.com www.example.org`

func statusCommand() *cobra.Command {
	c := &clusterFlags{}
	s, h := &statusView{}, &hostsView{}
	cmd := &cobra.Command{Use: "status --crawl NAME [--hosts [HOST|DOMAIN...]]", Short: "Say how a crawl of several nodes goes", Long: statusLong,
		Example: statusExample, DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := h.check(cmd.Flags(), args, s.watch); err != nil {
				return err
			}
			s.out, s.err = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return c.control(cmd.Context(), cmd.ErrOrStderr(), func(ctx context.Context, control *wire.Control) error {
				if h.on {
					return h.show(cmd.Context(), s, control, c, args)
				}
				if s.watch {
					return s.follow(context.WithoutCancel(ctx), cmd.Context(), control, c.crawl)
				}
				all, err := control.Look(ctx, c.crawl)
				if err != nil {
					return wire.Advise(err)
				}
				return s.show(all)
			})
		}}
	f := cmd.Flags()
	c.bindCommand(f)
	f.BoolVarP(&s.watch, "watch", "w", false, "show it again and again")
	f.DurationVar(&s.every, "every", 2*time.Second, "with --watch: this often")
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
func (s *statusView) follow(ctx, enough context.Context, control *wire.Control, crawl string) error {
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
		case err != nil:
			return wire.Advise(err)
		}
		ends = all.State == "stopping" || all.State == "done"
		if err := s.show(all); err != nil {
			return err
		}
		select {
		case <-enough.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s *statusView) show(all *look.Cluster) error {
	if s.json {
		enc := json.NewEncoder(s.out)
		enc.SetEscapeHTML(false)
		return enc.Encode(all)
	}
	var b strings.Builder
	printCluster(&b, all)
	text := b.String()
	if s.watch && isTerminal(s.out) {
		text = clipped(text, terminalWidth())
		if s.drawn > 0 {
			text = fmt.Sprintf("\r\x1b[%dA\x1b[J", s.drawn) + text
		}
		s.drawn = strings.Count(b.String(), "\n")
	}
	_, err := io.WriteString(s.out, text)
	return err
}

// clipped cuts lines that a terminal would break: what is drawn over is counted in lines.
func clipped(text string, width int) string {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		if runes := []rune(line); width > 1 && len(runes) > width {
			lines[i] = string(runes[:width-2]) + "…\n"
		}
	}
	return strings.Join(lines, "")
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

// printCluster is a cluster for people.
func printCluster(w io.Writer, c *look.Cluster) {
	fmt.Fprintf(w, "%s: %s", c.Crawl, c.State)
	if c.Why != "" {
		fmt.Fprintf(w, " (%s)", c.Why)
	}
	if !c.Since.IsZero() {
		fmt.Fprintf(w, " since %s", when(c.Since))
	}
	fmt.Fprintf(w, ", %d %s", len(c.Nodes), plural(len(c.Nodes), "node", "nodes"))
	if c.Epoch > 0 {
		fmt.Fprintf(w, ", epoch %d %s", c.Epoch, map[bool]string{true: "settled", false: "being settled: hosts change owner"}[c.Settled])
	}
	hub := hasHub(c)
	if hub && c.Control != "" {
		fmt.Fprintf(w, ", control unit %s", c.Control)
	}
	fmt.Fprintln(w)
	if len(c.Nodes) == 0 {
		return
	}
	printNodes(w, c, hub)
	for _, note := range notes(c) {
		fmt.Fprintf(w, "note: %s\n", note)
	}
}

// hasHub reports whether a control unit says whose hosts are.
func hasHub(c *look.Cluster) bool {
	return slices.ContainsFunc(c.Nodes, func(n look.Node) bool { return n.Facts != nil })
}

// printNodes is the table of nodes. What their strategy has to say of them is in the columns before the last two.
func printNodes(w io.Writer, c *look.Cluster, hub bool) {
	head, own, sum := "slot", func(n *look.Node) string { return slotOf(n.Slot) }, ""
	if hub {
		head, own, sum = "owned\tparked\ttimeout", ownLine, ownSum(c)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "pages\t/s\thosts\twaiting\tknown\toutbox\tin flight\tunshipped\t%s\theard\t  node\n", head)
	for i := range c.Nodes {
		n := &c.Nodes[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t  %s\n", loadLine(n.Load), own(n), heard(n), nodeLine(n))
	}
	if len(c.Nodes) > 1 {
		fmt.Fprintf(t, "%s\t%s\t\t  %s\n", loadLine(c.Totals), sum, "all")
	}
	_ = t.Flush() // into a builder
}

// ownLine says what a node owns, and how long it waits for a host.
func ownLine(n *look.Node) string {
	if n.Facts == nil {
		return "-\t-\t-"
	}
	return fmt.Sprintf("%d\t%d\t%v", n.Owned, n.Parked, time.Duration(n.TimeoutMS*float64(time.Millisecond)).Round(time.Millisecond))
}

func ownSum(c *look.Cluster) string {
	owned, parked := 0, 0
	for i := range c.Nodes {
		if n := &c.Nodes[i]; n.Facts != nil && n.Is != look.NodeDead {
			owned, parked = owned+n.Owned, parked+n.Parked
		}
	}
	return fmt.Sprintf("%d\t%d\t", owned, parked)
}

func loadLine(l look.Load) string {
	return fmt.Sprintf("%d\t%.1f\t%d\t%d\t%d\t%d\t%d\t%s", l.Pages, l.Rate, l.Hosts, l.Waiting, l.Known, l.Outbox, l.InFlight, stats.Bytes(l.Lag))
}

func slotOf(slot int) string {
	if slot < 0 {
		return "-"
	}
	return fmt.Sprint(slot)
}

func heard(n *look.Node) string {
	if n.Clock.IsZero() {
		return "-"
	}
	return fmt.Sprintf("%.0fs ago", max(n.Age, 0))
}

func nodeLine(n *look.Node) string {
	line := n.Name
	if n.Is != look.NodeMember {
		line += " (" + string(n.Is) + ")"
	}
	if n.Idle {
		line += " idle"
	}
	return line
}

const (
	skewed = 5  // seconds that clocks may differ by
	silent = 20 // seconds after which a node that was not heard of is worth a word
)

// notes are what is out of the ordinary.
func notes(c *look.Cluster) (all []string) {
	versions := map[string]bool{}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if n.Version != "" {
			versions[n.Version] = true
		}
		switch {
		case n.Is == look.NodeLeft:
		case n.Is == look.NodeDead:
			all = append(all, fmt.Sprintf("%s was given up: the others take over what it had", n.Node))
		case n.Clock.IsZero():
		case n.Age < -skewed:
			all = append(all, fmt.Sprintf("the clock of %s is %.0f s ahead of this machine's: let all machines ask a time server", n.Name, -n.Age))
		case n.Age > silent:
			all = append(all, fmt.Sprintf("%s was not heard of for %.0f s: it is dead or cut off, or its clock is behind this machine's", n.Name, n.Age))
		}
		if n.Slips > 0 {
			all = append(all, fmt.Sprintf("%s has ended %d requests later than its lease", n.Name, n.Slips))
		}
	}
	atWork := func(n look.Node) bool { return n.Facts != nil && n.Is == look.NodeMember }
	if c.Control == "" && slices.ContainsFunc(c.Nodes, atWork) {
		all = append(all, "no node is known to be the control unit: one of three members takes its place within seconds; new hosts wait until then")
	}
	if len(versions) > 1 {
		all = append(all, "the nodes are of several versions of kumo: "+joined(versions))
	}
	return all
}

func joined(words map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(words)), ", ") }
