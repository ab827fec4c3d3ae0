package nodes

import (
	"testing"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/app/node"
	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
	"kumo/internal/lab/testmain"
)

// The totals over all nodes never decrease: not when a node leaves, nor when one dies with its disk and others take
// over.
func TestTotalsNeverFall(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	web := jobtest.Serve(t, synthweb.Clean(15, 40, 1200))
	c := newCluster(t, web)
	c.lease = shortLease
	c.tune = func(j *job.Job) { j.Frontier.Delay = 70 * time.Millisecond }
	a, b, d := c.start("a"), c.start("b"), c.start("d")
	c.members(3)
	c.slowAfter(300)
	c.begin()
	var pages int64
	known, most, gone := 0, 0, 0
	look := func() {
		t.Helper()
		all, err := c.control.Cluster(t.Context(), "test")
		if err != nil {
			t.Fatal(err)
		}
		if all.Totals.Pages < pages {
			t.Errorf("%d pages, after %d: %+v", all.Totals.Pages, pages, all)
		}
		pages, gone, known = all.Totals.Pages, all.Gone.Nodes, all.Totals.Known
		most = max(most, known)
	}
	// The URLs of moved hosts are not counted until their new owner reports them. The leaving node knew URLs of several
	// hosts; a node's share is a third.
	isKnown := func() bool { return known >= most*8/10 }
	c.eventually("some of it is fetched", func() bool { look(); return pages > 300 })
	d.Leave()
	c.ends(node.ErrLeft, d)
	c.eventually("others know what the one that left knew", func() bool { look(); return isKnown() })
	b.kill()
	c.eventually("the dead one is not shown any more", func() bool { look(); return gone == 1 })
	c.eventually("others know what the dead one knew", func() bool { look(); return isKnown() })
	c.goOn()
	c.ends(nil, a)
	if look(); !isKnown() {
		t.Errorf("%d URLs are known, after %d", known, most)
	}
	if truth := int64(web.Score().Truth); pages < truth*9/10 {
		t.Errorf("%d pages were counted of %d", pages, truth)
	}
}
