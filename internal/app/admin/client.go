// Package admin controls and monitors a crawl of several nodes, as a client of the cluster. It starts, stops and
// changes the crawl, and lists its nodes and the owners of hosts.
package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"kumo/internal/app/inspect"
	"kumo/internal/app/node"
	"kumo/internal/base/settings"
	"kumo/internal/base/weburl"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/strategy/balance/model"
	"kumo/internal/engine/seeds"
)

// A Client steers a crawl of several nodes, and shows it. It is no node.
type Client interface {
	// As is the client for somebody, whose name the crawl's record notes with what changes.
	As(by string) Client
	// Start lets the crawl begin with settings and seeds, or go on: then no setting may be given but the limit on pages.
	Start(ctx context.Context, all []settings.Setting, seeds []string, files ...*seeds.File) error
	// CountKnown asks the nodes which of the seeds they know already. It may be called once.
	CountKnown(ctx context.Context, seeds []string) (node.Known, error)
	Add(ctx context.Context, seeds []string, files ...*seeds.File) error
	// Tune changes settings of a crawl that was started: those that f returns, which is told the record and may be called
	// again.
	Tune(ctx context.Context, f func(desired.Record) ([]settings.Setting, error)) error
	Pause(ctx context.Context) error  // has all nodes fetch nothing until Resume
	Resume(ctx context.Context) error // has a crawl go on that is paused
	Stop(ctx context.Context) error   // has all nodes end. Start has the crawl go on later

	// Strategy is the name of the strategy that the nodes have; "" if none has said it yet.
	Strategy(ctx context.Context) (string, error)
	// SetSamples gives samples to a crawl that was not started yet: the first master begins with them.
	SetSamples(ctx context.Context, samples []model.Sample) error
	// Model is what the crawl has learnt of how long its nodes take, with the samples that it keeps, the oldest first.
	Model(ctx context.Context, crawl string, patience time.Duration) (*inspect.Model, []model.Sample, error)

	Record(ctx context.Context) (desired.Record, error)
	Cluster(ctx context.Context, crawl string) (*inspect.Cluster, error) // at the crawl's record, and all nodes
	// Owners says whose hosts are, Owner whose one host is; nil if it is nobody's yet. Self is the identity of the node
	// that asks, if it is one.
	Owners(ctx context.Context, q HostQuery) (*inspect.Owners, error)
	Owner(ctx context.Context, host, self string, patience time.Duration) (*inspect.Owned, error)

	// Links are those that wait for a URL's host to be somebody's. It receives what comes over the bus, as Known does: one
	// of them may be called, once.
	Links(ctx context.Context, url string) (inspect.Links, error)

	// BlockedAll has all nodes count what rules would leave out of what waits, within some seconds. It receives what comes
	// over the bus as Known does.
	BlockedAll(ctx context.Context, rules []string) (*inspect.BlockedAll, error)

	// Trouble is why the client shows an old picture, and nothing can be changed; nil if it does not.
	Trouble() error
	Close() error // lets the cluster go
}

// Config is what a client of a cluster with servers is made of.
type Config struct {
	Crawl string // as nodes call it
	Bus   bus.Bus
	// Snapshot is what the registry had when it was last heard of, and Trouble why nothing can be changed; nil in a cluster
	// that is as it should be.
	Snapshot []bus.Entry
	Trouble  error
	// Placement reads from the table of members how the cluster places hosts.
	Placement func(layout string) (*Placement, error)
	Close     func() error // lets the cluster go
}

// A client works with a cluster's servers.
type client struct {
	cfg     Config
	control node.Control
}

// New makes a client of a cluster with servers. The caller closes it.
func New(cfg Config) Client {
	c := &client{cfg: cfg, control: node.Control{Registry: cfg.Bus}}
	if cfg.Trouble != nil {
		c.control.Registry = newRegistrySnapshot(cfg.Snapshot)
	}
	return c
}

func (c *client) As(by string) Client {
	as := *c
	as.control.By = by
	return &as
}

func (c *client) Trouble() error { return c.cfg.Trouble }

func (c *client) Close() error { return c.cfg.Close() }

func (c *client) Start(ctx context.Context, all []settings.Setting, seeds []string, files ...*seeds.File) error {
	urls, err := c.addSeedFiles(ctx, seeds, files)
	if err != nil {
		return err
	}
	return c.control.Start(ctx, settings.Map(all), urls)
}

const (
	knownTimeout = 3 * time.Second // that nodes have to say what they know
	maxKnownURLs = 20_000          // URLs that they are asked about: each costs a look at the disk
)

func (c *client) CountKnown(ctx context.Context, seeds []string) (k node.Known, err error) {
	urls, err := parseSeeds(seeds)
	if err != nil {
		return k, err
	}
	ctx, cancel := context.WithTimeout(ctx, knownTimeout)
	defer cancel()
	asked := urls[:min(len(urls), maxKnownURLs)]
	if k, err = c.control.CountKnown(ctx, c.cfg.Bus, c.cfg.Crawl, asked); err != nil {
		return k, err
	}
	k.Unsure += len(urls) - len(asked)
	return k, nil
}

