package admin

import (
	"context"
	"errors"
	"sync"

	"kumo/internal/app/inspect"
	"kumo/internal/base/settings"
	"kumo/internal/cluster/desired"
)

// A SourceConfig says how a crawl is reached by who asks for it again and again.
type SourceConfig struct {
	Crawl string
	View  func(context.Context) (Client, error) // opens a client that only looks
	Open  func(context.Context) (Client, error) // opens one that changes something
	// Check says what is wrong with changes of settings of a crawl, and which are to be made with them.
	Check func(desired.Record, []settings.Setting) ([]settings.Setting, error)
}

// A source answers for a crawl of several nodes. It looks with one client as long as that works; what changes something
// is done with one of its own, as commands do it.
type source struct {
	SourceConfig
	mu     sync.Mutex // guards client, and is held by who looks
	client Client
}

var _ inspect.ClusterSource = (*source)(nil)

// NewSource makes what answers for a crawl. It reaches the cluster when it is asked. The caller closes it.
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

// withClient calls f with a client that only looks. One that has failed, or shows an old picture, is not used again.
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

// A steerer changes something for somebody.
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

// Add is inspect.Steerer's. URLs of which no node has said in time whether they are known count as new.
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

// BlockedAll opens a client of its own, because it receives messages of the bus.
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
