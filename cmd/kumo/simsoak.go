package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kumo/internal/app/setting"
	"kumo/internal/lab/sim"
	"kumo/internal/lab/sim/report"
)

const simSoakLong = `Run a cluster through faults in virtual time, once for each seed, and check these invariants after
each run:

  no URL is lost             every reachable page is fetched at least once; a node forgets only URLs
                             that it has handed over
  few are fetched twice      only those whose done mark was lost in a crash
  one owner, one holder      for every host, when idle; all nodes agree on it
  politeness                 never two nodes at one host at once, nor within its delay; after a process
                             was suspended, each worker may slip by one request, which is counted
  nothing goes to and fro    a host that has moved to a less loaded node stays there (hub)
  a minority stops           a node that cannot reach the registry stops when its lease ends

Nodes are killed, lose their disks, are suspended, are partitioned in one or both directions, leave
and join; the registry loses its leader; messages are lost, duplicated and delayed. Decisions are
made by a node's real code; disk, network, registry and web are models. Each run is reproducible
from seed and flags. The last line has the totals of all runs. If an invariant is violated, the seed
and its events are printed, and kumo exits with 1.

With strategy mesh there are no registry, epochs and leases. Both parts of a partitioned network
continue, and nodes take a while to agree again. So pages fetched twice are counted but not judged,
and so are requests to a host that another node visits (slips), up to a minute after a partition is
healed, or after either node has started or was suspended. The other invariants are checked, and
also that a node detects the end of the crawl.`

const simSoakExample = `  kumo sim soak --nodes 50 --seeds 1000
  kumo sim soak --strategy hub --apart 0.3 --nodes 50 --seeds 200
  kumo sim soak --strategy mesh --nodes 20 --seeds 100
  kumo sim soak --preset wan --latency ../shared/data/latency/PlanetLabData_1 --seeds 20
  kumo sim soak --story 17                                       # what happened under one seed
  kumo sim soak --nodes 10000 --formed --time 1h --faults 10m --seeds 1`

type soak struct {
	cfg      sim.Config
	strategy string
	preset   string
	latency  string
	faults   time.Duration
	story    uint64
}

func simSoak() *cobra.Command {
	s := soak{strategy: "shard", preset: "lan"}
	cmd := &cobra.Command{Use: "soak", Short: "Run a cluster through faults, for many seeds", Long: simSoakLong,
		Example: simSoakExample, Args: cobra.NoArgs}
	f := cmd.Flags()
	f.Var(setting.Choice(&s.strategy, sim.Strategies()), "strategy", "strategy for sharing hosts among nodes")
	f.IntVar(&s.cfg.Nodes, "nodes", 50, "start with `N` nodes")
	f.IntVar(&s.cfg.Seeds, "seeds", 100, "run `K` seeds")
	f.Uint64Var(&s.cfg.FirstSeed, "seed", 1, "`NUMBER` of the first seed")
	f.IntVar(&s.cfg.Hosts, "hosts", 0, "create a web of `N` hosts (0: three per node)")
	f.Var(setting.Choice(&s.preset, []string{"lan", "wan"}), "preset", "network between the nodes")
	f.StringVar(&s.latency, "latency", "", "read the latency between nodes from `FILE`: a matrix of round-trip times")
	durationVar(f, &s.faults, "faults", 0, "mean time between faults (0: the preset's; "+
		"below 0: never)")
	durationVar(f, &s.cfg.FaultTime, "time", 0, "time with faults (0: the preset's)")
	f.Float64Var(
		&s.cfg.Unreachable,
		"apart",
		0,
		"this `SHARE` of the pairs of a node and a host cannot connect, 0 "+
			"to 1; affects only hub",
	)
	f.BoolVar(&s.cfg.Formed, "formed", false, "start with a cluster that all nodes have joined")
	f.Uint64Var(&s.story, "story", 0, "run only this `SEED`, and print what happens")
	out := &simFolder{}
	out.bind(f, "what it says")
	return out.runs(cmd, func(*cobra.Command) error { return nil }, s.run) // run checks the flags
}

func (s *soak) run(cmd *cobra.Command) error {
	cfg, err := s.config()
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if cmd.Flags().Changed("story") {
		all := sim.Report{Seeds: 1}
		var told sim.Failure
		all.Figures, told = sim.Story(cfg, s.story, -1)
		if len(told.Violations) > 0 { // again, with the events of the host
			all.Figures, told = sim.Story(cfg, s.story, told.Violations[0].Host)
			all.Failed = []sim.Failure{told}
		}
		return report.Soak(out, told.Story, all, s.strategy, s.cfg.Nodes)
	}
	all := sim.Soak(cmd.Context(), cfg, s.progress())
	var story []string
	if len(all.Failed) > 0 {
		story = all.Failed[0].Story
	}
	if err := report.Soak(out, story, all, s.strategy, s.cfg.Nodes); err != nil {
		return err
	}
	return cmd.Context().Err()
}

func (s *soak) config() (sim.Config, error) {
	cfg := sim.LAN()
	if s.preset == "wan" {
		cfg = sim.WAN()
	}
	if s.cfg.Nodes < 1 || s.cfg.Seeds < 1 || s.cfg.FirstSeed < 1 || s.cfg.Hosts < 0 || s.cfg.FaultTime < 0 {
		return cfg, usagef("--nodes, --seeds and --seed must be 1 or more, and --hosts and --time not below 0")
	}
	cfg.Nodes, cfg.Seeds, cfg.FirstSeed, cfg.Formed = s.cfg.Nodes, s.cfg.Seeds, s.cfg.FirstSeed, s.cfg.Formed
	if s.cfg.Unreachable < 0 || s.cfg.Unreachable > 1 {
		return cfg, usagef("--apart must be a share from 0 to 1")
	}
	cfg.Hosts, cfg.Unreachable = s.cfg.Hosts, s.cfg.Unreachable
	if s.cfg.FaultTime > 0 {
		cfg.FaultTime = s.cfg.FaultTime
	}
	if s.faults != 0 {
		cfg.FaultEvery = s.faults
	}
	cfg.Use(s.strategy)
	if s.latency != "" {
		m, err := sim.ReadMatrix(s.latency)
		if err != nil {
			return cfg, fmt.Errorf("--latency: %w", err)
		}
		cfg.Matrix = m
	}
	return cfg, nil
}

func (s *soak) progress() func(sim.Report) {
	if !draws(os.Stderr) {
		return nil
	}
	return func(r sim.Report) {
		fmt.Fprintf(os.Stderr, "\r%s\r%d of %d, %d failed", strings.Repeat(" ", 40), r.Seeds, s.cfg.Seeds, len(r.Failed))
		if r.Seeds == s.cfg.Seeds {
			fmt.Fprintln(os.Stderr)
		}
	}
}
