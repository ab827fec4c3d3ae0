package sim

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
)

// Figures are the results of one or more runs.
type Figures struct {
	Virtual    time.Duration // virtual duration
	Events     uint64
	Epochs     int // of the membership
	Revoked    int // leases
	Faults     int
	Requests   int // pages fetched
	Duplicates int // requests for pages that had been fetched
	Slips      int // concurrent requests to a host from two nodes, caused by a pause
	Lost       int // reachable pages that were not fetched
	Moved      int // hosts moved to a node with less load
	// the longest time for which a host with pending pages was not fetched from, beyond its delay
	Stall time.Duration
}

func (f *Figures) add(g Figures) {
	f.Virtual += g.Virtual
	f.Events += g.Events
	f.Epochs += g.Epochs
	f.Revoked += g.Revoked
	f.Faults += g.Faults
	f.Requests += g.Requests
	f.Duplicates += g.Duplicates
	f.Slips += g.Slips
	f.Lost += g.Lost
	f.Moved += g.Moved
	f.Stall = max(f.Stall, g.Stall)
}

// A Report is the result of a soak test.
type Report struct {
	Seeds int // completed runs
	Figures
	Failed []Failure // by seed
}

// A Failure is a run with violations.
type Failure struct {
	Seed       uint64
	Violations []Violation
	Story      []string // one line per event: faults, membership changes, and what happens to the host in focus
}

// String returns the figures in one line.
func (r Report) String() string {
	violations := 0
	for _, f := range r.Failed {
		violations += len(f.Violations)
	}
	return fmt.Sprintf("seeds %d, epochs %d, faults %d, fetches %d, duplicates per million %d, longest stall %v, slips "+
		"%d, moved %d, lost %d, violations %d",
		r.Seeds, r.Epochs, r.Faults, r.Requests, r.Duplicates*1e6/max(1, r.Requests), r.Stall.Round(time.Millisecond),
		r.Slips, r.Moved, r.Lost, violations)
}

// Run runs one seed.
func Run(cfg Config, seed uint64) (Figures, []Violation) {
	figures, f := run(cfg, seed, -1, false)
	return figures, f.Violations
}

// Story runs a seed and logs its events, including those of the host with this number (-1: none).
func Story(cfg Config, seed uint64, host int) (Figures, Failure) {
	return run(cfg, seed, int32(host), true)
}

func run(cfg Config, seed uint64, focus int32, telling bool) (Figures, Failure) {
	cfg = cfg.withDefaults()
	if cfg.centerless {
		w := runMesh(cfg, seed, focus, telling)
		return w.soakFigures(), Failure{Seed: seed, Violations: w.violations, Story: w.story}
	}
	w := newWorld(cfg, seed, focus, telling)
	w.run()
	return w.figures, Failure{Seed: seed, Violations: w.violations, Story: w.story}
}

// maxFailures is the number of failed runs after which a soak stops.
const maxFailures = 5

// Soak runs all seeds, Jobs at a time, until maxFailures have failed or ctx ends. After each run it calls progress,
// never concurrently.
func Soak(ctx context.Context, cfg Config, progress func(Report)) Report {
	cfg = cfg.withDefaults()
	if cfg.Jobs == 0 {
		cfg.Jobs = runtime.GOMAXPROCS(0)
	}
	s := &soak{cfg: cfg, progress: progress, next: cfg.FirstSeed, failed: map[uint64]Failure{}}
	var all sync.WaitGroup
	for range min(cfg.Jobs, cfg.Seeds) {
		all.Go(func() {
			for seed, ok := s.nextSeed(ctx); ok; seed, ok = s.nextSeed(ctx) {
				s.run(seed)
			}
		})
	}
	all.Wait()
	return s.report
}

type soak struct {
	cfg      Config
	progress func(Report)
	mu       sync.Mutex // guards the fields below
	next     uint64
	failed   map[uint64]Failure
	report   Report
}

func (s *soak) nextSeed(ctx context.Context) (uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil || s.next >= s.cfg.FirstSeed+uint64(s.cfg.Seeds) || len(s.report.Failed) >= maxFailures {
		return 0, false
	}
	s.next++
	return s.next - 1, true
}

func (s *soak) run(seed uint64) {
	figures, violations := Run(s.cfg, seed)
	var failure Failure
	if len(violations) > 0 {
		_, failure = Story(s.cfg, seed, violations[0].Host)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Seeds++
	s.report.add(figures)
	if len(violations) > 0 {
		s.report.Failed = append(s.report.Failed, failure)
	}
	if s.progress != nil {
		s.progress(s.report)
	}
}

// form writes a table with all machines to the registry, so that they need not join one by one.
func (w *world) form() {
	t := &quorum.Table{Epoch: 1, Finalized: 1, Layout: layout}
	for _, m := range w.machines {
		w.identify(m)
		m.journal.entries = append(m.journal.entries, &entry{kind: entryJoined})
		m.journal.durable = 1
		t.Members = append(t.Members, strategy.Member{Node: m.node, Slot: w.slot(t.Members, m.node)})
	}
	slices.SortFunc(t.Members, func(a, b strategy.Member) int { return cmp.Compare(a.Node, b.Node) })
	if _, err := w.reg.write(member.Write{Key: quorum.TableKey, Value: t.Encode()}); err != nil {
		panic(err) // no other writer exists yet
	}
}

// slot returns the node's slot in the table of logical nodes; -1 if the strategy has none.
func (w *world) slot(members []strategy.Member, n strategy.Node) int {
	if w.cfg.Slot == nil {
		return -1
	}
	return w.cfg.Slot(members, n)
}
