package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/app/node"
	"kumo/internal/app/session/nodes"
	"kumo/internal/base/wait"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/bus/natsbus"
	"kumo/internal/cluster/catalog"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/hostlease"
	"kumo/internal/cluster/strategy"
)

// A Host is a process that runs nodes of all crawls of its cluster.
type Host struct {
	o       NodeOptions
	servers *natsbus.Cluster
	records *natsbus.Cluster // of hosts
	bus     *natsbus.Bus     // of the servers' common registry
	keeper  *hostlease.Keeper
}

// recordsName is the name of the registry with the records of hosts.
const recordsName = "hosts"

// OpenHost connects a process to servers that several crawls share, and starts its server, if it runs one, in the given
// folder. It waits for the other servers until ctx ends. Strategy and Splitter of the options are not used. The caller
// closes the host.
func OpenHost(ctx context.Context, dir string, o NodeOptions) (_ *Host, err error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	h := &Host{o: o}
	t, err := timing(o.Preset)
	if err != nil {
		return nil, err
	}
	if o.timing != nil {
		t = *o.timing
	}
	cfg := o.bus("")
	cfg.Shared, cfg.Dir = true, filepath.Join(dir, ServerDir)
	if h.servers, err = natsbus.Open(ctx, cfg); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	h.records, err = h.servers.Sub(ctx, recordsName, natsbus.SubConfig{Creates: true, MaxAge: hostlease.MaxAge})
	if err != nil {
		return nil, err
	}
	records, err := h.records.Join(strategy.Node("records~" + o.Name))
	if err != nil {
		return nil, err
	}
	if h.bus, err = h.servers.Join(strategy.Node("entries~" + o.Name)); err != nil {
		return nil, err
	}
	h.keeper = hostlease.NewKeeper(hostlease.Config{Name: o.Name,
		Timing:  hostlease.NewTiming(t.Beat, t.TTL, t.Margin, t.Retry),
		Entries: h.bus, Records: records,
		Connect: func(n strategy.Node) (bus.Messenger, error) { return h.servers.Join(n) },
		Log: func(text string, err error) {
			if err != nil {
				o.Log.Debug(text, "err", err)
			} else {
				o.Log.Info(text)
			}
		}})
	return h, nil
}

// ServerDir is the subfolder of a host's folder for the data of its server. It is not a valid name of a crawl.
const ServerDir = "cluster.data"

// Run keeps the leases of hosts until ctx ends. All crawls must end before.
func (h *Host) Run(ctx context.Context) error { return h.keeper.Run(ctx) }

// Leases returns counts of the work for leases of hosts.
func (h *Host) Leases() hostlease.Counters { return h.keeper.Counters() }

// Watch calls f with all crawls of the cluster, and with each new one, until ctx ends. f may see a crawl again.
func (h *Host) Watch(ctx context.Context, f func(catalog.Crawl)) error {
	return catalog.Watch(ctx, h.bus, f)
}

// Health returns an error if the servers are not connected, or this process's server lags behind the others.
func (h *Host) Health() error { return h.servers.Health() }

// Close ends the connection and the server.
func (h *Host) Close() error { return h.servers.Close() }

// A hosted crawl has its own registry and logs on the servers. It implements nodes.Turns.
type hosted struct {
	h     *Host
	crawl string
}

var _ nodes.Turns = (*hosted)(nil)

func (c *hosted) connect(ctx context.Context) (nodes.Connection, error) {
	sub, err := c.h.sub(ctx, c.crawl)
	if err != nil {
		return nil, err
	}
	return connection{sub}, nil
}

func (h *Host) sub(ctx context.Context, crawl string) (*natsbus.Cluster, error) {
	sub, err := h.servers.Sub(ctx, node.CrawlWord(crawl), natsbus.SubConfig{Creates: true})
	if err != nil {
		return nil, fmt.Errorf("open the crawl %q: %w", crawl, err)
	}
	return sub, nil
}

func (c *hosted) Begin(expired func()) { c.h.keeper.Activate(c.crawl, expired) }
func (c *hosted) End()                 { c.h.keeper.Deactivate(c.crawl) }
func (c *hosted) Frontiers() int       { return c.h.keeper.Frontiers() }

func (c *hosted) Acquire(host string, delay time.Duration) (func(time.Duration, bool), time.Duration) {
	l, retry := c.h.keeper.Acquire(c.crawl, host, delay)
	if !l.OK() {
		return nil, retry
	}
	return func(wait time.Duration, made bool) { c.h.keeper.End(l, wait, made) }, 0
}

// Await waits until a crawl is started. It returns at once if it runs or is paused.
func (h *Host) Await(ctx context.Context, crawl string) (err error) {
	sub, err := h.sub(ctx, crawl)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sub.Close()) }()
	b, err := sub.Join(strategy.Node(fmt.Sprintf("await~%08x", rand.Uint32())))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for {
		err := b.Watch(ctx, node.RecordKey, func(e bus.Entry) {
			if r, err := desired.Parse(e.Value); e.Key == node.RecordKey && err == nil && r.IsActive() {
				cancel(errActive)
			}
		})
		if cause := context.Cause(ctx); errors.Is(cause, errActive) {
			return nil
		} else if cause != nil {
			return cause
		}
		h.o.Log.Debug("cannot watch the crawl's record", "crawl", crawl, "err", err)
		if err := wait.For(ctx, time.Second); err != nil {
			return err
		}
	}
}

var errActive = errors.New("the crawl is active")

// OpenNode creates the process's node of a crawl. The job has the folder. The caller closes the node.
func (h *Host) OpenNode(ctx context.Context, c catalog.Crawl, j *job.Job, o NodeOptions) (Node, error) {
	o.Strategy, o.Splitter, o.host = c.Strategy, c.Splitter, &hosted{h, node.CrawlWord(c.Name)}
	return OpenNode(ctx, j, o)
}
