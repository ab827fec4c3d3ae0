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

// Curves implements [inspect.CurveReader].
func (s source) Curves(context.Context) (*stats.Curves, error) {
	c := s.session.curves.Curves()
	return &c, nil
}

// Pause implements [inspect.Controller].
func (s source) Pause(_ context.Context, on bool) error {
	if err := s.checkControllable(); err != nil {
		return err
	}
	s.session.Engine.Pause(on)
	return nil
}

// Stop implements [inspect.Controller].
func (s source) Stop(context.Context) error {
	if err := s.checkControllable(); err != nil {
		return err
	}
	if stop := s.session.stop.Load(); stop != nil {
		(*stop)()
	}
	return nil
}

// Add implements [inspect.Controller].
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

// checkControllable returns an error for a node's part of a crawl, because all nodes must do the same.
func (s source) checkControllable() error {
	if s.session.Folder.IsNodes() {
		return errors.New("a node follows its crawl: use kumo pause, resume, stop and add with --crawl to control all nodes")
	}
	return nil
}

// WithController calls f with a controller of the running crawl in dir. It returns ErrNotRunning if there is none.
func WithController(ctx context.Context, dir string, f func(inspect.Controller) error) error {
	return withRunning(ctx, dir, func(c *inspect.Client) error { return f(c) })
}

// CountBlocked counts this process's pending URLs that the rules would exclude, for a count over all nodes. It returns
// an inspect.Blocked in JSON.
func (s *Session) CountBlocked(ctx context.Context, rules []string) ([]byte, error) {
	b, err := s.source().Blocked(ctx, rules)
	if err != nil {
		return nil, err
	}
	return json.Marshal(b)
}

// Blocked counts the pending URLs of a view's crawl that the rules would exclude.
func Blocked(ctx context.Context, v *inspect.View, rules []string) (*inspect.Blocked, error) {
	b, can := v.Source.(inspect.BlockCounter)
	if !can {
		return nil, errors.New("the pending URLs of this crawl cannot be counted")
	}
	return b.Blocked(ctx, rules)
}
