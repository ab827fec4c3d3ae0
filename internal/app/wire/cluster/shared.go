package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"kumo/internal/app/admin"
	"kumo/internal/app/node"
	"kumo/internal/base/advice"
	"kumo/internal/cluster/bus/natsbus"
	"kumo/internal/cluster/catalog"
	"kumo/internal/cluster/strategy"
)

// HostedStrategies returns the strategies of crawls on servers that several crawls share.
func HostedStrategies() []string {
	return slices.DeleteFunc(Strategies(), func(s string) bool { return s == "mesh" })
}

// checkCreates rejects a strategy for a crawl whose nodes have one already.
func (o *NodeOptions) checkCreates() error {
	if o.Creates && o.Strategy+o.Splitter != "" {
		return advice.Usage("--strategy and --splitter of kumo start are for nodes that serve all crawls; the nodes here " +
			"serve only this crawl: give them to kumo node")
	}
	return nil
}

// findCrawl looks a crawl up in the catalog, or adds it if the client may. A client for reading does not wait for the
// servers for longer than its patience.
func (o *NodeOptions) findCrawl(ctx context.Context, c *natsbus.Cluster, crawl string, patience time.Duration) error {
	if patience > 0 {
		one, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		ctx = one
	}
	err := withCatalog(ctx, c, func(b *natsbus.Bus) error {
		if !o.Creates {
			_, err := catalog.Get(ctx, b, crawl)
			return err
		}
		if _, err := o.strategy(); err != nil {
			return err
		}
		is, err := catalog.Add(ctx, b, catalog.Crawl{Name: crawl, Strategy: cmp.Or(o.Strategy, "shard"),
			Splitter: o.Splitter, Added: time.Now().UTC(), By: o.By})
		if err == nil && (o.Strategy != "" && o.Strategy != is.Strategy || o.Splitter != "" && o.Splitter != is.Splitter) {
			return advice.Usage("the crawl %q has the strategy %s, which cannot change", crawl, is.Strategy)
		}
		return err
	})
	if patience > 0 && !errors.Is(err, catalog.ErrUnknown) {
		return nil // another error is reported when the crawl is read
	}
	return err
}

// withCatalog calls f with the registry that has the catalog.
func withCatalog(ctx context.Context, c *natsbus.Cluster, f func(*natsbus.Bus) error) error {
	root, err := c.Sub(ctx, "", natsbus.SubConfig{})
	if err != nil {
		return err
	}
	b, err := root.Join(controlName())
	if err == nil {
		err = f(b)
	}
	return errors.Join(err, root.Close())
}

// controlName returns a name for a client that is not a node.
func controlName() strategy.Node { return strategy.Node(fmt.Sprintf("control~%08x", rand.Uint32())) }

// ListCrawls calls f with each crawl of servers that several crawls share, by name, and with a client of it. The client
// is nil if the crawl cannot be reached, with the reason.
func ListCrawls(ctx context.Context, o NodeOptions, f func(catalog.Crawl, admin.Client, error) error) (err error) {
	o.Log, o.Listen = cmp.Or(o.Log, slog.New(slog.DiscardHandler)), ""
	cfg := o.bus("")
	cfg.Shared = true
	c, err := natsbus.Connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.Ready(ctx); err != nil {
		return err
	}
	var all []catalog.Crawl
	if err := withCatalog(ctx, c, func(b *natsbus.Bus) error {
		all, err = catalog.List(ctx, b)
		return err
	}); err != nil {
		return err
	}
	for _, crawl := range all {
		client, err := o.hostedClient(ctx, c, crawl.Name)
		if err = f(crawl, client, err); client != nil {
			err = errors.Join(err, client.Close())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hostedPatience limits the time until one of several crawls answers.
const hostedPatience = 2 * time.Second

func (o *NodeOptions) hostedClient(ctx context.Context, c *natsbus.Cluster, crawl string) (admin.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, hostedPatience)
	defer cancel()
	sub, err := c.Sub(ctx, node.CrawlWord(crawl), natsbus.SubConfig{})
	if err != nil {
		return nil, err
	}
	b, err := sub.Join(controlName())
	if err != nil {
		return nil, errors.Join(err, sub.Close())
	}
	return admin.New(admin.Config{Crawl: node.CrawlWord(crawl), Bus: b, Placement: o.placement,
		Close: func() error { return errors.Join(b.Close(), sub.Close()) }}), nil
}
