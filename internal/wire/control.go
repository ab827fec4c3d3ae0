package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"

	"kumo/internal/bus"
	"kumo/internal/bus/natsbus"
	"kumo/internal/node"
	"kumo/internal/secret"
	"kumo/internal/strategy"
)

// NodeStatus is what a node tells of itself, and the table of it.
type NodeStatus = node.Status

// A Control steers a crawl of several nodes. It is a client of the cluster, and no node.
type Control struct {
	control node.Control
	bus     bus.Bus
	cluster *natsbus.Cluster
	secret  secret.Secret
}

// OpenControl connects to the cluster of a crawl. Of the options those that lead there matter. The caller closes it.
func OpenControl(ctx context.Context, crawl string, o NodeOptions) (_ *Control, err error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c := &Control{secret: o.Secret}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	join := o.join
	if join == nil {
		o.Listen = "" // its server is a node's
		cfg := o.bus(CrawlWord(crawl), o.Log)
		if c.cluster, err = natsbus.Open(ctx, cfg); err != nil {
			return nil, err
		}
		join = func(n strategy.Node) (bus.Bus, error) { return c.cluster.Join(n) }
	}
	if c.bus, err = join(strategy.Node(fmt.Sprintf("control~%08x", rand.Uint32()))); err != nil {
		return nil, err
	}
	c.control = node.Control{Registry: c.bus}
	return c, nil
}

// Start lets the crawl begin with settings and seeds, or go on: then no setting may be given but the limit on pages.
func (c *Control) Start(ctx context.Context, settings []Setting, seeds []string) error {
	urls, err := asURLs(seeds)
	if err != nil {
		return err
	}
	all := make(map[string][]string, len(settings))
	for _, s := range settings {
		all[s.Key] = s.Values
	}
	return c.control.Start(ctx, all, urls)
}

// Add adds seeds.
func (c *Control) Add(ctx context.Context, seeds []string) error {
	urls, err := asURLs(seeds)
	if err != nil {
		return err
	}
	return c.control.Add(ctx, urls)
}

// asURLs are seeds as all nodes understand them.
func asURLs(seeds []string) (urls []string, err error) {
	all, err := ParseSeeds(seeds)
	for _, u := range all {
		urls = append(urls, u.String())
	}
	return urls, err
}

// Pause has all nodes fetch nothing until Resume.
func (c *Control) Pause(ctx context.Context) error { return c.control.Set(ctx, node.Paused) }

// Resume has a crawl go on that is paused.
func (c *Control) Resume(ctx context.Context) error { return c.control.Set(ctx, node.Running) }

// Stop has all nodes end. Start has the crawl go on later.
func (c *Control) Stop(ctx context.Context) error { return c.control.Set(ctx, node.Stopping) }

// Status is the crawl's record, and all nodes, by name.
func (c *Control) Status(ctx context.Context) (node.Record, []NodeStatus, error) {
	r, nodes, err := c.control.Status(ctx)
	slices.SortFunc(nodes, func(a, b NodeStatus) int { return compare(string(a.Node), string(b.Node)) })
	return r, nodes, err
}

// Close ends the connection.
func (c *Control) Close() error {
	var err error
	if c.bus != nil {
		err = c.bus.Close()
	}
	if c.cluster != nil {
		err = errors.Join(err, c.cluster.Close())
	}
	return err
}
