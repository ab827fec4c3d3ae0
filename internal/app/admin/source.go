package admin

import (
	"context"
	"errors"
	"sync"

	"kumo/internal/app/inspect"
	"kumo/internal/base/settings"
	"kumo/internal/cluster/desired"
)

// A SourceConfig defines how a source connects to a crawl's cluster.
type SourceConfig struct {
	Crawl string
	View  func(context.Context) (Client, error) // opens a read-only client
	Open  func(context.Context) (Client, error) // opens a client that can change the crawl
	// Check validates changes of settings, and returns them with any changes that must accompany them.
	Check func(desired.Record, []settings.Setting) ([]settings.Setting, error)
}

// A source answers queries about a crawl of several nodes. It reuses one read-only client while that works. Each change
// uses a client of its own, as in commands.
type source struct {
	SourceConfig
	mu     sync.Mutex // guards client; held during queries
	client Client
}

var _ inspect.ClusterSource = (*source)(nil)

// NewSource returns a source for a crawl. It connects on the first query. The caller closes it.
func NewSource(cfg SourceConfig) inspect.ClusterSource { return &source{SourceConfig: cfg} }

func (s *source) Cluster(ctx context.Context) (all *inspect.Cluster, err error) {
	err = s.withClient(ctx, func(c Client) (err error) {
		all, err = c.Cluster(ctx, s.Crawl)
		return err
	})
	return all, err
}

func (s *source) Started(ctx context.Context) (now map[string][]string, err error) {
	err = s.withClient(ctx, func(c Client) error {
		r, err := c.Record(ctx)
		now = r.Settings
		return err
	})
	return now, err
}

// withClient calls f with the read-only client. A client that failed or shows an old snapshot is not reused.
func (s *source) withClient(ctx context.Context, f func(Client) error) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil {
		if s.client, err = s.View(ctx); err != nil {
			return err
		}
	}
	if err = f(s.client); err != nil || s.client.Trouble() != nil {
		_ = s.client.Close() // it was only read
		s.client = nil
	}
	return err
}

func (s *source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil {
		return nil
	}
	err := s.client.Close()
	s.client = nil
	return err
}

func (s *source) As(by string) inspect.ClusterController { return &steerer{s, by} }

// A steerer changes the crawl on behalf of a user.
type steerer struct {
	s  *source
	by string
}

func (s *steerer) do(ctx context.Context, f func(Client) error) error {
	c, err := s.s.Open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f(c.As(s.by)), c.Close())
}

func (s *steerer) Pause(ctx context.Context, on bool) error {
	return s.do(ctx, func(c Client) error {
		if on {
			return c.Pause(ctx)
		}
		return c.Resume(ctx)
	})
}

func (s *steerer) Stop(ctx context.Context) error {
	return s.do(ctx, func(c Client) error { return c.Stop(ctx) })
}

// Add implements [inspect.Controller]. A URL counts as new if no node reports in time that it is known.
func (s *steerer) Add(ctx context.Context, urls []string) (news int, err error) {
	err = s.do(ctx, func(c Client) error {
		known, err := c.CountKnown(ctx, urls) // before they are added
		if err != nil {
			return err
		}
		news = known.New + known.Unsure
		return c.Add(ctx, urls)
	})
	return news, err
}

func (s *steerer) Tune(ctx context.Context, f func(now map[string][]string) ([]inspect.Setting, error)) error {
	return s.do(ctx, func(c Client) error {
		return c.Tune(ctx, func(r desired.Record) (changes []settings.Setting, err error) {
			wishes, err := f(r.Settings)
			if err != nil {
				return nil, err
			}
			for _, w := range wishes {
				changes = append(changes, settings.Setting{Key: w.Key, Values: w.Values})
			}
			return s.s.Check(r, changes)
		})
	})
}

// BlockedAll opens its own client because it receives the bus's messages.
func (s *source) BlockedAll(ctx context.Context, rules []string) (all *inspect.BlockedAll, err error) {
	c, err := s.View(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close() //nolint:errcheck // it was only read
	if err := c.Trouble(); err != nil {
		return nil, err
	}
	return c.BlockedAll(ctx, rules)
}
