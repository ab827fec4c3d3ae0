package crawl

import (
	"slices"

	"kumo/internal/base/item"
	"kumo/internal/engine/visit"
	"kumo/internal/state/frontier"
	"kumo/internal/state/rank/ranker"
	"kumo/internal/state/transfer"
)

// Transfers is the engine's end of transfers of hosts between nodes.
func (e *Engine) Transfers() *transfer.Endpoint { return e.Dispatches.transfer }

// transferHooks are what transfers of hosts ask of the engine.
type transferHooks struct {
	hosts    *hosts
	gate     *visit.Gate
	ends     *visitEnds
	ranks    *ranking
	frontier *frontier.Frontier
}

// hostsRemoved forgets what the engine keeps for hosts that are gone: if they come back, all is asked anew. Where a
// robots.txt was to be had at one of them for another host, that asks anew, too.
func (h *transferHooks) hostsRemoved(hosts []string, robots []item.Item) {
	for _, slice := range hosts {
		host := item.HostOfSlice(slice)
		h.gate.Forget("http://" + host)
		h.gate.Forget("https://" + host)
	}
	for i := range robots {
		h.gate.Forget(robots[i].Robots)
		for slice := range h.hosts.slicesOf(robots[i].Robots) {
			h.frontier.Unpark(slice, robots[i].Robots)
		}
	}
	h.ends.dropReported(func(url string) bool {
		_, gone := slices.BinarySearch(hosts, h.hosts.slices.Of(url))
		return gone
	})
}

// addWorths gives the ranking the worth of links to URLs that another node hands over.
func (h *transferHooks) addWorths(all []transfer.Worth) {
	if h.ranks.Links == nil || len(all) == 0 {
		return
	}
	gifts := make([]ranker.Contribution, len(all))
	for i := range all {
		u := ranker.URL{Key: h.ranks.Links.KeyOf(all[i].URL), Depth: all[i].Depth}
		gifts[i] = ranker.Contribution{URL: u, Worth: all[i].Worth}
	}
	standings, err := h.ranks.Links.Import(gifts, nil)
	h.ranks.reportFull(err)
	for i, s := range standings {
		if s.Rose { // and may wait here
			h.frontier.Move(h.hosts.slices.Of(all[i].URL), []frontier.Move{{Key: gifts[i].Key, Place: s.Place}})
		}
	}
}
