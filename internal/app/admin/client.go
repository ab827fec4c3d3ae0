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
	"kumo/internal/app/nodequery"
	"kumo/internal/base/settings"
	"kumo/internal/base/stats"
	"kumo/internal/base/weburl"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/balance/model"
	"kumo/internal/engine/seeds"
)

// A Client controls and queries a crawl of several nodes. It is not a node itself.
type Client interface {
	// As returns a client that acts for the given user, whose name the crawl's record stores with each change.
	As(by string) Client
	// Start starts the crawl with settings and seeds, or resumes it. When resuming, only the page limit may be given.
	Start(ctx context.Context, all []settings.Setting, seeds []string, files ...*seeds.File) error
	// CountKnown counts how many of the seeds the nodes already know. It may be called once.
	CountKnown(ctx context.Context, seeds []string) (node.Known, error)
	Add(ctx context.Context, seeds []string, files ...*seeds.File) error
	// Tune changes settings of a started crawl to those that f returns. f receives the current record and may be called
	// again.
	Tune(ctx context.Context, f func(desired.Record) ([]settings.Setting, error)) error
	Pause(ctx context.Context) error  // stops all fetching until Resume
	Resume(ctx context.Context) error // resumes a paused crawl
	Stop(ctx context.Context) error   // ends all nodes; Start resumes the crawl later

	// Strategy returns the nodes' strategy; the zero Strategy if no node has reported it yet.
	Strategy(ctx context.Context) (Strategy, error)
	// SetSamples supplies samples to a crawl that was not started yet. The first master starts with them.
	SetSamples(ctx context.Context, samples []model.Sample) error
	// Model returns what the crawl has learned about the nodes' fetch times, and its samples, oldest first.
	Model(ctx context.Context, crawl string, patience time.Duration) (*inspect.Model, []model.Sample, error)

	// Drain asks a member, by its identity, to hand over its hosts, to leave and to end. ForgetDrain deletes the request
	// after the node has left.
	Drain(ctx context.Context, node string) error
	ForgetDrain(ctx context.Context, node string) error
	// Servers returns the state of the cluster's servers.
	Servers(ctx context.Context) ([]Server, error)

	Record(ctx context.Context) (desired.Record, error)
	// Cluster returns the crawl's record and the state of all nodes.
	Cluster(ctx context.Context, crawl string) (*inspect.Cluster, error)
	// Owners returns the owners of hosts, Owner that of one host; nil if it has none yet. self is the identity of the
	// calling node, if it is one.
	Owners(ctx context.Context, q HostQuery) (*inspect.Owners, error)
	Owner(ctx context.Context, host, self string, patience time.Duration) (*inspect.Owned, error)

	// Links counts the links that wait until a URL's host has an owner. It receives the bus's messages, as CountKnown
	// does: one of the two may be called, once.
	Links(ctx context.Context, url string) (inspect.Links, error)

	// BlockedAll has all nodes count the pending URLs that the rules would exclude. It takes a few seconds, and
	// receives the bus's messages as CountKnown does.
	BlockedAll(ctx context.Context, rules []string) (*inspect.BlockedAll, error)

	// Search has all nodes search their full-text indexes. The caller merges the hits. It receives the bus's messages as
	// CountKnown does.
	Search(ctx context.Context, s nodequery.Search) (*nodequery.Found, error)
	// Results returns one report of all nodes that have taken part in the crawl.
	Results(ctx context.Context, crawl string) (*stats.Report, error)

	// Trouble returns the reason why the client shows an old snapshot and cannot change anything; nil in normal
	// operation.
	Trouble() error
	Close() error // closes the connection to the cluster
}

// Config configures a client of a cluster with servers.
type Config struct {
	Crawl string // the crawl's name in the cluster
	Bus   bus.Bus
	// Snapshot is the last known content of the registry, and Trouble the reason why nothing can be changed. Both are
	// nil in a healthy cluster.
	Snapshot []bus.Entry
	Trouble  error
	// Placement parses the cluster's layout, which is part of the table of members.
	Placement func(layout string) (*Placement, error)
	Servers   func(context.Context) ([]Server, error)
	Close     func() error // closes the connection to the cluster
}

// A Server is the state of a server of the cluster: see natsbus.ServerState.
type Server struct {
	Address string `json:"address"`
	Leads   bool   `json:"leads"`
	Online  bool   `json:"online"`
	Current bool   `json:"current"`
	Lag     uint64 `json:"lag"`
}

// A client works with a cluster's servers.
type client struct {
	cfg     Config
	control node.Control
}

// New returns a client of a cluster with servers. The caller closes it.
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

func (c *client) Results(ctx context.Context, crawl string) (*stats.Report, error) {
	all, _, err := c.control.Results(ctx, crawl)
	return all, err
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
	knownTimeout = 3 * time.Second // for nodes to answer
	maxKnownURLs = 20_000          // per request; each costs a disk lookup
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

// addSeedFiles adds the seeds of files in pieces. It returns the typed URLs and the first seeds of the files: adding
// known URLs again is harmless, and a non-empty result shows that the crawl has seeds.
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

// isLarge reports whether the file has seeds that are not already in the typed list.
func isLarge(f *seeds.File) bool { return f != nil && !f.Few() }

// eachSeed yields the canonical seeds; files are read on demand. An error ends the sequence and is stored in failed.
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

var errStopRead = errors.New("stop reading")

// parseSeeds returns the seeds in canonical form.
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

func (c *client) Drain(ctx context.Context, n string) error {
	return c.control.Drain(ctx, strategy.Node(n))
}

func (c *client) ForgetDrain(ctx context.Context, n string) error {
	return c.control.ForgetDrain(ctx, strategy.Node(n))
}

func (c *client) Servers(ctx context.Context) ([]Server, error) { return c.cfg.Servers(ctx) }

// countTimeout is how long nodes have to count. Each takes at most two seconds, and may be busy.
const countTimeout = 5 * time.Second

// BlockedAll has all members count the pending URLs that the rules would exclude.
func (c *client) BlockedAll(ctx context.Context, rules []string) (*inspect.BlockedAll, error) {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	query := nodequery.Query{Rules: rules}
	counts, err := c.control.QueryAll(ctx, c.cfg.Bus, c.cfg.Crawl, query.Encode())
	if err != nil {
		return nil, err
	}
	all := inspect.NewBlockedAll()
	for n, count := range counts {
		all.AddNode(n.Name(), count)
	}
	return all, nil
}

// Search has all members search their indexes.
func (c *client) Search(ctx context.Context, s nodequery.Search) (*nodequery.Found, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout+countTimeout)
	defer cancel()
	query := nodequery.Query{Search: &s}
	answers, err := c.control.QueryAll(ctx, c.cfg.Bus, c.cfg.Crawl, query.Encode())
	if err != nil {
		return nil, err
	}
	found := &nodequery.Found{}
	for n, answer := range answers {
		found.Add(n.Name(), answer)
	}
	return found, nil
}

// A registrySnapshot is the read-only content of a registry at one time.
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
