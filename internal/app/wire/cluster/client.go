package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"kumo/internal/app/admin"
	"kumo/internal/app/node"
	"kumo/internal/cluster/bus/natsbus"
	"kumo/internal/cluster/strategy"
)

// OpenClient connects to the cluster of a crawl, and waits until it can be changed. Of the options those that lead
// there matter. The caller closes the client.
func OpenClient(ctx context.Context, crawl string, o NodeOptions) (admin.Client, error) {
	return OpenView(ctx, crawl, o, 0)
}

// OpenView is OpenClient for who only looks. If too few servers run, the client shows what those that run have after so
// long, and its Trouble says so; 0: it waits for them.
func OpenView(ctx context.Context, crawl string, o NodeOptions, patience time.Duration) (_ admin.Client, err error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Listen = ""                                                                                              // its server is a node's
	if o.NATS == "" && slices.ContainsFunc(o.Join, func(a string) bool { return strings.HasPrefix(a, "/") }) { // a multiaddr
		return openMesh(ctx, crawl, &o)
	}
	c, err := natsbus.Connect(ctx, o.bus(crawl))
	if err != nil {
		stranger := errors.Is(err, natsbus.ErrStranger) || errors.Is(err, natsbus.ErrNoAnswer)
		if o.NATS == "" && stranger && isMesh(ctx, o.Join) {
			return openMesh(ctx, crawl, &o)
		}
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	cfg := admin.Config{Crawl: node.CrawlWord(crawl), Placement: o.placement}
	if cfg.Trouble, err = ready(ctx, c, patience); err != nil {
		return nil, err
	}
	b, err := c.Join(strategy.Node(fmt.Sprintf("control~%08x", rand.Uint32())))
	if err != nil {
		return nil, err
	}
	cfg.Bus, cfg.Close = b, func() error { return errors.Join(b.Close(), c.Close()) }
	if cfg.Trouble != nil {
		if cfg.Picture, err = c.Peek(ctx); err != nil {
			return nil, errors.Join(cfg.Trouble, err, b.Close())
		}
	}
	return admin.New(cfg), nil
}

// ready waits until a cluster can be changed. With patience it does not wait for servers that are away: trouble is why
// an old picture is to be shown.
func ready(ctx context.Context, c *natsbus.Cluster, patience time.Duration) (trouble, err error) {
	if patience <= 0 {
		return nil, c.Ready(ctx)
	}
	for {
		one, cancel := context.WithTimeout(ctx, patience)
		err := c.Ready(one)
		late := one.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case errors.Is(err, natsbus.ErrNoMajority):
			return err, nil
		case err == nil || !late: // otherwise they may just elect a leader
			return nil, err
		}
	}
}
