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

// Figures are what one run, or many, came to.
type Figures struct {
	Virtual    time.Duration // time that passed
	Events     uint64
	Epochs     int // of members
	Revoked    int // leases
	Faults     int
	Requests   int           // pages fetched
	Duplicates int           // of these, beyond the first of a page
	Slips      int           // requests after a process stood still, while another node was at the host
	Lost       int           // pages that can be reached and were not fetched
	Moved      int           // hosts that went to a node because that had less to do
	Stall      time.Duration // the longest time that a host with something to do was not asked, beyond its delay
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

// A Report says what a soak came to.
type Report struct {
	Seeds int // runs that came to an end
	Figures
	Failed []Failure // in order of seeds
}

// A Failure is a run in which something was not as it must be.
type Failure struct {
	Seed       uint64
	Violations []Violation
	Story      []string // a line each: faults, changes of members, and what became of the host that it is about
}

// String is the report in a line of figures.
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

// Story runs a seed and tells what happened, with what became of a host if it is one's number (-1: none).
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

// maxFailures is how many failed runs a soak goes on after.
const maxFailures = 5

// Soak runs seeds, as many at once as Jobs says, until all are run, five have failed, or ctx ends. It calls progress,
// one call at a time, after each run.
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
	mu       sync.Mutex // guards what follows
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

// form makes a cluster of all machines without their having joined one by one: the table is in the registry.
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
		panic(err) // nobody else has written
	}
}

// slot is a node's place in the table of logical nodes, if there is one.
func (w *world) slot(members []strategy.Member, n strategy.Node) int {
	if w.cfg.Slot == nil {
		return -1
	}
	return w.cfg.Slot(members, n)
}
