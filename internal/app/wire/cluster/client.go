package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"kumo/internal/app/admin"
	"kumo/internal/app/node"
	"kumo/internal/cluster/bus/natsbus"
	"kumo/internal/cluster/bus/p2p"
)

// OpenClient connects to the cluster of a crawl, and waits until it can be changed. It uses only the options for the
// connection. The caller closes the client.
func OpenClient(ctx context.Context, crawl string, o NodeOptions) (admin.Client, error) {
	return OpenView(ctx, crawl, o, 0)
}

// OpenView is OpenClient for reading. If too few servers run, the client returns the last known state after patience,
// and its Trouble returns the reason. With patience 0, it waits for the servers.
func OpenView(ctx context.Context, crawl string, o NodeOptions, patience time.Duration) (_ admin.Client, err error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Listen = "" // only nodes run servers
	if o.NATS == "" &&
		slices.ContainsFunc(o.Join, func(a string) bool { return strings.HasPrefix(a, "/") }) { // a multiaddr
		return openMesh(ctx, crawl, &o)
	}
	c, err := natsbus.Connect(ctx, o.bus(crawl))
	if err != nil {
		stranger := errors.Is(err, natsbus.ErrNotKumo) || errors.Is(err, natsbus.ErrNoAnswer)
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
	if patience == 0 {
		err = c.AwaitNodes(ctx)
	} else if err = c.CheckNodes(ctx); !errors.Is(err, natsbus.ErrNoNodes) {
		err = nil // too few servers may run
	}
	if err != nil {
		return nil, err
	}
	if c.Shared() {
		err = o.findCrawl(ctx, c, crawl, patience)
	} else {
		err = o.checkCreates()
	}
	if err != nil {
		return nil, err
	}
	cfg := admin.Config{Crawl: node.CrawlWord(crawl), Placement: o.placement,
		Servers: func(ctx context.Context) (all []admin.Server, err error) {
			states, err := c.Servers(ctx)
			for _, s := range states {
				all = append(all, admin.Server(s))
			}
			return all, err
		}}
	if cfg.Trouble, err = ready(ctx, c, patience); err != nil {
		return nil, err
	}
	b, err := c.Join(controlName())
	if err != nil {
		return nil, err
	}
	cfg.Bus, cfg.Close = b, func() error { return errors.Join(b.Close(), c.Close()) }
	if cfg.Trouble != nil {
		if cfg.Snapshot, err = c.Peek(ctx); err != nil {
			return nil, errors.Join(cfg.Trouble, err, b.Close())
		}
	}
	return admin.New(cfg), nil
}

// ready waits until the cluster can be changed. With patience, it does not wait for missing servers; trouble is then
// the reason why only an old snapshot is available.
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
		case err == nil || !late: // otherwise they may just be electing a leader
			return nil, err
		}
	}
}

// openMesh connects to a mesh crawl.
func openMesh(ctx context.Context, crawl string, o *NodeOptions) (admin.Client, error) {
	m, err := p2p.Open(p2p.Config{Name: p2p.Guest, Crawl: node.CrawlWord(crawl), Secret: o.Secret,
		Log: func(s string) { o.Log.Debug(s) }})
	if err != nil {
		return nil, err
	}
	nodes, err := m.Dial(ctx, o.Join...)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return admin.NewMesh(m, nodes, m.Close), nil
}

// isMesh reports whether a mesh node listens at one of the addresses, judging by its greeting.
func isMesh(ctx context.Context, join []string) bool {
	found := make(chan bool, len(join))
	for _, a := range join {
		go func() { found <- speaksMesh(ctx, a) }()
	}
	is := false
	for range join {
		is = <-found || is
	}
	return is
}

// greetTimeout is how long to wait for a node's greeting.
const greetTimeout = time.Second

func speaksMesh(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, greetTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	defer conn.Close()
	end, _ := ctx.Deadline()
	conn.SetDeadline(end)
	const greeting = "\x13/multistream/1.0.0\n"
	if _, err := conn.Write([]byte(greeting)); err != nil {
		return false
	}
	answer := make([]byte, len(greeting))
	for n := 0; n < len(answer); {
		k, err := conn.Read(answer[n:])
		if n += k; err != nil {
			return false
		}
	}
	return bytes.Equal(answer, []byte(greeting))
}
