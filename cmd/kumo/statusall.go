package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"text/tabwriter"
	"time"

	"kumo/internal/app/admin"
	"kumo/internal/app/inspect"
	"kumo/internal/app/wire/cluster"
	"kumo/internal/base/advice"
	"kumo/internal/base/wait"
	"kumo/internal/cluster/catalog"
	"kumo/internal/view/text"
)

// listCrawls shows the crawls of a cluster whose nodes take part in all of them; with --watch, until Ctrl-C.
func (s *statusView) listCrawls(ctx context.Context, c *clusterFlags) error {
	log := slog.New(slog.NewTextHandler(s.err, nil))
	o, err := c.connection(cluster.NodeOptions{}, func(text string) { log.Warn(text) })
	if err != nil {
		return err
	}
	o = c.withDefault(o, log)
	if len(c.join) == 0 && c.nats == "" {
		o.Log = slog.New(slog.DiscardHandler)
	}
	for {
		if err := s.listOnce(ctx, c, o); err != nil || !s.watch {
			return err
		}
		if wait.For(ctx, max(s.every, 100*time.Millisecond)) != nil {
			return nil
		}
	}
}

func (s *statusView) listOnce(ctx context.Context, c *clusterFlags, o cluster.NodeOptions) error {
	patience := c.wait
	if len(c.join) == 0 && c.nats == "" { // perhaps nobody runs a cluster here
		patience = min(patience, viewPatience)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "crawl\tstate\tsince\tnodes\tpages\t/s\twaiting\tstrategy")
	n := 0
	err := cluster.ListCrawls(ctx, o, func(crawl catalog.Crawl, client admin.Client, err error) error {
		n++
		var all *inspect.Cluster
		if err == nil {
			all, err = client.Cluster(ctx, crawl.Name)
		}
		switch {
		case s.json && err == nil:
			return text.JSON(s.out, all)
		case err != nil:
			fmt.Fprintf(s.err, "kumo: the crawl %q does not answer: %v\n", crawl.Name, err)
			fmt.Fprintf(t, "%s\tunknown\t\t\t\t\t\t%s\n", crawl.Name, crawl.Strategy)
			return nil
		}
		since, members := "", 0
		if !all.Since.IsZero() {
			since = text.Time(all.Since)
		}
		for i := range all.Nodes {
			if all.Nodes[i].Is == inspect.NodeMember {
				members++
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%.1f\t%d\t%s\n", crawl.Name, all.State, since, members, all.Totals.Pages,
			all.Totals.Rate, all.Totals.Waiting, crawl.Strategy)
		return nil
	})
	switch {
	case cluster.IsOtherCrawl(err):
		return advice.With(&usage{err}, "name that crawl with --crawl")
	case cluster.IsNoAnswer(err) && len(c.join) == 0 && c.nats == "":
		return usagef("which crawl? name its folder with --out or, if it has several nodes, its name with --crawl; no "+
			"cluster answers at %s", defaultAddress)
	case err != nil:
		return cluster.Advise(err)
	case s.json:
		return nil
	case n == 0:
		b.Reset()
		b.WriteString("no crawls yet: kumo start --crawl NAME URL adds one\n")
	default:
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return s.draw(b.String(), s.width())
}
