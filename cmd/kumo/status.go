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

const statusLong = `Say how a crawl goes. Of one on this machine alone, in the folder that --out names: whether it runs, or how it has ended, what it
has fetched, what waits, why URLs were left out, when it ends at the earliest, and what is in the way if it stands still. --json gives report.json's
fields and what is told of a crawl that runs: see docs/how-to/watch-a-crawl.md. A crawl that runs goes on undisturbed.

Of a crawl of several nodes (--crawl): what it does, and of each node what it is to the others, how many hosts it owns, what waits there,
what it fetches, which links it has for others, how much of its journal is not shipped yet, and when it was last heard of.

A node tells this every few seconds, with its lease; --json gives the same as one object, the fields of which docs/reference/cluster-status.md
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
		Short: "Say how a crawl goes", Long: statusLong, Example: statusExample, DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && !h.on && dir == "" && c.crawl == "" {
				dir, args = args[0], nil
			}
			if err := h.check(cmd.Flags(), args, s.watch); err != nil {
				return err
			}
			s.out, s.err = cmd.OutOrStdout(), cmd.ErrOrStderr()
			if dir != "" {
				return s.showFolder(cmd, dir)
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
				all, err := control.Cluster(ctx, c.crawl)
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
	out        io.Writer
	err        io.Writer
	watch      bool
	json       bool
	every      time.Duration
	drawnLines int // lines on the terminal, to be drawn over
}

// follow shows the cluster until the user has seen enough, or there is nobody to ask any more.
func (s *statusView) follow(ctx, enough context.Context, control admin.Client, crawl string) error {
	ends := false // the nodes do, as far as was seen
	for range wait.Ticks(enough, max(s.every, 100*time.Millisecond)) {
		one, cancel := context.WithTimeout(ctx, clusterWait)
		all, err := control.Cluster(one, crawl)
		cancel()
		switch {
		case err != nil && ends:
			return nil
		case errors.Is(err, bus.ErrUnavailable): // it is shown again when they are back
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

func (s *statusView) show(all *inspect.Cluster) error {
	if s.json {
		return text.JSON(s.out, all)
	}
	width := s.width()
	var b strings.Builder
	text.Cluster(&b, all, settingsLine(all.Settings), width)
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

// folder says how the crawl in dir goes, again and again with --watch, until it ends.
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
	return v.Running(), s.draw(b.String(), s.width())
}

type hostsView struct {
	on     bool
	parked bool
	limit  int
}

func (v *hostsView) bind(f *pflag.FlagSet) {
	f.BoolVar(&v.on, "hosts", false, "say whose hosts are: of those named, with all that are in a domain named, or of "+
		"all (strategy hub)")
	f.BoolVar(&v.parked, "parked", false, "with --hosts: only those that nobody reaches")
	f.IntVar(&v.limit, "limit", 1000, "with --hosts: list `N` at most; 0: all, of which each takes some 200 bytes of "+
		"memory here")
}

func (v *hostsView) check(given *pflag.FlagSet, args []string, watch bool) error {
	switch {
	case v.on && watch:
		return usagef("--hosts is answered once: leave --watch out")
	case v.limit < 0:
		return usagef("--limit is %d: name how many hosts to list at most, or 0 for all", v.limit)
	case v.on:
		return nil
	case len(args) > 0:
		return usagef("%q: whose a host is says kumo status --hosts %s", args[0], strings.Join(args, " "))
	case given.Changed("parked"), given.Changed("limit"):
		return usagef("--parked and --limit speak of --hosts")
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
