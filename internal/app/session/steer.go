package session

import (
	"context"
	"encoding/json"
	"errors"

	"kumo/internal/app/inspect"
	"kumo/internal/base/advice"
	"kumo/internal/base/stats"
	"kumo/internal/engine/seeds"
)

var (
	_ inspect.CurveReader = source{}
	_ inspect.Controller  = source{}
)

// Curves is inspect.Curver's.
func (s source) Curves(context.Context) (*stats.Curves, error) {
	c := s.session.curves.Curves()
	return &c, nil
}

// Pause is inspect.Steerer's.
func (s source) Pause(_ context.Context, on bool) error {
	if err := s.checkControllable(); err != nil {
		return err
	}
	s.session.Engine.Pause(on)
	return nil
}

// Stop is inspect.Steerer's.
func (s source) Stop(context.Context) error {
	if err := s.checkControllable(); err != nil {
		return err
	}
	if stop := s.session.stop.Load(); stop != nil {
		(*stop)()
	}
	return nil
}

// Add is inspect.Steerer's.
func (s source) Add(ctx context.Context, urls []string) (news int, err error) {
	if err := s.checkControllable(); err != nil {
		return 0, err
	}
	all, err := seeds.Parse(urls)
	if err != nil {
		return 0, err
	}
	if len(all) == 0 {
		return 0, advice.Usage("no URL to add: name one")
	}
	for _, u := range all {
		_, known, err := s.session.Engine.Inspector.Knows(u)
		if err != nil {
			return 0, err
		}
		if !known {
			news++
		}
	}
	return news, s.session.Engine.Seeding.AddSeeds(ctx, all, nil)
}

// checkControllable is an error for a node's part of a crawl: all nodes do the same.
func (s source) checkControllable() error {
	if s.session.Folder.IsNodes() {
		return errors.New("a node does what its crawl does: kumo pause, resume, stop and add with --crawl tell all nodes")
	}
	return nil
}

// WithController has f steer the crawl that runs in dir. The error is ErrNotRunning where none runs there.
func WithController(ctx context.Context, dir string, f func(inspect.Controller) error) error {
	return withRunning(ctx, dir, func(c *inspect.Client) error { return f(c) })
}

// CountBlocked counts what rules would leave out of what waits in this process, for who asks all nodes: an
// inspect.Blocked in JSON.
func (s *Session) CountBlocked(ctx context.Context, rules []string) ([]byte, error) {
	b, err := s.source().Blocked(ctx, rules)
	if err != nil {
		return nil, err
	}
	return json.Marshal(b)
}

// Blocked counts what rules would leave out of what waits in the crawl of a view.
func Blocked(ctx context.Context, v *inspect.View, rules []string) (*inspect.Blocked, error) {
	b, can := v.Source.(inspect.BlockCounter)
	if !can {
		return nil, errors.New("what waits in this crawl cannot be counted")
	}
	return b.Blocked(ctx, rules)
}
