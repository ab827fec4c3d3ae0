package crawl

import (
	"fmt"
	"slices"
	"testing"

	"kumo/internal/base/item"
	"kumo/internal/cluster/strategy"
)

// Queues returns the hosts with the longest queues, in memory or on disk, and none if no URL is pending.
func TestQueues(t *testing.T) {
	x := newTrade(t, 1, false)
	n := x.nodes[1]
	for i := range 20 {
		for k := range i {
			host := fmt.Sprintf("h%d.test", i)
			n.e.frontier.Push(host, item.Item{URL: fmt.Sprintf("http://%s/%d", host, k)})
		}
	}
	n.e.frontier.Push("done.test", item.Item{URL: "http://done.test/"})
	n.e.frontier.TakeMatching("done.test", func(*item.Item) bool { return true })
	got, err := n.e.Inspector.Queues(t.Context(), 3)
	if want := []strategy.Queue{{Host: "h19.test", Pending: 19}, {Host: "h18.test", Pending: 18},
		{Host: "h17.test", Pending: 17}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if all, err := n.e.Inspector.Queues(t.Context(), 100); err != nil || len(all) != 19 {
		t.Errorf("%d hosts, %v", len(all), err)
	}
}
