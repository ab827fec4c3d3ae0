package admin

import (
	"context"
	"time"

	"kumo/internal/app/inspect"
	"kumo/internal/app/meshnode/control"
	"kumo/internal/cluster/strategy"
)

// countTime is how long nodes have to count: each takes two seconds at most, and may be busy.
const countTime = 5 * time.Second

// BlockedAll has all members count what rules would leave out.
func (c *client) BlockedAll(ctx context.Context, rules []string) (*inspect.BlockedAll, error) {
	ctx, cancel := context.WithTimeout(ctx, countTime)
	defer cancel()
	counts, err := c.control.AskBlocked(ctx, c.cfg.Bus, c.cfg.Crawl, rules)
	if err != nil {
		return nil, err
	}
	all := inspect.NewBlockedAll()
	for n, count := range counts {
		all.AddNode(n.Name(), count)
	}
	return all, nil
}

// BlockedAll has the nodes that are listed count what rules would leave out.
func (c *meshClient) BlockedAll(ctx context.Context, rules []string) (*inspect.BlockedAll, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*countTime) // reports are gathered first
	defer cancel()
	a, err := c.control.Ask(ctx, control.Question{Do: control.Block, Rules: rules})
	if err != nil {
		return nil, err
	}
	all := inspect.NewBlockedAll()
	if a.Counts == nil {
		return all, nil
	}
	for _, n := range a.Counts.Nodes {
		all.AddNode(strategy.Node(n.Node).Name(), n.Count)
	}
	all.Unasked = a.Counts.Unasked
	return all, nil
}

// BlockedAll is inspect.ClusterSource's. It has a client of its own, as it receives what comes over the bus.
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
