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

// Config describes a run. Comments on the fields end with the default.
type Config struct {
	Strategy func(self strategy.Node) strategy.Strategy // the strategy of each node
	Slot     func(members []strategy.Member, node strategy.Node) int
	Nodes    int           // at the start; 50
	Hosts    int           // of the web; 3 per node
	Pages    int           // per host, on average; 16, at most 32
	Roots    int           // hosts whose root pages are seeds; 3, plus one in 50
	Delay    time.Duration // of a host, on average; 2s
	Workers  int           // per node; 4
	Timing   member.Timing // LAN()
	Formed   bool          // all nodes are members from the start

	FaultEvery time.Duration // average time between two faults; 6s; negative: no faults
	FaultDelay time.Duration // time before the first fault; 20s
	FaultTime  time.Duration // how long faults occur; 4m
	RestLimit  time.Duration // time to come to rest after that; 30m

	Spread      time.Duration // time within which the nodes start; 10s
	Latency     time.Duration // one way, across the map; 2ms
	Bandwidth   float64       // bytes per second between two nodes; 100e6
	Unreachable float64       // share of pairs of node and host that cannot connect
	EqualReach  bool          // all other pairs connect equally fast
	// count duplicates and delay violations instead of reporting them, for strategies that guarantee neither
	CountOnly bool
	Loss      float64       // share of messages lost, and of those duplicated; 0.001
	Chunk     int           // hosts per transfer chunk; 2, which makes many chunks
	Commit    time.Duration // about a quarter of the time until an entry is durable; 8ms
	Matrix    *Matrix       // measured latencies to use instead of Latency

	// DecodeDecision calls f with the hosts whose owners an entry of the strategy's log changes; nil if there is no
	// such log.
	DecodeDecision func(entry []byte, f func(central.Host)) error
	MinStay        time.Duration // how long a host must stay that was moved because a node had little load; 55m
	VarySpeeds     bool          // machines have different and changing speeds

	// request times of the first machines relative to the usual ones; VarySpeeds applies to the rest
	Slowness []float64

	SlowsAt time.Duration // when the first machine's requests become SlowsBy times slower; 0: never
	SlowsBy float64

	Seeds     int    // number of runs; 1
	FirstSeed uint64 // 1
	Jobs      int    // parallel runs; number of processors

	centerless bool // for mesh: run a meshWorld
	paper      bool // for mesh: the paper's method
	parts      parts
}

// parts are the components that tests replace with broken ones.
type parts struct {
	machine  func(p *process, cfg quorum.Config) member.Member
	router   func(p *process, v member.View) member.View
	outbox   func(p *process, old []outboxLink) outbox
	placer   func(p *process, s strategy.Placer) strategy.Placer
	strategy func(p *process, s strategy.Strategy) strategy.Strategy
	engine   func(p *process, e driver.Engine) driver.Engine
	leaseGap time.Duration // average time between a worker's check of the lease and its request; 1ms
}

// LAN returns the configuration of a cluster in one building.
func LAN() Config { return Config{}.withDefaults() }

// WAN returns the configuration of a cluster with distant nodes: LAN with other latencies, losses and lease times.
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
	c.MinStay = cmp.Or(c.MinStay, 55*time.Minute) // less than hub guarantees, as clocks differ
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
