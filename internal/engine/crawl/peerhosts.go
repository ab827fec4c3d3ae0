package crawl

import (
	"context"
	"slices"

	"kumo/internal/base/item"
	"kumo/internal/state/transfer"
)

// Transfers is the engine's end of transfers of hosts between nodes.
func (e *Engine) Transfers() *transfer.Endpoint { return e.peers.transfer }

// awaitTransfer waits for room for what another node brings.
func (e *Engine) awaitTransfer(ctx context.Context) error {
	e.control.disk.await(ctx)
	e.await(ctx)
	e.peers.received.Add(1)
	return ctx.Err()
}

// hostsRemoved forgets what the engine keeps for hosts that are gone: if they come back, all is asked anew. Where a
// robots.txt was to be had at one of them for another host, that asks anew, too.
func (e *Engine) hostsRemoved(hosts []string, robots []item.Item) {
	for _, slice := range hosts {
		host := item.HostOfSlice(slice)
		e.origins.rulesCame("http://" + host)
		e.origins.rulesCame("https://" + host)
	}
	for i := range robots {
		e.origins.rulesCame(robots[i].Robots)
		for slice := range e.slicesOf(robots[i].Robots) {
			e.frontier.Unpark(slice, robots[i].Robots)
		}
	}
	e.ends.dropReported(func(url string) bool {
		_, gone := slices.BinarySearch(hosts, e.slices.Of(url))
		return gone
	})
}