func (c *client) Links(ctx context.Context, url string) (inspect.Links, error) {
	ctx, cancel := context.WithTimeout(ctx, knownTimeout)
	defer cancel()
	l, err := c.control.CountLinks(ctx, c.cfg.Bus, c.cfg.Crawl, url)
	return inspect.Links(l), err
}

func (c *client) Add(ctx context.Context, seeds []string, files ...*seeds.File) error {
	urls, err := c.addSeedFiles(ctx, seeds, files)
	if err != nil {
		return err
	}
	return c.control.Add(ctx, urls)
}

func (c *client) Tune(ctx context.Context, f func(desired.Record) ([]settings.Setting, error)) error {
	return c.control.Tune(ctx, func(r desired.Record) (map[string][]string, error) {
		all, err := f(r)
		return settings.Map(all), err
	})
}

// addSeedFiles adds the seeds of files in pieces. It returns the typed URLs and the first seeds of the files: adding known
// URLs again is harmless, and a non-empty result shows that the crawl has seeds.
func (c *client) addSeedFiles(ctx context.Context, typed []string, files []*seeds.File) ([]string, error) {
	urls, err := parseSeeds(typed)
	if err != nil {
		return nil, err
	}
	var failed error
	if err := errors.Join(c.control.AddSeeds(ctx, eachSeed(nil, files, &failed)), failed); err != nil {
		return nil, err
	}
	for _, f := range files {
		if isLarge(f) {
			urls = append(urls, f.First[0])
		}
	}
	return urls, nil
}

// isLarge reports whether a file has seeds that are not among those that were typed.
func isLarge(f *seeds.File) bool { return f != nil && !f.Few() }

// eachSeed are seeds as all nodes understand them, those of files read as they are wanted. What goes wrong ends them,
// and is failed.
func eachSeed(urls []string, files []*seeds.File, failed *error) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, u := range urls {
			if !yield(u) {
				return
			}
		}
		for _, f := range files {
			if !isLarge(f) {
				continue
			}
			err := f.Each(0, func(seeds []weburl.URL, _ int64) error {
				for _, u := range seeds {
					if !yield(u.String()) {
						return errStopRead
					}
				}
				return nil
			})
			if err != nil {
				if !errors.Is(err, errStopRead) {
					*failed = err
				}
				return
			}
		}
	}
}

var errStopRead = errors.New("no more are wanted")

// parseSeeds are seeds as all nodes understand them.
func parseSeeds(typed []string) (urls []string, err error) {
	all, err := seeds.Parse(typed)
	for _, u := range all {
		urls = append(urls, u.String())
	}
	return urls, err
}

func (c *client) Pause(ctx context.Context) error { return c.control.Set(ctx, desired.Paused) }

func (c *client) Resume(ctx context.Context) error { return c.control.Set(ctx, desired.Running) }

func (c *client) Stop(ctx context.Context) error { return c.control.Set(ctx, desired.Stopping) }

func (c *client) Record(ctx context.Context) (desired.Record, error) {
	r, _, err := c.control.Record(ctx)
	return r, err
}

// countTimeout is how long nodes have to count: each takes two seconds at most, and may be busy.
const countTimeout = 5 * time.Second

// BlockedAll has all members count what rules would leave out.
func (c *client) BlockedAll(ctx context.Context, rules []string) (*inspect.BlockedAll, error) {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	counts, err := c.control.CountBlocked(ctx, c.cfg.Bus, c.cfg.Crawl, rules)
	if err != nil {
		return nil, err
	}
	all := inspect.NewBlockedAll()
	for n, count := range counts {
		all.AddNode(n.Name(), count)
	}
	return all, nil
}

// A picture is a registry as it was once. Nothing can be written to it.
type registrySnapshot struct{ entries []bus.Entry }

var _ bus.Registry = (*registrySnapshot)(nil)

func newRegistrySnapshot(entries []bus.Entry) *registrySnapshot {
	slices.SortFunc(entries, func(a, b bus.Entry) int { return cmp.Compare(a.Revision, b.Revision) })
	return &registrySnapshot{entries}
}

func (p *registrySnapshot) Put(_ context.Context, key string, _ []byte, _ uint64) (uint64, error) {
	return 0, fmt.Errorf("write %s: %w", key, bus.ErrUnavailable)
}

func (p *registrySnapshot) Delete(ctx context.Context, key string, rev uint64) error {
	_, err := p.Put(ctx, key, nil, rev)
	return err
}

func (p *registrySnapshot) Get(_ context.Context, key string) (bus.Entry, error) {
	for _, e := range p.entries {
		if e.Key == key {
			return e, nil
		}
	}
	return bus.Entry{}, nil
}

func (p *registrySnapshot) Watch(ctx context.Context, prefix string, f func(bus.Entry)) error {
	for _, e := range p.entries {
		if strings.HasPrefix(e.Key, prefix) {
			f(e)
		}
	}
	f(bus.Entry{})
	<-ctx.Done()
	return ctx.Err()
}
