package nodes

import (
	"slices"
	"testing"
	"time"

	"kumo/internal/app/inspect"
	"kumo/internal/app/job"
	"kumo/internal/base/machine"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/balance/model"
	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
	"kumo/internal/lab/testmain"
)

// A crawl with supplied samples starts with them and adds its own. It shows the learned model to users, and assigns
// quotas to the nodes.
func TestACrawlLearnsRunningTimes(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	web := jobtest.Serve(t, synthweb.Clean(16, 60, 2000))
	c := newCluster(t, web)
	c.strategy = "balance"
	c.tune = func(j *job.Job) { j.Frontier.Delay = 30 * time.Millisecond }
	start := func(name string) *running {
		return c.startWith(name, func(cfg *Config) { cfg.Limits = machine.NewLimits })
	}
	given := []model.Sample{{Node: "a", Machine: model.Machine{Cores: 2}, URLs: 100, Seconds: 1},
		{Node: "elsewhere", Machine: model.Machine{Cores: 1}, URLs: 100, Seconds: 2}}
	if err := c.control.SetSamples(t.Context(), given); err != nil {
		t.Fatal(err)
	}
	a, b := start("a"), start("b")
	c.members(2)
	c.slowAfter(1000)
	c.begin()
	by := map[string]inspect.NodeModel{}
	c.eventually("samples are in the log, and the machine of a", func() bool {
		learnt, samples, err := c.control.Model(t.Context(), "test", time.Minute)
		if err != nil || len(samples) < len(given) {
			return false
		}
		for _, n := range learnt.Nodes {
			by[n.Name] = n
		}
		return samples[0] == given[0] && samples[1] == given[1] && by["a"].Machine.MemoryGB > 0
	})
	if n := by["elsewhere"]; n.Member || n.Samples != 1 || n.Basis != "pace" || n.Predictions[0].Seconds != 0.2 {
		t.Errorf("%+v", n)
	}
	if n := by["a"]; !n.Member || n.Samples < 1 || n.Machine.MemoryGB <= 0 || n.Machine.DiskMbps <= 0 {
		t.Errorf("%+v", n)
	}
	c.eventually("the master has told a node what it is to do", func() bool {
		all, err := c.control.Cluster(t.Context(), "test")
		if err != nil {
			t.Fatal(err)
		}
		for i := range all.Nodes {
			n := &all.Nodes[i]
			if n.Facts != nil && n.Quota != nil && n.Quota.Given > 0 && n.Quota.Basis != "" && n.Machine != nil {
				return true
			}
		}
		return false
	})
	c.goOn()
	c.ends(nil, a, b)
	jobtest.WantPerfect(t, web)
}

// A deaf strategy ignores requests for hosts.
type deaf struct{ strategy.Strategy }

func (d deaf) Step(now time.Time, in []strategy.Event, out []strategy.Action) []strategy.Action {
	heard := slices.DeleteFunc(slices.Clone(in), func(e strategy.Event) bool {
		_, wanted := e.(strategy.OwnersNeeded)
		return wanted
	})
	return d.Strategy.Step(now, heard, out)
}

// Links to a host without an owner are counted over all nodes that store them.
func TestLinksToAHostThatIsNobodys(t *testing.T) {
	t.Parallel()
	c := newCluster(t, jobtest.Serve(t, synthweb.Clean(17, 3, 30)))
	start := func(name string) *running {
		return c.startWith(name, func(cfg *Config) {
			cfg.Joining = func(q quorum.Config) (member.Member, strategy.Strategy) {
				one, placing := c.member(q)
				return one, deaf{placing}
			}
		})
	}
	c.strategy = "balance"
	a, b := start("a"), start("b")
	c.members(2)
	seed := c.web.SeedURLs()[0]
	if err := c.control.Start(t.Context(), nil, []string{seed, seed + "a", "http://other.example/"}); err != nil {
		t.Fatal(err)
	}
	c.eventually("all three wait", func() bool {
		all, err := c.control.Cluster(t.Context(), "test")
		return err == nil && all.Totals.Outbox == 3
	})
	if l, err := c.control.Links(t.Context(), seed+"b"); err != nil || l != (inspect.Links{Links: 2, Nodes: 1}) {
		t.Errorf("%+v (%v)", l, err)
	}
	a.kill()
	b.kill()
}
