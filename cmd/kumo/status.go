package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"kumo/internal/app/admin"
	"kumo/internal/app/inspect"
	"kumo/internal/app/job"
	"kumo/internal/app/wire/cluster"
	"kumo/internal/base/settings"
	"kumo/internal/base/wait"
	"kumo/internal/cluster/bus"
	"kumo/internal/view/text"
)

const statusLong = `Show the state of a crawl. For a crawl on this machine, in the folder named by --out: whether it
runs, or how it ended, fetched pages, pending URLs, reasons for exclusion, the earliest end, and
the cause if it stalls. --json prints the fields of report.json and those of a running crawl: see
docs/how-to/watch-a-crawl.md. A running crawl is not disturbed.

For a crawl of several nodes (--crawl): the state of the crawl, and for each node its role, its
number of hosts and pending URLs, its rate, links for other nodes, the size of its unshipped journal,
and the time of its last report.

A node reports every few seconds, with its lease; --json prints the reports as one object, described
in docs/reference/cluster-status.md. With --watch the status is updated until Ctrl-C, or until the
nodes end. Totals include nodes that have left. A narrow terminal shows fewer columns.

When all nodes have ended, --crawl prints their last report, if the nodes' folders are on this
machine, below crawls; so does --out with a node's folder.

If too few of the cluster's servers run, the last known state is shown after 3 s, with the missing
servers, and the exit code is 1.

Without --crawl and --out it lists the crawls of a cluster whose nodes take part in all crawls (kumo node
without --crawl); --json prints the object of each.

With strategy hub it shows which node is the control unit, how many hosts each node was given, how
many of them are parked because no node reaches them, and the connection timeout for new hosts.
--hosts lists the owners of hosts, since when, and for parked hosts the nodes that failed to reach
them and the time of the next attempt. With strategies shard and mesh it lists the owners of the
hosts named.

With strategy balance it shows which node is the master, and for each node how many URLs it was given
and has done since the master started, how many are left, the predicted time for them, the error of
the last predictions, and their basis: see kumo balance model --help.

With strategy mesh no node knows all others: the queried node collects the reports over a tree of
nodes, and shows how long that took and how old they are. At most 64 nodes are listed.`

const statusExample = `  kumo status -o crawls/example.com
  kumo status -o crawls/example.com --watch
  kumo status
  kumo status --crawl news
  kumo status --crawl news --watch
  kumo status --crawl news --json | jq .totals.pages
  kumo status --crawl news --report
  kumo status --crawl news --hosts --parked
  kumo status --crawl news --hosts example.com www.example.org`

func statusCommand() *cobra.Command {
	c := &clusterFlags{}
	s, h := &statusView{}, &hostsView{}
	dir := ""
	cmd := &cobra.Command{Use: "status [FOLDER | --crawl NAME [--hosts [HOST|DOMAIN...]]]",
		Short: "Show the state of a crawl", Long: statusLong, Example: statusExample, DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && !h.on && dir == "" && c.crawl == "" {
				dir, args = args[0], nil
			}
			if err := h.check(cmd.Flags(), args, s.watch); err != nil {
				return err
			}
			if s.report && (s.watch || h.on || dir != "") {
				return usagef("--report is for --crawl, without --watch and --hosts; a crawl on one machine has report.json")
			}
			s.out, s.err = cmd.OutOrStdout(), cmd.ErrOrStderr()
			if dir != "" {
				return s.showFolder(cmd, dir)
			}
			switch {
			case c.crawl == "" && h.on:
				return usagef("which crawl? --hosts needs the name of one, with --crawl")
			case c.crawl == "" && s.report:
				return usagef("which crawl? --report needs the name of one, with --crawl")
			}
			if c.crawl == "" {
				return s.listCrawls(cmd.Context(), c)
			}
			open := c.view
			if h.on {
				open = c.control
			}
			if !h.on && !s.watch && !cmd.Flags().Changed("wait") {
				if _, last, err := nodeFolders(crawlsDir, c.crawl); err == nil && last != nil {
					c.wait = min(c.wait, viewPatience) // the crawl has probably ended
				}
			}
			err := open(cmd.Context(), cmd.ErrOrStderr(), func(ctx context.Context, control admin.Client) error {
				if s.report {
					return s.showReport(ctx, control, c.crawl)
				}
				if h.on {
					return h.show(cmd.Context(), s, control, c, args)
				}
				if s.watch {
					return s.follow(context.WithoutCancel(ctx), cmd.Context(), control, c.crawl)
				}
				all, err := control.Cluster(ctx, c.crawl)
				if err != nil {
					return cluster.Advise(err)
				}
				return errors.Join(s.show(all), cluster.Advise(control.Trouble()))
			})
			if cluster.IsNoAnswer(err) && !h.on && !s.watch {
				if found, readErr := s.showEnded(c.crawl); found || readErr != nil {
					return readErr
				}
			}
			return err
		}}
	f := cmd.Flags()
	f.StringVarP(&dir, "out", "o", "", "the `FOLDER` of a crawl on this machine")
	c.bindCommand(f)
	f.Lookup("crawl").Usage = "the `NAME` of a crawl of several nodes: letters, digits, - and _"
	f.BoolVarP(&s.watch, "watch", "w", false, "show it continuously")
	durationVar(f, &s.every, "every", 2*time.Second, "with --watch: update interval")
	f.BoolVar(&s.report, "report", false, "with --crawl: print one report of all nodes, also of those that have gone")
	f.BoolVar(&s.json, "json", false, "print JSON, one object per line")
	h.bind(f)
	f.SortFlags = false
	return cmd
}

// A statusView prints the status of a crawl.
type statusView struct {
	out        io.Writer
	err        io.Writer
	watch      bool
	json       bool
	report     bool
	every      time.Duration
	drawnLines int // lines on the terminal to overwrite
}

