package main

import (
	"context"
	"log/slog"

	"kumo/internal/app/admin"
	"kumo/internal/app/inspect"
	"kumo/internal/app/wire/cluster"
)

// source returns the source for a web page of a crawl of several nodes. It connects like the commands for that crawl.
func (c *clusterFlags) source(log *slog.Logger) (inspect.ClusterSource, error) {
	o, err := c.resolveServers(log)
	if err != nil {
		return nil, err
	}
	opening := func(open opener) func(context.Context) (admin.Client, error) {
		return func(ctx context.Context) (admin.Client, error) {
			ctx, cancel := context.WithTimeout(ctx, clusterWait)
			defer cancel()
			client, err := open(ctx, c.crawl, o)
			if err != nil {
				return nil, c.adviseUnreachable(err, &o)
			}
			return client, nil
		}
	}
	return admin.NewSource(admin.SourceConfig{Crawl: c.crawl, View: opening(viewing), Open: opening(cluster.OpenClient),
		Check: checkChanges}), nil
}

// source returns the source for the crawl of a node. It connects like the node.
func (n *nodeRunner) source(log *slog.Logger, one cluster.Node) (inspect.ClusterSource, error) {
	c := n.clusterFlags
	if n.nats == "" && n.listen != "" && !cluster.IsMesh(n.place) {
		c.join = append([]string{n.listen}, n.join...)
	}
	if a, may := one.(interface{ Addresses() []string }); may {
		c.join = append(a.Addresses(), n.join...)
	}
	return c.source(slog.New(errorsOnly{log.Handler()}))
}

// errorsOnly suppresses repeated connection messages of a page that polls the cluster.
type errorsOnly struct{ slog.Handler }

func (h errorsOnly) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelError && h.Handler.Enabled(ctx, l)
}
