package natsbus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"kumo/internal/cluster/bus"
)

// Servers are those of one crawl, or shared by any number of crawls. Each crawl of shared servers has its own subjects
// and streams; Sub opens them. The registry of the shared servers themselves has the name sharedName.

// sharedName takes the place of a crawl's name in the login, the streams and the subjects of shared servers. It is not
// a valid name of a crawl.
const sharedName = "~all"

// owner returns the crawl that the servers belong to, or sharedName.
func (c *Config) owner() string {
	if c.Shared {
		return sharedName
	}
	return c.Crawl
}

// Shared reports whether the servers serve any number of crawls.
func (c *Cluster) Shared() bool { return c.cfg.Shared }

// findShared finds out whether an existing NATS deployment has shared streams and none of the crawl. known reports
// whether it has any of them.
func (c *Cluster) findShared(ctx context.Context) (known bool, err error) {
	if c.cfg.NATS == "" || !c.adopts || c.cfg.Shared {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timings.Request)
	defer cancel()
	for _, name := range []string{c.names.registry().name, names{sharedName}.registry().name} {
		_, err := c.js.Stream(ctx, name)
		if err == nil {
			c.cfg.Shared = name != c.names.registry().name
			return true, nil
		}
		if !errors.Is(err, jetstream.ErrStreamNotFound) {
			return false, err
		}
	}
	return false, nil
}

// AwaitNodes waits until an existing NATS deployment has the streams of the crawl, or shared ones. The first node
// creates them: if a client did, the crawl would have streams of its own before a node can make them shared, and nodes
// of all crawls would never find it.
func (c *Cluster) AwaitNodes(ctx context.Context) error {
	return c.retry(ctx, func() error { return c.CheckNodes(ctx) })
}

// CheckNodes is AwaitNodes without waiting: if there are no streams, the error is ErrNoNodes.
func (c *Cluster) CheckNodes(ctx context.Context) error {
	known, err := c.findShared(ctx)
	switch {
	case lacksJetStream(err):
		return permanentError{&AddressError{c.conn.ConnectedUrlRedacted(), ErrNoJetStream}}
	case err != nil:
		return withDescription(err)
	case !known:
		return &AddressError{redacted(c.cfg.NATS), ErrNoNodes}
	}
	c.creates = c.creates && !c.cfg.Shared
	return nil
}

// SubConfig configures a Sub.
type SubConfig struct {
	// Creates creates the streams if they do not exist; otherwise Sub waits until a node has created them.
	Creates bool
	// MaxAge deletes a value of the registry that was not written for this time. Then the registry cannot be watched,
	// and there are no logs. 0: values stay.
	MaxAge time.Duration
}

// Sub returns a cluster with its own registry, logs and messages on the same servers: a crawl of shared servers by its
// name, or their common part with the name "". It uses the connection of c, and ends with it. The caller closes it.
func (c *Cluster) Sub(ctx context.Context, name string, s SubConfig) (*Cluster, error) {
	cfg := c.cfg
	if cfg.Crawl = name; name == "" {
		cfg.Crawl = sharedName
	} else if s.MaxAge > 0 {
		cfg.Crawl = sharedName + "-" + name
	}
	sub := &Cluster{cfg: cfg, names: names{cfg.Crawl}, server: c.server, conn: c.conn, js: c.js, parent: c,
		maxAge: s.MaxAge, creates: s.Creates && (c.server != nil || cfg.NATS != "")}
	sub.ctx, sub.end = context.WithCancel(c.ctx)
	if err := sub.makeStreams(ctx); err != nil {
		return nil, errors.Join(err, sub.Close())
	}
	return sub, nil
}

// tryAgingStream creates the registry of a Sub with a maximum age, and writes to it.
func (c *Cluster) tryAgingStream(ctx context.Context) error {
	s := c.streamConfig(c.names.registry().name, c.names.allRegistry())
	s.MaxMsgsPerSubject, s.MaxAge = 1, c.maxAge
	if err := c.makeStream(ctx, s); err != nil {
		return fmt.Errorf("make %s: %w", s.Name, err)
	}
	if _, err := c.mark(ctx, c.names.registry()); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// errNoWatch is returned by Watch of a Sub with a maximum age.
var errNoWatch = fmt.Errorf("watch: values that expire cannot be watched: %w", bus.ErrClosed)