// follow shows the cluster until the user interrupts it, or until there are no nodes left to ask.
func (s *statusView) follow(ctx, enough context.Context, control admin.Client, crawl string) error {
	ends := false // whether the nodes are ending, as far as seen
	for range wait.Ticks(enough, max(s.every, 100*time.Millisecond)) {
		one, cancel := context.WithTimeout(ctx, clusterWait)
		all, err := control.Cluster(one, crawl)
		cancel()
		switch {
		case err != nil && ends:
			return nil
		case errors.Is(err, bus.ErrUnavailable): // it is shown again when the servers are back
			fmt.Fprintf(s.err, "%s %v: too few servers answer; kumo status without --watch says which\n",
				time.Now().UTC().Format(time.TimeOnly), err)
			s.drawnLines = 0
		case err != nil:
			return cluster.Advise(err)
		}
		if err == nil {
			ends = all.State == "stopping" || all.State == "done"
			if err := s.show(all); err != nil {
				return err
			}
		}
	}
	return nil
}

// showReport prints one report of all nodes.
func (s *statusView) showReport(ctx context.Context, control admin.Client, crawl string) error {
	r, err := control.Results(ctx, crawl)
	if err != nil {
		return cluster.Advise(err)
	}
	if s.json {
		return text.JSON(s.out, r)
	}
	r.Print(s.out)
	return cluster.Advise(control.Trouble())
}

func (s *statusView) show(all *inspect.Cluster) error {
	if s.json {
		return text.JSON(s.out, all)
	}
	width := s.width()
	var b strings.Builder
	text.Cluster(&b, all, settingsLine(all.Settings), width)
	return s.draw(b.String(), width)
}

// width returns the number of columns; 0: unlimited.
func (s *statusView) width() int {
	if isTerminal(s.out) {
		return terminalWidth()
	}
	return 0
}

// draw prints a text, in place of the previous one if possible.
func (s *statusView) draw(shown string, width int) error {
	if s.watch && draws(s.out) {
		drawn := text.Rows(shown, width)
		if s.drawnLines > 0 {
			shown = fmt.Sprintf("\r\x1b[%dA\x1b[J", s.drawnLines) + shown
		}
		s.drawnLines = drawn
	}
	_, err := io.WriteString(s.out, shown)
	return err
}

// terminalWidth returns the number of columns of the terminal; 0 if unknown.
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

// draws reports whether lines can be overwritten: w is a terminal, and TERM is not "dumb".
func draws(w io.Writer) bool { return isTerminal(w) && os.Getenv("TERM") != "dumb" }

// showFolder prints the status of the crawl in dir; with --watch, repeatedly until the crawl ends.
func (s *statusView) showFolder(cmd *cobra.Command, dir string) error {
	if err := (&localCrawl{dir}).check(cmd.Flags()); err != nil {
		return err
	}
	ctx := cmd.Context()
	for {
		running, err := s.print(ctx, dir)
		if err != nil || !running || !s.watch {
			return err
		}
		if wait.For(ctx, max(s.every, 100*time.Millisecond)) != nil {
			return nil
		}
	}
}

func (s *statusView) print(ctx context.Context, dir string) (running bool, err error) {
	v, err := openView(ctx, dir)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	x, err := v.Status(ctx)
	if err != nil {
		return false, err
	}
	if s.json {
		return v.Running(), text.JSON(s.out, x)
	}
	var b strings.Builder
	text.Status(&b, x, dir)
	if !v.Running() {
		if err := printResults(&b, dir); err != nil {
			return false, err
		}
	}
	return v.Running(), s.draw(b.String(), s.width())
}

type hostsView struct {
	on     bool
	parked bool
	limit  int
}

func (v *hostsView) bind(f *pflag.FlagSet) {
	f.BoolVar(&v.on, "hosts", false, "list the owners of hosts: of those named, with all hosts in a domain named, or of "+
		"all (strategy hub)")
	f.BoolVar(&v.parked, "parked", false, "with --hosts: only hosts that no node reaches")
	f.IntVar(&v.limit, "limit", 1000, "with --hosts: list at most `N`; 0: all, each takes some 200 bytes of "+
		"memory here")
}

func (v *hostsView) check(given *pflag.FlagSet, args []string, watch bool) error {
	switch {
	case v.on && watch:
		return usagef("--hosts is answered once: remove --watch")
	case v.limit < 0:
		return usagef("--limit is %d: name how many hosts to list at most, or 0 for all", v.limit)
	case v.on:
		return nil
	case len(args) > 0:
		return usagef("%q: to see the owner of a host, run kumo status --hosts %s", args[0], strings.Join(args, " "))
	case given.Changed("parked"), given.Changed("limit"):
		return usagef("--parked and --limit need --hosts")
	}
	return nil
}

func (v *hostsView) show(ctx context.Context, s *statusView, control admin.Client, c *clusterFlags,
	args []string) error {
	q := admin.HostQuery{Parked: v.parked, Limit: v.limit, Patience: c.wait}
	for _, a := range args {
		host, err := hostArg(a)
		if err != nil {
			return err
		}
		q.Names = append(q.Names, host)
	}
	r, err := control.Record(ctx)
	if err != nil {
		return cluster.Advise(err)
	}
	q.Slices = job.SlicesOf(settings.FromMap(r.Settings))
	all, err := control.Owners(ctx, q)
	if err != nil {
		return cluster.Advise(err)
	}
	if s.json {
		err = text.OwnersJSON(s.out, all)
	} else {
		err = text.Owners(s.out, all)
	}
	for _, note := range text.OwnerNotes(all) {
		fmt.Fprintf(s.err, "kumo: %s\n", note)
	}
	return err
}
