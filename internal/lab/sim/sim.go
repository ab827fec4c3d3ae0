// Package sim runs a cluster in virtual time, with a simulated network, registry and web generated from a seed. The
// seed also determines the faults. Members, strategies and drivers are those of real nodes.
//
// After each run the package checks these invariants:
//
//   - No URL is lost: each reachable page is fetched at least once, and a node forgets only URLs that it has handed
//     over.
//   - A page is fetched again only if its done mark was lost: by a crash, before the mark was durable or shipped.
//   - At rest, each host has one owner, all nodes agree on it, and only that node holds the host's state.
//   - A host that has moved to a less loaded node stays there: hosts do not oscillate.
//   - Politeness: two nodes never have requests to one host in flight at the same time. No request starts within the
//     host's delay after the end of another. A process that stalls between the check of its lease and the end of its
//     request can violate this. Such violations are counted, and happen at most once per worker.
//   - A node that cannot reach the registry stops fetching when its last lease expires.
//   - When a node reports that the crawl is done, all pages have been fetched; and some node reports it.
//
// # Model
//
// Each node runs the real driver (kumo/internal/cluster/member/driver), member and strategy. The rest is modeled:
//
//	kernel.go, task.go, runtime.go, network.go  time, tasks and the network
//	registry.go                                 the registry
//	journal.go                                  the journal with its commits and its copy
//	holding.go, holder.go                       the data that a node holds
//	visit.go                                    workers
//	links.go                                    links to other nodes' hosts
//	record.go                                   the crawl's record
//	web.go                                      hosts and pages
//
// The files mesh*.go simulate mesh crawls, which have no registry, in the same way.
//
// Two runs with the same seed have identical events. A seed therefore reproduces a failure, and its events can be
// printed.
package sim

import (
	"cmp"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/driver"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central"
)

// Config says what is run.
type Config struct {
	Strategy func(self strategy.Node) strategy.Strategy // what is run on each node
	Slot     func(members []strategy.Member, node strategy.Node) int
	Nodes    int           // at the start; 50
	Hosts    int           // of the web; 3 a node
	Pages    int           // of a host, on average; 16, at most 32
	Roots    int           // hosts whose roots are given to the crawl; 3, and one in 50
	Delay    time.Duration // of a host, on average; 2s
	Workers  int           // of a node; 4
	Timing   member.Timing // LAN's
	Formed   bool          // the cluster begins as one whose nodes have all joined

	FaultEvery time.Duration // between two faults, on average; 6s. Negative: there are none
	FaultDelay time.Duration // until the first; 20s
	FaultTime  time.Duration // how long faults go on; 4m
	RestLimit  time.Duration // until all must be at rest after that; 30m

	Spread      time.Duration // within which nodes are started; 10s
	Latency     time.Duration // across the map, one way; 2ms
	Bandwidth   float64       // bytes a second between two nodes; 100e6
	Unreachable float64       // share of pairs of a node and a host that do not reach each other
	EqualReach  bool          // but for these, each node reaches each host as fast
	CountOnly   bool          // duplicates and politeness are counted and not judged: a strategy that promises neither
	Loss        float64       // share of messages that are lost, and of those that come twice; 0.001
	Chunk       int           // hosts of a chunk of what moves; 2: few, so that many are under way
	Commit      time.Duration // about a quarter of the time until what is journalled is durable; 8ms
	Matrix      *Matrix       // latency as measured, instead

	// DecodeDecision calls f with the hosts whose owners an entry of the strategy's log changes; nil where there is no such log.
	DecodeDecision func(entry []byte, f func(central.Host)) error
	MinStay        time.Duration // for so long a host stays that has moved because a node had little to do; 55m
	VarySpeeds     bool          // machines are not alike, and become faster and slower

	// how many times longer than usual the requests of the first machines take; the rest is as Speeds says
	Slowness []float64

	SlowsAt time.Duration // when the first machine's requests begin to take SlowsBy times as long; 0: they never do
	SlowsBy float64

	Seeds     int    // runs; 1
	FirstSeed uint64 // seed; 1
	Jobs      int    // runs at once; as many as there are processors

	centerless bool // mesh: a meshWorld is run
	parts      parts
}

// parts are what runs of broken variants replace.
type parts struct {
	machine  func(p *process, cfg quorum.Config) member.Member
	router   func(p *process, v member.View) member.View
	outbox   func(p *process, old []outboxLink) outbox
	placer   func(p *process, s strategy.Placer) strategy.Placer
	strategy func(p *process, s strategy.Strategy) strategy.Strategy
	engine   func(p *process, e driver.Engine) driver.Engine
	leaseGap time.Duration // of a worker between the look at the lease and the request, on average; 1ms
}

// LAN is a cluster in one building.
func LAN() Config { return Config{}.withDefaults() }

// WAN is one whose nodes are far from each other: LAN but for latencies, losses and the times of leases.
func WAN() Config {
	return Config{Timing: member.WAN(), Latency: 120 * time.Millisecond, Bandwidth: 5e6, Loss: 0.005,
		FaultTime:  8 * time.Minute,
		FaultEvery: 12 * time.Second, Spread: time.Minute, FaultDelay: time.Minute}.withDefaults()
}

func (c Config) withDefaults() Config {
	c.Nodes, c.Pages, c.Workers = cmp.Or(c.Nodes, 50), cmp.Or(c.Pages, 16), cmp.Or(c.Workers, 4)
	c.Hosts, c.Seeds, c.Chunk = cmp.Or(c.Hosts, 3*c.Nodes), cmp.Or(c.Seeds, 1), cmp.Or(c.Chunk, 2)
	c.Delay, c.FaultEvery = cmp.Or(c.Delay, 2*time.Second), cmp.Or(c.FaultEvery, 6*time.Second)
	c.FaultDelay, c.FaultTime = cmp.Or(c.FaultDelay, 20*time.Second), cmp.Or(c.FaultTime, 4*time.Minute)
	c.RestLimit, c.Spread = cmp.Or(c.RestLimit, 30*time.Minute), cmp.Or(c.Spread, 10*time.Second)
	c.Latency, c.Commit = cmp.Or(c.Latency, 2*time.Millisecond), cmp.Or(c.Commit, 8*time.Millisecond)
	c.MinStay = cmp.Or(c.MinStay, 55*time.Minute) // less than what hub promises, as clocks differ
	c.FirstSeed = cmp.Or(c.FirstSeed, 1)
	if c.Timing.Beat == 0 {
		c.Timing = member.LAN()
	}
	if c.Bandwidth == 0 {
		c.Bandwidth, c.Loss = 100e6, max(c.Loss, 0.001)
	}
	c.parts = c.parts.withDefaults()
	return c
}

func (s parts) withDefaults() parts {
	s.leaseGap = cmp.Or(s.leaseGap, time.Millisecond)
	if s.machine == nil {
		s.machine = func(_ *process, cfg quorum.Config) member.Member { return quorum.New(cfg) }
	}
	if s.outbox == nil {
		s.outbox = newOutbox
	}
	orIdentity(&s.router)
	orIdentity(&s.placer)
	orIdentity(&s.strategy)
	orIdentity(&s.engine)
	return s
}

func orIdentity[T any](f *func(*process, T) T) {
	if *f == nil {
		*f = func(_ *process, x T) T { return x }
	}
}
