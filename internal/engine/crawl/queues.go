package crawl

import (
	"context"

	"kumo/internal/cluster/strategy"
	"kumo/internal/state/frontier"
)

// Queues are hosts where URLs wait, those with the longest queues first, so many at most. It looks at all hosts, some
// thousands at a time.
func (i *Inspector) Queues(ctx context.Context, most int) (all []strategy.Queue, err error) {
	for h, err := range i.frontier.Inspector().Hosts(most, frontier.ByWaiting) {
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if h.Waiting > 0 && !h.Away {
			all = append(all, strategy.Queue{Host: h.Key, Waiting: h.Waiting})
		}
	}
	return all, nil
}
