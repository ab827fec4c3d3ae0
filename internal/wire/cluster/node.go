// Package cluster makes nodes of a crawl of several: an engine, a member and a strategy on a bus, and the control with
// which people steer the crawl. What a crawl of one machine needs is in package wire, which links nothing of this.
package cluster

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"time"

	"kumo/internal/advice"
	"kumo/internal/bus"
	"kumo/internal/bus/natsbus"
	"kumo/internal/member"
	"kumo/internal/node"
	"kumo/internal/secret"
	"kumo/internal/settings"
	"kumo/internal/stats"
	"kumo/internal/strategy"
	"kumo/internal/strategy/shard"
	"kumo/internal/vfs"
	"kumo/internal/wire"
)

// NodeOptions say what a node is in its cluster.
type NodeOptions struct {
	Name     string   // one word, unlike those of the other nodes
	Listen   string   // "host:port" of the server that runs in this process; "": none does
	Join     []string // addresses of any of the servers
	Servers  []string // addresses of all of them: 1, 3 or 5
	NATS     string   // or the URL of a NATS that is there already
	Secret   secret.Secret
	Replicas int    // with NATS: on how many of its servers things are kept; 0: one
	Preset   string // "lan" or "wan"; "": lan
	// Strategy says who crawls what: "shard", or with the way of its second level behind it, as "shard/ring"; "hub", or
	// "hub/paper". It is the same on all nodes.
	Strategy string
	Slots    int    // the largest number of nodes ever planned; 0: DefaultSlots
	Address  string // where this node can be asked; may be empty
	// Settle makes the crawl's settings, as its record has them, the job's. If it is set, the node waits until there are
	// some.
	Settle func(j *wire.Job, settings []settings.Setting) error
	Log    *slog.Logger // may be nil

	join   joiner         // in tests: another bus
	timing *member.Timing // likewise
}

// A joiner gives a node its bus.
type joiner func(strategy.Node) (bus.Bus, error)

// A Node is a process that takes part in a crawl, as one node after the other if it loses its place.
type Node struct {
	job     *wire.Job
	opts    NodeOptions
	disk    vfs.FS
	join    joiner
	cluster *natsbus.Cluster // nil in tests
	timing  member.Timing
	placing strategyConfig
	life    atomic.Pointer[session]
	leaving atomic.Bool
	home    *home
}

// OpenNode connects a process to its cluster, and starts the server that it runs for it, if any. It waits for the other
// servers until ctx ends. The caller closes the node.
func OpenNode(ctx context.Context, j *wire.Job, o NodeOptions) (*Node, error) {
	n := &Node{job: j, opts: o, disk: vfs.OS, join: o.join}
	if n.opts.Log == nil {
		n.opts.Log = slog.New(slog.DiscardHandler)
	}
	if err := n.check(); err != nil {
		return nil, err
	}
	n.home = findHome(j.Dir)
	if n.join != nil {
		return n, nil
	}
	cfg := o.bus(CrawlWord(j.Name), n.opts.Log)
	cfg.Dir = filepath.Join(j.Dir, clusterDir)
	var err error
	if n.cluster, err = natsbus.Open(ctx, cfg); err != nil {
		if ctx.Err() == nil { // it does not belong here
			err = errors.Join(err, n.home.clear())
		}
		return nil, err
	}
	n.join = func(node strategy.Node) (bus.Bus, error) { return n.cluster.Join(node) }
	return n, nil
}

// bus is the configuration of the bus.
func (o *NodeOptions) bus(crawl string, log *slog.Logger) natsbus.Config {
	return natsbus.Config{Name: o.Name, Crawl: crawl, Listen: o.Listen, Servers: o.Servers, Join: o.Join, Secret: o.Secret,
		NATS: o.NATS, Replicas: o.Replicas,
		Log: func(s string) { log.Info(s) }}
}

var unsafeInWords = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// CrawlWord is a crawl's name as the cluster has it: one word.
func CrawlWord(name string) string { return unsafeInWords.ReplaceAllString(name, "-") }

