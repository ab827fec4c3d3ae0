package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"kumo/internal/bus"
	"kumo/internal/bus/natsbus"
	"kumo/internal/node"
	"kumo/internal/secret"
	"kumo/internal/seeds"
	"kumo/internal/settings"
	"kumo/internal/strategy"
	"kumo/internal/weburl"
)

// NodeStatus is what a node tells of itself, and the table of it.
type NodeStatus = node.Status

// A Control steers a crawl of several nodes. It is a client of the cluster, and no node.
type Control struct {
	crawl   string // as nodes call it
	control node.Control
	bus     bus.Bus
	cluster *natsbus.Cluster
	secret  secret.Secret
	trouble error // why nothing can be changed; nil in a cluster that is as it should be
}

// OpenControl connects to the cluster of a crawl, and waits until it can be changed. Of the options those that lead
// there matter. The caller closes it.
func OpenControl(ctx context.Context, crawl string, o NodeOptions) (*Control, error) {
	return openControl(ctx, crawl, o, 0)
}

// OpenView is OpenControl for who only looks. If too few servers run, the control shows what those that run have after
// so long; Trouble says so.
func OpenView(ctx context.Context, crawl string, o NodeOptions, patience time.Duration) (*Control, error) {
	return openControl(ctx, crawl, o, patience)
}

func openControl(ctx context.Context, crawl string, o NodeOptions, patience time.Duration) (_ *Control, err error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c := &Control{crawl: CrawlWord(crawl), secret: o.Secret}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	join := o.join
	if join == nil {
		o.Listen = "" // its server is a node's
		cfg := o.bus(CrawlWord(crawl), o.Log)
		if c.cluster, err = natsbus.Connect(ctx, cfg); err != nil {
			return nil, err
		}
		if err := c.ready(ctx, patience); err != nil {
			return nil, err
		}
		join = func(n strategy.Node) (bus.Bus, error) { return c.cluster.Join(n) }
	}
	if c.bus, err = join(strategy.Node(fmt.Sprintf("control~%08x", rand.Uint32()))); err != nil {
		return nil, err
	}
	c.control = node.Control{Registry: c.bus}
	if c.trouble != nil {
		entries, err := c.cluster.Peek(ctx)
		if err != nil {
			return nil, errors.Join(c.trouble, err)
		}
		c.control.Registry = newPicture(entries)
	}
	return c, nil
}

// ready waits until the cluster can be changed. With patience it does not wait for servers that are away: an old
// picture is shown then.
func (c *Control) ready(ctx context.Context, patience time.Duration) error {
	if patience <= 0 {
		return c.cluster.Ready(ctx)
	}
	for {
		one, cancel := context.WithTimeout(ctx, patience)
		err := c.cluster.Ready(one)
		late := one.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case errors.Is(err, natsbus.ErrNoMajority):
			c.trouble = err
			return nil
		case err == nil || !late: // otherwise they may just elect a leader
			return err
		}
	}
}

// Trouble is why the control shows an old picture, and nothing can be changed; nil if it does not.
func (c *Control) Trouble() error { return c.trouble }

// Start lets the crawl begin with settings and seeds, or go on: then no setting may be given but the limit on pages.
func (c *Control) Start(ctx context.Context, settings []settings.Setting, seeds []string, files ...*seeds.File) error {
	urls, err := asURLs(seeds)
	if err != nil {
		return err
	}
	if urls, err = c.seedFrom(ctx, urls, files); err != nil {
		return err
	}
	return c.control.Start(ctx, asMap(settings), urls)
}

// Known says how many of the URLs that are to be added are new.
type Known = node.Known

const (
	knowTime = 3 * time.Second // that nodes have to say what they know
	knowMost = 20_000          // URLs that they are asked about: each costs a look at the disk
)

// Known asks the nodes which of the seeds they know already. It may be called once.
func (c *Control) Known(ctx context.Context, seeds []string) (k Known, err error) {
	urls, err := asURLs(seeds)
	if err != nil {
		return k, err
	}
	ctx, cancel := context.WithTimeout(ctx, knowTime)
	defer cancel()
	asked := urls[:min(len(urls), knowMost)]
	if k, err = c.control.AskKnown(ctx, c.bus, c.crawl, asked); err != nil {
		return k, err
	}
	k.Unsure += len(urls) - len(asked)
	return k, nil
}

// Add adds seeds.
func (c *Control) Add(ctx context.Context, seeds []string, files ...*seeds.File) error {
	urls, err := asURLs(seeds)
	if err != nil {
		return err
	}
	if urls, err = c.seedFrom(ctx, urls, files); err != nil {
		return err
	}
	return c.control.Add(ctx, urls)
}

// Tune changes settings of a crawl that was started: those that f returns, which is told the record and may be called
// again.
func (c *Control) Tune(ctx context.Context, f func(node.Record) ([]settings.Setting, error)) error {
	return c.control.Tune(ctx, func(r node.Record) (map[string][]string, error) {
		settings, err := f(r)
		return asMap(settings), err
	})
}

func asMap(settings []settings.Setting) map[string][]string {
	all := make(map[string][]string, len(settings))
	for _, s := range settings {
		all[s.Key] = s.Values
	}
	return all
}

// seedFrom adds the seeds of files, piece by piece. It returns urls with the first of them: what is known is no harm,
// and where there are some, the crawl has seeds.
func (c *Control) seedFrom(ctx context.Context, urls []string, files []*seeds.File) ([]string, error) {
	for _, f := range files {
		if f == nil || f.Few() {
			continue
		}
		var failed error
		err := c.control.Seed(ctx, func(yield func(string) bool) {
			failed = f.Each(0, func(seeds []weburl.URL, _ int64) error {
				for _, u := range seeds {
					if !yield(u.String()) {
						return errNoMore
					}
				}
				return nil
			})
		})
		if err == nil && !errors.Is(failed, errNoMore) {
			err = failed
		}
		if err != nil {
			return nil, err
		}
		urls = append(urls, f.First[0])
	}
	return urls, nil
}

var errNoMore = errors.New("no more are wanted")

// asURLs are seeds as all nodes understand them.
func asURLs(typed []string) (urls []string, err error) {
	all, err := seeds.Parse(typed)
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
