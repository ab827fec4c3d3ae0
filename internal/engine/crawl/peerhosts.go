package crawl

import (
	"context"
	"slices"

	"kumo/internal/base/item"
	"kumo/internal/state/frontier"
	"kumo/internal/state/transfer"
)

// Transfers is the engine's end of transfers of hosts between nodes.
func (e *Engine) Transfers() *transfer.Endpoint { return e.Dispatches.transfer }

// transferHooks are what transfers of hosts ask of the engine.
type transferHooks struct {
	holds    *holds
	hosts    *hosts
	origins  *origins
	ends     *ends
	ranks    *ranking
	frontier *frontier.Frontier
}

// awaitTransfer waits for room for what another node brings.
func (h *transferHooks) awaitTransfer(ctx context.Context) error {
	h.holds.disk.await(ctx)
	h.holds.await(ctx)
	h.holds.received.Add(1)
	return ctx.Err()
}

// hostsRemoved forgets what the engine keeps for hosts that are gone: if they come back, all is asked anew. Where a
// robots.txt was to be had at one of them for another host, that asks anew, too.
func (h *transferHooks) hostsRemoved(hosts []string, robots []item.Item) {
	for _, slice := range hosts {
		host := item.HostOfSlice(slice)
		h.origins.rulesCame("http://" + host)
		h.origins.rulesCame("https://" + host)
	}
	for i := range robots {
		h.origins.rulesCame(robots[i].Robots)
		for slice := range h.hosts.slicesOf(robots[i].Robots) {
			h.frontier.Unpark(slice, robots[i].Robots)
		}
	}
	h.ends.dropReported(func(url string) bool {
		_, gone := slices.BinarySearch(hosts, h.hosts.slices.Of(url))
		return gone
	})
}
