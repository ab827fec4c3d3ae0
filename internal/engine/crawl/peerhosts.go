package crawl

import (
	"slices"

	"kumo/internal/base/item"
	"kumo/internal/engine/visit"
	"kumo/internal/state/frontier"
	"kumo/internal/state/rank/ranker"
	"kumo/internal/state/transfer"
)

// Transfers returns the engine's endpoint for transfers of hosts between nodes.
func (e *Engine) Transfers() *transfer.Endpoint { return e.Dispatches.transfer }

// transferHooks are the callbacks of host transfers into the engine.
type transferHooks struct {
	hosts    *hosts
	gate     *visit.Gate
	ends     *visitEnds
	ranks    *ranking
	frontier *frontier.Frontier
}

// hostsRemoved drops the engine's data about hosts that were removed: handed over, released or dropped. If they come
// back, their robots.txt is fetched again. robots are fetches of robots.txt, for other hosts, that were lost with them:
// these hosts request theirs again.
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

// addWorths adds to the ranking the worths of links to URLs that another node hands over.
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
		if s.Rose { // the URL may be queued here
			h.frontier.Move(h.hosts.slices.Of(all[i].URL), []frontier.Move{{Key: gifts[i].Key, Place: s.Place}})
		}
	}
}
