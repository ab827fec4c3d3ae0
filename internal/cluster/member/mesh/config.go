package mesh

import (
	"cmp"
	"log/slog"
	"time"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// DefaultInterval is a BalanceConfig's Interval.
const DefaultInterval = 30 * time.Second

// Config configures a Machine.
type Config struct {
	Self    strategy.Node
	Overlay Overlay
	Backups int // of a host; 3
	// how often a target is asked whether it has what was dispatched to it; 10s, 1m while it has
	CheckEvery time.Duration
	AbsentWait time.Duration // how long missing nodes are waited for while there are fewer than Backups; 20s
	AloneWait  time.Duration // how long a node that has lost all others leaves their hosts to them; DefaultAlone
	LostAfter  time.Duration // how long a node is missing before it counts as lost with its disk; DefaultLostAfter
	MaxLookups int           // look-ups at once, at most; 32
	MaxRoutes  int           // looked up first backups that are remembered; 65536
	Width      int           // bits of ids that count: fewer than xor.Bits for tests only
	// reports whether the engine has pending URLs of a host, or fetches one
	HasPending func(host string) bool
	ReadChunk  func(ChunkID) ([]byte, error) // reads a chunk
	Balance    BalanceConfig
	Status     StatusConfig
	Process    uint64 // differs for each process of a node
	Earlier    Earlier
	Log        *slog.Logger
}

// A StatusConfig has what a node reports about itself. Each function may be nil.
type StatusConfig struct {
	// reports whether the engine has no pending URLs, fetches none, and has no links for other nodes; and how often it
	// has received anything. nil: it is always idle
	Engine  func() (idle bool, received uint64)
	Figures func() (sums []int64, greatest []uint64) // the Figures and Max of a Tally
	// how many pages this node has fetched, a number that never falls; the sums keep it when the node has gone. nil: no
	// pages are counted
	Pages  func() int64
	Report func() []byte // 1 KiB or less
}

// Earlier is what earlier processes of the node have left.
type Earlier struct {
	MetOthers bool                    // they knew other nodes
	Counts    map[strategy.Node]int64 // Machine.Counts
	Record    RecordVersion           // the crawl's record
	Chunks    []ChunkID
	// the lists of pages at risk, by node and record file, with their lengths: this node's and copies of others'
	Risks map[strategy.Node]map[string]int64
}

func (cfg *Config) setDefaults() {
	cfg.Backups, cfg.CheckEvery = cmp.Or(cfg.Backups, 3), cmp.Or(cfg.CheckEvery, 10*time.Second)
	cfg.AbsentWait, cfg.AloneWait = cmp.Or(cfg.AbsentWait, 20*time.Second), cmp.Or(cfg.AloneWait, DefaultAlone)
	cfg.MaxLookups, cfg.MaxRoutes = cmp.Or(cfg.MaxLookups, 32), cmp.Or(cfg.MaxRoutes, 1<<16)
	cfg.Balance.Block = cmp.Or(cfg.Balance.Block, 20)
	cfg.Balance.Interval = cmp.Or(cfg.Balance.Interval, DefaultInterval)
	cfg.Width = cmp.Or(cfg.Width, xor.Bits)
	cfg.LostAfter = cmp.Or(cfg.LostAfter, DefaultLostAfter)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
}
