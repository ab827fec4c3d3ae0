package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"kumo/internal/app/admin"
	"kumo/internal/app/inspect"
	"kumo/internal/app/wire/cluster"
	"kumo/internal/base/stats"
	"kumo/internal/cluster/bus"
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
	cmd := &cobra.Command{Use: "status FOLDER | --crawl NAME [--hosts [HOST|DOMAIN...]]",
		Short: "Say how a crawl goes", Long: statusLong,
		Example: statusExample, DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && !h.on && dir == "" && c.crawl == "" {
				dir, args = args[0], nil
			}
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
	if c.HasLeader() && c.Control != "" {
		fmt.Fprintf(w, ", %s %s", c.LeaderWord(), c.Control)
	}
	if g := c.Gathered; g != nil {
		fmt.Fprintf(w, ", as %s has gathered it within %.1f s, %.0f s ago", g.By, g.Took, g.Age)
	}
	fmt.Fprintln(w)
	if c.Trouble != "" {
		fmt.Fprintf(w, "too few servers run, and nothing goes on; this is how it was %s:\n", c.LastHeard())
	}
	if line := settingsLine(c.Settings); line != "" {
		fmt.Fprintf(w, "settings: %s\n", line)
	}
	if len(c.Nodes) == 0 && c.Gone.Nodes == 0 {
		return
	}
	printNodes(w, c, width)
	if text := c.Forecast(); text != "" {
		fmt.Fprintln(w, text)
	}
	if text := placeLine(c); text != "" {
		fmt.Fprintln(w, text)
	}
	for _, note := range c.Notes() {
		fmt.Fprintf(w, "note: %s\n", note)
	}
}

// placeLine is what the nodes have brought to their places, and what waits; "" if their files stay with them.
func placeLine(c *inspect.Cluster) string {
	sum, some := stats.Uploads{}, false
	var states placeStates
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
	text := fmt.Sprintf("places: %s (%s)", stats.Count(sum.Files, "files"), stats.Bytes(sum.Bytes))
	if sum.Waiting > 0 {
		text += fmt.Sprintf(", and %s (%s) on the way", stats.Count(sum.Waiting, "files"), stats.Bytes(sum.WaitSize))
	}
	return text + states.words()
}

// placeStates are what nodes have brought of their states to their places.
type placeStates struct {
	nodes, with int // whose states go there; that have a checkpoint there
	sum         stats.UploadedState
}

func (p *placeStates) add(s *stats.UploadedState) {
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
	p.sum.Coming, p.sum.CutBytes, p.sum.Kept = p.sum.Coming+s.Coming, p.sum.CutBytes+s.CutBytes, p.sum.Kept+s.Kept
}

func (p *placeStates) words() string {
	if p.nodes == 0 {
		return ""
	}
	text := fmt.Sprintf("\nstates: checkpoints of %d of %s", p.with, stats.Count(int64(p.nodes), "nodes"))
	if !p.sum.Last.IsZero() {
		text += ", the newest of " + stats.Span(max(time.Since(p.sum.Last), 0).Truncate(time.Second)) + " ago"
	}
	if p.sum.Coming > 0 {
		text += ", and " + stats.Bytes(p.sum.Coming) + " on the way"
	}
	return text + fmt.Sprintf("; of the journals %s cut, %s kept by the servers", stats.Bytes(p.sum.CutBytes),
		stats.Bytes(p.sum.Kept))
}

// printNodes is the table of nodes. Where the terminal is too narrow for it, columns are left out, and never a part of
// a name.
func printNodes(w io.Writer, c *inspect.Cluster, width int) {
	all := c.Columns()
	table := nodeTable(c, all)
	for width > 0 && widest(table) > width {
		least := slices.MaxFunc(all, func(a, b inspect.Column) int { return cmp.Compare(a.Less, b.Less) })
		if least.Less == 0 {
			break
		}
		all = slices.DeleteFunc(all, func(col inspect.Column) bool { return col.Head == least.Head })
		table = nodeTable(c, all)
	}
	_, _ = io.WriteString(w, table) // into a builder
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
			plural(more, "that is", "that are")))
	}
	if c.Gone.Nodes > 0 {
		line(func(col inspect.Column) string {
			if col.Head == "pages" {
				return fmt.Sprint(c.Gone.Pages)
			}
			return ""
		}, fmt.Sprintf("(%d %s gone)", c.Gone.Nodes, plural(c.Gone.Nodes, "that has", "that have")))
	}
	if len(c.Nodes)+c.Gone.Nodes > 1 {
		line(func(col inspect.Column) string {
			if col.Sum == nil {
				return ""
			}
			return col.Sum(c)
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
