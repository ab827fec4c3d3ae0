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
	"kumo/internal/cluster/strategy/shard"
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
	// "hub/paper"; "balance"; or "mesh". It is the same on all nodes.
	Strategy string
	Splitter string // of balance: one of Splitters; the same on all nodes; "": exact
	// Of a node with the strategy mesh: Listen and Join may be multiaddresses, the port listened on 0 for any.
	Backups int    // nodes that remember the URLs of a host; the same on all nodes; 0: DefaultBackups
	Reach   string // whether others can connect to it: one of Reaches; "": auto
	LAN     bool   // look for nodes in the local network
	// LostAfter is after how long a node that is missed counts as lost with its disk; 0: as mesh.Config has it
	LostAfter time.Duration
	Slots     int    // the largest number of nodes ever planned; 0: DefaultSlots
	Address   string // where this node can be asked; may be empty
	// ApplySettings makes the crawl's settings, as its record has them, the job's. If it is set, the node waits until there are
	// some.
	ApplySettings func(j *job.Job, settings []settings.Setting) error
	NewUploader   session.NewUploader // brings the node's record files to a place; nil: they stay in its folder
	// ReadManifest reads what is in a node's place, by its URL; PlaceWait is how long that of a dead node is waited for.
	ReadManifest func(ctx context.Context, place string) (*away.Manifest, error)
	PlaceWait    time.Duration
	// CopyState copies the newest checkpoint of a node's state in its place into a folder; DropState removes them.
	CopyState func(ctx context.Context, place string, disk vfs.FS, dir string) (*away.State, error)
	DropState func(ctx context.Context, place string) error
	Log       *slog.Logger // may be nil

	timing *member.Timing // in tests: others than the preset's
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

// A Node is a process that takes part in a crawl.
type Node interface {
	// Run takes part until the crawl is done (nil), was stopped (node.ErrStopped), the node has left (node.ErrLeft), or
	// ctx ends. There may be a report also when there is an error.
	Run(ctx context.Context) (*stats.Report, error)
	Leave()                    // asks the node to hand over all it has, and to leave
	Member() bool              // it has a place among the others, and knows that it has it still
	Uploading() bool           // its part is over, and the rest of its record files is on its way to a place
	Session() *session.Session // the crawl as this node has it at present; nil before it takes part
	Close() error
}

// serverDir is where a node's folder has what its server keeps.
const serverDir = "cluster"

// OpenNode connects a process to its cluster, and starts the server that it runs for it, if any. It waits for the other
// servers until ctx ends. The caller closes the node.
func OpenNode(ctx context.Context, j *job.Job, o NodeOptions) (Node, error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Strategy == "mesh" {
		return openMeshNode(ctx, j, &o)
	}
	s, err := o.strategy()
	if err != nil {
		return nil, err
	}
	cfg := nodes.Config{
		Name:      o.Name,
		Address:   o.Address,
		Serves:    o.Listen != "",
		ServerDir: serverDir,
		Layout: s.layout(
			cmp.Or(o.Preset, "lan"),
		),
		Joining:       s.member,
		ApplySettings: o.ApplySettings,
		Open:          wire.OpenPart,
		NewUploader:   o.NewUploader,
		ReadManifest:  o.ReadManifest,
		CopyState:     o.CopyState,
		DropState:     o.DropState,
		PlaceWait:     o.PlaceWait,
		Log:           o.Log,
		Connect: func(ctx context.Context) (nodes.Connection, error) {
			cfg := o.bus(j.Name)
			cfg.Dir = filepath.Join(j.Dir, serverDir)
			c, err := natsbus.Open(ctx, cfg)
			if err != nil {
				return nil, err
			}
			return connection{c}, nil
		},
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
	s, err := parseStrategy(o.Strategy, o.Splitter, o.Preset, o.Secret)
	if err != nil {
		return nil, err
	}
	if o.Slots < 0 || o.Slots > maxSlots {
		return nil, advice.Usage("%d slots: there may be up to %d", o.Slots, maxSlots)
	}
	s.shard.Slots = cmp.Or(o.Slots, DefaultSlots)
	return &s, nil
}

func (o *NodeOptions) bus(crawl string) natsbus.Config {
	return natsbus.Config{Name: o.Name, Crawl: node.CrawlWord(crawl), Listen: o.Listen, Servers: o.Servers, Join: o.Join,
		Secret: o.Secret, NATS: o.NATS, Replicas: o.Replicas, Log: func(s string) { o.Log.Info(s) }}
}

// A connection gives buses as interfaces.
type connection struct{ *natsbus.Cluster }

func (c connection) Join(n strategy.Node) (bus.Bus, error) { return c.Cluster.Join(n) }
