package nodes

import (
	"testing"

	"kumo/internal/app/job"
	"kumo/internal/app/node"
	"kumo/internal/base/settings"
	"kumo/internal/cluster/budget"
	"kumo/internal/cluster/bus/inproc"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
	"kumo/internal/content/policy"
	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
)

// All nodes together fetch exactly as many pages as the limit allows, also if a node leaves before, and more with a
// higher limit.
func TestALimitIsExact(t *testing.T) {
	t.Parallel()
	web := jobtest.Serve(t, synthweb.Clean(16, 40, 2400))
	c := newCluster(t, web)
	all := []string{"a", "b", "d"}
	start := func(name string) *running {
		return c.startWith(name, func(cfg *Config) {
			cfg.ApplySettings = func(*job.Job, []settings.Setting) error { return nil }
		})
	}
	crawl := func(limit string, pages int, seeds []string, while func(nodes []*running)) {
		t.Helper()
		var nodes []*running
		for _, name := range all {
			nodes = append(nodes, start(name))
		}
		err := c.control.Start(t.Context(), []settings.Setting{{Key: desired.WhyLimit, Values: []string{limit}}}, seeds)
		if err != nil {
			t.Fatal(err)
		}
		while(nodes)
		sum := 0
		for _, name := range []string{"a", "b", "d"} {
			sum += pagesIn(t, c.job(name).Dir)
		}
		if sum != pages {
			t.Errorf("%d pages at a limit of %s", sum, limit)
		}
	}
	crawl("201", 201, web.SeedURLs(), func(nodes []*running) { c.ends(policy.ErrLimit, nodes...) })
	crawl("700", 700, nil, func(nodes []*running) {
		c.further(web.Score().Requests + 200)
		nodes[2].Leave()
		c.ends(node.ErrLeft, nodes[2])
		c.goOn(nodes[:2]...)
		c.ends(policy.ErrLimit, nodes[:2]...)
	})
	if score := web.Score(); score.Distinct != 700 || score.MostInFlight.Value != 1 {
		t.Errorf("the servers saw %v", score)
	}
}

// A new limit is not divided while a member holds no lease: the pages that it has fetched are not known.
func TestALimitWaitsForAllMembers(t *testing.T) {
	t.Parallel()
	b, err := inproc.New(1).Join("a~1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	c := &counter{m: &membership{n: &Node{}, bus: &meter{Bus: b}}, divider: newPageDivider()}
	c.setTable(&quorum.Table{Members: []strategy.Member{{Node: "a~1"}, {Node: "b~1"}}})
	control := node.Control{Registry: c.m.bus}
	nodes := map[strategy.Node]budget.Node{"a~1": {Report: budget.Report{Used: 30}, Busy: true}}
	divide := func(want int64, divided bool) {
		t.Helper()
		used, err := c.divide(t.Context(), 100, nodes, true, node.Pages{})
		is, _, failed := control.Budget(t.Context())
		if err != nil || failed != nil || used != want || (is != nil) != divided {
			t.Errorf("%d pages are used, want %d; budget %+v; %v, %v", used, want, is, err, failed)
		}
	}
	divide(0, false)
	nodes["b~1"] = budget.Node{Report: budget.Report{Used: 40}, Busy: true}
	divide(70, true)
	delete(nodes, "b~1") // without a lease again, it still counts
	divide(70, true)
}