// check says what is wrong with the options.
func (n *Node) check() (err error) {
	switch {
	case n.job.Name == "":
		return advice.Usage("a crawl of several nodes needs a name")
	case n.job.Dir == "":
		return advice.Usage("a node keeps its part of the crawl in a folder: name one")
	}
	if n.timing, err = timing(n.opts.Preset); err != nil {
		return err
	}
	if n.opts.timing != nil {
		n.timing = *n.opts.timing
	}
	if n.placing, err = parseStrategy(n.opts.Strategy, n.opts.Preset, n.opts.Secret); err != nil {
		return err
	}
	if n.opts.Slots < 0 || n.opts.Slots > maxSlots {
		return advice.Usage("%d slots: there may be up to %d", n.opts.Slots, maxSlots)
	}
	n.placing.shard.Slots = cmp.Or(n.opts.Slots, DefaultSlots)
	return nil
}

// DefaultSlots is the largest number of nodes if nothing else is planned.
const DefaultSlots = shard.DefaultSlots

const maxSlots = 1 << 20

// Presets are the names that NodeOptions.Preset may have.
func Presets() []string { return []string{"lan", "wan"} }

func timing(preset string) (member.Timing, error) {
	switch preset {
	case "", "lan":
		return member.LAN(), nil
	case "wan":
		return member.WAN(), nil
	}
	return member.Timing{}, advice.Usage("preset %q: there are lan and wan", preset)
}

// Run takes part in the crawl until it is done (nil), was stopped (node.ErrStopped), the node has left (node.ErrLeft),
// or ctx ends. If the node is given up for dead, it begins again as another one; what it had is put aside. The report
// is that of its last life; nil if it had none.
func (n *Node) Run(ctx context.Context) (*stats.Report, error) {
	var report *stats.Report
	for ctx.Err() == nil {
		l, err := n.open(ctx)
		if err == nil {
			n.life.Store(l)
			if n.leaving.Load() {
				l.node.Leave()
			}
			report, err = l.run(ctx)
			n.life.Store(nil)
			err = errors.Join(err, l.close())
		}
		if errors.Is(err, errSettings) {
			n.opts.Log.Info("this node begins with the settings of the start", "why", err)
			continue
		}
		if n.refused(ctx, err) {
			return nil, errors.Join(err, n.clear())
		}
		if !errors.Is(err, node.ErrLost) {
			return report, err
		}
		n.opts.Log.Warn("this node begins again as another one", "why", err)
		if err := n.putAside(ctx); err != nil {
			return report, err
		}
	}
	return report, context.Cause(ctx)
}

// Leave asks the node to hand over all it has, and to leave.
func (n *Node) Leave() {
	n.leaving.Store(true)
	if l := n.life.Load(); l != nil {
		l.node.Leave()
	}
}

// Member reports whether the node is a member of the crawl at present: it holds a lease.
func (n *Node) Member() bool {
	l := n.life.Load()
	return l != nil && l.router.Until().After(time.Now())
}

// Status is what the node knows of itself.
func (n *Node) Status() NodeStatus {
	l := n.life.Load()
	if l == nil {
		return NodeStatus{Report: node.Report{Name: n.opts.Name, Version: wire.Version, State: node.Waiting,
			Clock: time.Now().UTC()}}
	}
	return NodeStatus{Node: l.id.Node(), Member: l.router.Until().After(time.Now()),
		Report: node.Report{Name: l.id.Name, Version: wire.Version,
			Address: n.opts.Address, Epoch: l.router.Epoch(), Slips: l.router.Slips(), Figures: l.figures(),
			Clock: time.Now().UTC()}}
}

// Crawl is the crawl as this node has it at present; nil before it takes part.
func (n *Node) Crawl() *wire.Crawl {
	if l := n.life.Load(); l != nil {
		return l.crawl
	}
	return nil
}

// Close ends the connection, and the server.
func (n *Node) Close() error {
	if n.cluster == nil {
		return nil
	}
	return n.cluster.Close()
}
