package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"kumo/internal/seen"
	"kumo/internal/weburl"
	"kumo/internal/wire"
)

// The verbs that look into a crawl that is not running.

func explainCommand() *cobra.Command {
	cmd := lookCommand("explain URL", "Say why a URL was, or was not, crawled", cobra.ExactArgs(1),
		func(w io.Writer, c *wire.Crawl, args []string) error {
			if _, err := weburl.Parse(args[0]); err != nil {
				return usagef("%q: %v", args[0], err)
			}
			x, err := c.Explain(args[0])
			if err != nil {
				return err
			}
			return printExplanation(w, x)
		})
	cmd.Long = `Say what became of a URL in a crawl: whether it was met and when, which rule holds for it, where it waits and
what its host waits for, when it was fetched and where its record lies. The crawl must not be running.`
	cmd.Example = "  kumo explain https://example.com/a -o crawls/example.com"
	return cmd
}

func hostsCommand() *cobra.Command {
	var n int
	cmd := lookCommand("hosts", "List the hosts of a crawl where URLs wait", cobra.NoArgs, func(w io.Writer, c *wire.Crawl, _ []string) error {
		tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(tab, "waiting\thost\tnext\tfor\tfailures")
		for h, err := range c.Hosts(n) {
			if err != nil {
				return err
			}
			fmt.Fprintf(tab, "%d\t%s\t%s\t%s\t%d\n", h.Waiting, h.Key, when(h.Next), h.Why, h.Failures)
		}
		return tab.Flush()
	})
	cmd.Flags().IntVarP(&n, "number", "n", 20, "list this many, those with most URLs first")
	return cmd
}

func queueCommand() *cobra.Command {
	var n int
	cmd := lookCommand("queue HOST", "List the URLs that wait at a host", cobra.ExactArgs(1), func(w io.Writer, c *wire.Crawl, args []string) error {
		items, err := c.Queue(args[0], n)
		tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(tab, "depth\tpath\ttries\turl\tfrom")
		for _, it := range items {
			fmt.Fprintf(tab, "%d\t%s\t%d\t%s\t%s\n", it.Depth, it.Path, it.Tries, it.URL, it.From)
		}
		return errors.Join(tab.Flush(), err)
	})
	cmd.Flags().IntVarP(&n, "number", "n", 20, "list this many, 10,000 at most, in the order in which they are to be fetched")
	cmd.Long = "List the URLs that wait at a host: example.com, or example.com:8080. The crawl must not be running."
	return cmd
}

func seenCommand() *cobra.Command {
	var n int
	cmd := lookCommand("seen PREFIX", "List the known URLs that begin with a prefix", cobra.MaximumNArgs(1),
		func(w io.Writer, c *wire.Crawl, args []string) error {
			left := n
			for e, err := range c.Seen(strings.Join(args, "")) {
				if err != nil {
					return err
				}
				if left--; left < 0 {
					break
				}
				fmt.Fprintln(w, entryLine(&e))
			}
			return nil
		})
	cmd.Flags().IntVarP(&n, "number", "n", 100, "list this many, in order")
	cmd.Long = "List the URLs that a crawl has met and that begin with a prefix, each with its state, depth, status and time. The crawl must\nnot be running."
	return cmd
}

// lookCommand makes a verb that looks into the crawl that --out names.
func lookCommand(use, short string, args cobra.PositionalArgs, look func(io.Writer, *wire.Crawl, []string) error) *cobra.Command {
	var dir string
	cmd := &cobra.Command{Use: use, Short: short, Args: func(cmd *cobra.Command, given []string) error {
		if err := args(cmd, given); err != nil {
			return &usage{err}
		}
		return nil
	}}
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		c, err := openCrawl(dir)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.Close()) }()
		return look(cmd.OutOrStdout(), c, args)
	}
	cmd.Flags().StringVarP(&dir, "out", "o", "", "the crawl's `FOLDER` (needed)")
	return cmd
}

// openCrawl opens a crawl as kumo crawl -o DIR would, and does not run it.
func openCrawl(dir string) (*wire.Crawl, error) {
	if dir == "" {
		return nil, usagef("which crawl? name its folder with --out")
	}
	saved, err := wire.SavedSettings(dir)
	if err != nil {
		return nil, err
	}
	if len(saved) == 0 {
		return nil, usagef("%s: there is no crawl", dir)
	}
	o := &options{}
	flags := crawlFlags(o)
	if err := flags.Parse([]string{"--out", dir}); err != nil {
		return nil, err
	}
	if err := o.settle(flags, nil); err != nil {
		return nil, err
	}
	return wire.Open(&o.job)
}

func printExplanation(w io.Writer, x *wire.Explanation) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(tab, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	row("url", "%s", x.URL)
	switch {
	case !x.Known:
		row("known", "no: no page within reach has linked to it, or it is out of scope")
	case x.Entry.State == seen.Aside:
		row("known", "since %s, and left out so far", when(x.Entry.First))
	default:
		row("known", "since %s, at depth %d", when(x.Entry.First), x.Entry.Depth)
	}
	if x.Rule == "" {
		row("rules", "would let it in")
	} else {
		row("rules", "%s: %s", x.Rule, x.Why)
	}
	if x.Aside != nil {
		row("set aside", "by %s: %s (linked from %s); a better link may still bring it in", x.Aside.Rule, x.Aside.Why, x.Aside.From)
	}
	if x.Skipped != nil {
		row("left out", "%v by %v: %v (linked from %v)", x.Skipped["time"], x.Skipped["rule"], x.Skipped["why"], x.Skipped["from"])
	}
	if x.Waiting != nil {
		row("waits", "at place %d of %d of its host, linked from %s, tried %d times", x.Place, x.Host.Waiting, x.Waiting.From, x.Waiting.Tries)
	}
	if x.HostMet {
		row("host", "%d URLs wait; next not before %s (%s); delay %v; %d failures in a row", x.Host.Waiting, when(x.Host.Next), x.Host.Why, x.Host.Delay,
			x.Host.Failures)
	}
	if x.Page != nil {
		row("fetched", "%v, status %v, %v, %v bytes", x.Page["time"], x.Page["status"], x.Page["type"], x.Page["bytes"])
		if from := x.Page["from"]; from != "" {
			row("from", "%v, depth %v", from, x.Page["depth"])
		} else {
			row("from", "the user: it is a seed")
		}
		if x.Page["warc"] != nil {
			row("record", "%v at byte %.0f", x.Page["warc"], x.Page["offset"])
		}
	} else if x.Entry != nil && !x.Entry.Fetched.IsZero() {
		row("tried", "%s, without an answer", when(x.Entry.Fetched))
	}
	return tab.Flush()
}

func entryLine(e *seen.Entry) string {
	state := "known"
	if e.State == seen.Aside {
		state = "left out"
	}
	line := fmt.Sprintf("%s  %s, depth %d, since %s", e.URL, state, e.Depth, when(e.First))
	if !e.Fetched.IsZero() {
		line += fmt.Sprintf(", status %d at %s", e.Status, when(e.Fetched))
	}
	return line
}

func when(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }
