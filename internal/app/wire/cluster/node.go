// Package cluster builds the nodes of a clustered crawl, with their strategy and bus, and clients that control the
// crawl. Package wire has the parts for one machine; it does not link this package.
package cluster

import (
	"cmp"
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/app/node"
	"kumo/internal/app/session"
	"kumo/internal/app/session/nodes"
	"kumo/internal/app/wire"
	"kumo/internal/archive/away"
	"kumo/internal/base/advice"
	"kumo/internal/base/machine"
	"kumo/internal/base/secret"
	"kumo/internal/base/settings"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/bus/natsbus"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/hub"
	"kumo/internal/cluster/strategy/shard"
	"kumo/internal/engine/crawl"
)

// NodeOptions configure a node of a cluster.
type NodeOptions struct {
	Name     string   // a single word, unique in the cluster
	Listen   string   // "host:port" of this process's server; "": none
	Join     []string // addresses of some of the servers
	Servers  []string // addresses of all servers: 1, 3 or 5
	NATS     string   // URL of an existing NATS, instead
	Secret   secret.Secret
	Replicas int    // with NATS: number of servers that store the data; 0: one
	Preset   string // "lan" or "wan"; "": lan
	// Strategy determines which node crawls which hosts: "shard", or with the method of its second level, "shard/ring";
	// "hub", or "hub/paper"; "balance", or "balance/paper"; "mesh", or "mesh/paper". It must be the same on all nodes.
	Strategy string
	Splitter string    // for balance: one of Splitters; the same on all nodes; "": exact
	Learning *Learning // for balance/paper; the same on all nodes; nil: PaperLearning
	HashBy   string    // for shard: the part of a URL that is hashed, one of HashKeys; the same on all nodes; "": host
	// For hub: timeout of a first connection to a host.
	ConnectTimeout ConnectTimeout
	// For mesh: Listen and Join may be multiaddresses; port 0 in Listen means any.
	Backups int    // nodes that remember a host's URLs; the same on all nodes; 0: DefaultBackups
	Reach   string // whether other nodes can connect to it: one of Reaches; "": auto
	LAN     bool   // look for nodes in the local network
	// LostAfter is the time until a missing node counts as lost with its disk; 0: mesh.Config's default.
	LostAfter time.Duration
	// ShareCookies has a host's cookies move with it, to and from other nodes with ShareCookies. With the other
	// strategies they always do.
	ShareCookies bool
	// For mesh/paper: the URLs in a block of load, and the interval between updates of loads, the same on all nodes; 0:
	// as the other nodes. WorkArea is the number of blocks that this node works on; 0: computed from its rates.
	BlockSize    int
	BalanceEvery time.Duration
	WorkArea     int
	Slots        int    // maximum number of nodes ever planned; 0: DefaultSlots
	Address      string // of this node's API; may be empty
	Browser      string // program that renders pages; "" if the node has none
	// ApplySettings applies the settings of the crawl's record to the job. If it is set, the node waits until there are
	// settings.
	ApplySettings func(j *job.Job, settings []settings.Setting) error
	NewUploader   session.NewUploader // nil: record files stay in the node's folder
	NewSender     session.NewSender   // nil: records are not sent to the crawl's sinks
	// Ending is called before each session of the node is closed, except with mesh, where Close closes it; may be nil.
	Ending func()
	// ReadManifest reads the manifest of a node's storage location, by its URL. PlaceWait limits the wait for that of a
	// dead node.
	ReadManifest func(ctx context.Context, place string) (*away.Manifest, error)
	PlaceWait    time.Duration
	// CopyState copies the newest uploaded checkpoint of a node's state into a folder. DropState deletes the uploaded
	// checkpoints.
	CopyState func(ctx context.Context, place string, disk vfs.FS, dir string) (*away.State, error)
	DropState func(ctx context.Context, place string) error
	Resources crawl.Resources // of a process with several crawls; nil: the crawl has them all
	Log       *slog.Logger    // may be nil

	// Creates lets a client add the crawl to servers that several crawls share, with Strategy and Splitter. By is the
	// user.
	Creates bool
	By      string

	timing *member.Timing // only in tests; overrides Preset
	host   *hosted        // nil: the servers serve only this crawl
}

// A ConnectTimeout is the timeout of the strategy hub for a first connection to a host. It adapts to the node's load
// between Min and Max. Zero means the preset's value or, if Initial is set, Initial/4 and 2*Initial for the bounds.
type ConnectTimeout struct{ Initial, Min, Max time.Duration }

// maxConnectTimeout bounds the values of a ConnectTimeout.
const maxConnectTimeout = time.Minute

// leastRetryDelay is the lower bound of the wait before hosts are retried that no node has reached.
const leastRetryDelay = time.Second

// applyTo sets the timeouts of a configuration. Hosts that no node has reached are retried with at least the preset's
// timeout. With a shorter timeout than the preset's, more hosts need a second try, and each attempt took less time, so
// they wait less for it.
func (t ConnectTimeout) applyTo(c *hub.Config) error {
	if t == (ConnectTimeout{}) {
		return nil
	}
	if t.Initial > 0 {
		if t.Initial < c.Timeout {
			scaled := time.Duration(float64(c.RetryDelay) * float64(t.Initial) / float64(c.Timeout))
			c.RetryDelay = min(c.RetryDelay, max(scaled, leastRetryDelay))
		}
		c.Timeout, c.MinTimeout, c.MaxTimeout = t.Initial, t.Initial/4, 2*t.Initial
	}
	c.MinTimeout, c.MaxTimeout = cmp.Or(t.Min, min(c.MinTimeout, c.Timeout)), cmp.Or(t.Max, max(c.MaxTimeout, c.Timeout))
	c.RetryTimeout = max(c.RetryTimeout, 4*c.Timeout)
	switch {
	case min(t.Initial, t.Min, t.Max) < 0 || c.MinTimeout < time.Millisecond:
		return advice.Usage("connection timeout %v, from %v to %v: the least is 1ms", c.Timeout, c.MinTimeout, c.MaxTimeout)
	case max(c.Timeout, c.MaxTimeout) > maxConnectTimeout:
		return advice.Usage("connection timeout %v, at most %v: the maximum is %v", c.Timeout, c.MaxTimeout,
			maxConnectTimeout)
	case c.MinTimeout > c.Timeout || c.Timeout > c.MaxTimeout:
		return advice.Usage("connection timeout %v is not between %v and %v: set --connect-timeout, "+
			"--connect-timeout-min and --connect-timeout-max accordingly", c.Timeout, c.MinTimeout, c.MaxTimeout)
	}
	return nil
}

// DefaultSlots is the default maximum number of nodes.
const DefaultSlots = shard.DefaultSlots

const maxSlots = 1 << 20

// Presets returns the values of NodeOptions.Preset.
func Presets() []string { return []string{"lan", "wan"} }

func timing(preset string) (member.Timing, error) {
	switch preset {
	case "", "lan":
		return member.LAN(), nil
	case "wan":
		return member.WAN(), nil
	}
	return member.Timing{}, advice.Usage("preset %q: use lan or wan", preset)
}

// A Node is a process that takes part in a crawl.
type Node interface {
	// Run takes part in the crawl until it is done (nil), was stopped (node.ErrStopped), the node has left
	// (node.ErrLeft), or ctx ends. It may return a report even with an error.
	Run(ctx context.Context) (*stats.Report, error)
	Leave()                    // starts the transfer of all data to other nodes; the node then ends
	Member() bool              // reports whether it currently has a confirmed place in the crawl
	Uploading() bool           // reports whether only the upload of its record files continues
	CheckAlive() error         // fails if the node is stuck; blocks while it is
	CheckReady() error         // fails unless the node has its place in the crawl, or waits for the crawl's start
	Session() *session.Session // returns the node's current part of the crawl; nil before it takes part
	Close() error
}

// serverDir is the subfolder for the data of the node's server.
const serverDir = "cluster"

// OpenNode connects a process to its cluster and starts its server, if it runs one. It waits for the other servers
// until ctx ends. The caller closes the node.
func OpenNode(ctx context.Context, j *job.Job, o NodeOptions) (Node, error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if IsMesh(o.Strategy) {
		return openMeshNode(ctx, j, &o)
	}
	s, err := o.strategy()
	if err != nil {
		return nil, err
	}
	cfg := nodes.Config{Name: o.Name, Address: o.Address, Browser: o.Browser, Serves: o.Listen != "", ServerDir: serverDir,
		Layout: s.layout(cmp.Or(o.Preset, "lan")), Joining: s.member, ApplySettings: o.ApplySettings, Open: wire.OpenPart,
		CompleteFiles: wire.CompleteFiles, NewUploader: o.NewUploader, NewSender: o.NewSender, Ending: o.Ending,
		ReadManifest: o.ReadManifest, CopyState: o.CopyState, DropState: o.DropState, PlaceWait: o.PlaceWait, Log: o.Log,
		Connect: func(ctx context.Context) (nodes.Connection, error) {
			if o.host != nil {
				return o.host.connect(ctx)
			}
			cfg := o.bus(j.Name)
			cfg.Dir = filepath.Join(j.Dir, serverDir)
			c, err := natsbus.Open(ctx, cfg)
			if err != nil {
				return nil, err
			}
			return connection{c}, nil
		},
	}
	if o.host != nil {
		cfg.Turns, cfg.Resources = o.host, o.Resources
	}
	if s.balance != nil {
		cfg.Limits = machine.NewLimits
	}
	if cfg.Timing, err = timing(o.Preset); err != nil {
		return nil, err
	}
	if o.timing != nil {
		cfg.Timing = *o.timing
	}
	return nodes.Open(ctx, j, cfg)
}

func (o *NodeOptions) strategy() (*strategyConfig, error) {
	s, err := o.parseStrategy()
	if err != nil {
		return nil, err
	}
	if o.Slots < 0 || o.Slots > maxSlots {
		return nil, advice.Usage("%d slots: the maximum is %d", o.Slots, maxSlots)
	}
	switch {
	case s.hub != nil:
		if err := o.ConnectTimeout.applyTo(s.hub); err != nil {
			return nil, err
		}
	case o.ConnectTimeout != (ConnectTimeout{}):
		return nil, advice.Usage("a connection timeout of the node is for the strategy hub, not for %s: "+
			"give --connect-timeout to kumo start", cmp.Or(o.Strategy, "shard"))
	}
	s.shard.Slots = cmp.Or(o.Slots, DefaultSlots)
	return &s, nil
}

func (o *NodeOptions) bus(crawl string) natsbus.Config {
	return natsbus.Config{Name: o.Name, Crawl: node.CrawlWord(crawl), Listen: o.Listen, Servers: o.Servers, Join: o.Join,
		Secret: o.Secret, NATS: o.NATS, Replicas: o.Replicas, Log: func(s string) { o.Log.Info(s) }}
}

// A connection returns buses as interfaces.
type connection struct{ *natsbus.Cluster }

func (c connection) Join(n strategy.Node) (bus.Bus, error) { return c.Cluster.Join(n) }
