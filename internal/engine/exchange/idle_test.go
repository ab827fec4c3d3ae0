package exchange

import (
	"testing"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/cluster/strategy"
	"kumo/internal/content/policy"
	"kumo/internal/state/entry"
)

// TestWhatARuleLeavesOutIsNotWanted: a filtered link waits for its host's owner, and does not keep the node from being
// idle.
func TestWhatARuleLeavesOutIsNotWanted(t *testing.T) {
	o := worthOutbox()
	var enc entry.Encoder
	for _, c := range []entry.Candidate{
		{Host: "a.test", Item: item.Item{URL: "http://a.test/1", Kind: page.Anchor}},
		{Host: "a.test", Item: item.Item{URL: "http://a.test/2", Kind: page.Anchor},
			Verdict: policy.Verdict{Rule: "depth", Why: "too deep"}},
	} {
		o.Put(&enc, &c, nil)
	}
	nobody := func(string) (strategy.Node, bool) { return "", false }
	o.Batches(time.Unix(1e9, 0), nobody)
	o.Wanted()
	o.Batches(time.Unix(2e9, 0), nobody)
	if hosts, links := o.Wanted(); len(hosts) != 1 || links[0] != 1 || o.Waiting("a.test") != 2 {
		t.Errorf("%d links are to be fetched from %q, %d wait", links, hosts, o.Waiting("a.test"))
	}
}
