package nodes

import (
	"testing"
	"time"

	"kumo/internal/job"
	"kumo/internal/job/jobtest"
	"kumo/internal/node"
	"kumo/internal/synthweb"
)

// What all nodes have done is never less than it was: not when one leaves, nor when one dies with its disk and others
// take its place.
func TestTotalsNeverFall(t *testing.T) {
	t.Parallel()
	web := jobtest.Serve(t, synthweb.Clean(15, 40, 2400))
	c := newCluster(t, web)
	c.tune = func(j *job.Job) { j.Frontier.Delay = 70 * time.Millisecond }
	a, b, d := c.start("a"), c.start("b"), c.start("d")
	c.members(3)
	c.slowAfter(300)
	c.begin()
	var pages int64
	known, gone := 0, 0
	look := func() {
		t.Helper()
		all, err := c.control.Look(t.Context(), "test")
		if err != nil {
			t.Fatal(err)
		}
		// of what is known the last beats may be missing while hosts move, and who left knew some of others' hosts; a
		// node's share is a third
		if all.Totals.Pages < pages || all.Totals.Known < known*8/10 {
			t.Errorf("%d pages of %d URLs, after %d of %d: %+v", all.Totals.Pages, all.Totals.Known, pages, known, all)
		}
		pages, gone = max(pages, all.Totals.Pages), all.Gone.Nodes
		known = max(known, all.Totals.Known)
	}
	c.eventually("some of it is fetched", func() bool { look(); return pages > 300 })
	d.Leave()
	c.ends(node.ErrLeft, d)
	b.kill()
	c.eventually("the dead one is not shown any more", func() bool { look(); return gone == 1 })
	c.goOn()
	c.ends(nil, a)
	look()
	if truth := int64(web.Score().Truth); pages < truth*9/10 {
		t.Errorf("%d pages were counted of %d", pages, truth)
	}
}
