package mesh

import (
	"cmp"
	"log/slog"
	"time"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// Config configures a Machine.
type Config struct {
	Self    strategy.Node
	Overlay Overlay
	Backups int // of a host; 3
	// interval of queries whether a target still has its hosts; 10s, up to 1m while it has all of them
	CheckEvery time.Duration
	AbsentWait time.Duration // how long to wait for missing nodes while there are fewer than Backups; 20s
	AloneWait  time.Duration // how long a node that has lost all others leaves the others' hosts to them; DefaultAlone
	LostAfter  time.Duration // how long a node is missing before it counts as lost with its disk; DefaultLostAfter
	// Terms.Strategy is Strategy by default. With StrategyPaper, load moves by the paper's rules, at moments on which all
	// nodes agree, and history moves in whole lists.
	Terms      Terms
	MaxLookups int // concurrent lookups; 32
	MaxRoutes  int // remembered first backups of other nodes' hosts; 65536
	Width      int // significant bits of ids; fewer than xor.Bits for tests only
	// reports whether the engine has pending URLs of a host, or is fetching one
	HasPending func(host string) bool
	ReadChunk  func(ChunkID) ([]byte, error) // reads a chunk
	Balance    BalanceConfig
	Status     StatusConfig
	Pages      PageConfig
	Results    ResultsConfig
	Process    uint64 // differs for each process of a node
	Earlier    Earlier
	Log        *slog.Logger

	// whether a host's cookies are sent to the node that fetches it next, and accepted from other nodes
	ShareCookies bool
}

// A StatusConfig provides what a node reports about itself. Each function may be nil.
type StatusConfig struct {
	// reports whether the engine has no pending URLs, fetches none, and has no links for other nodes, and how often it
	// has received anything. nil: it is always idle
	Engine  func() (idle bool, received uint64)
	Figures func() (sums []int64, greatest []uint64) // the Figures and Max of a Tally
	// number of pages that this node has fetched, which never decreases; it stays in the sums when the node has gone.
	// nil: pages are not counted
	Pages  func() int64
	Report func() []byte // at most 1 KiB
}

// Earlier is the state that earlier processes of the node have left.
type Earlier struct {
	MetOthers bool                     // they had met other nodes
	Terms     AgreedTerms              // the crawl's; zero if not known
	Counts    map[strategy.Node]int64  // Machine.Counts
	Results   map[strategy.Node]Result // Machine.Results
	Record    RecordVersion            // the crawl's record
	Chunks    []ChunkID
	// the lists of pages at risk, by node and record file, with their lengths: this node's and copies of others'
	Risks map[strategy.Node]map[string]int64
}

func (cfg *Config) setDefaults() {
	cfg.Backups, cfg.CheckEvery = cmp.Or(cfg.Backups, 3), cmp.Or(cfg.CheckEvery, 10*time.Second)
	cfg.AbsentWait, cfg.AloneWait = cmp.Or(cfg.AbsentWait, 20*time.Second), cmp.Or(cfg.AloneWait, DefaultAlone)
	cfg.MaxLookups, cfg.MaxRoutes = cmp.Or(cfg.MaxLookups, 32), cmp.Or(cfg.MaxRoutes, 1<<16)
	cfg.Balance.Interval = cfg.Balance.LoadInterval()
	cfg.Terms.Strategy = cmp.Or(cfg.Terms.Strategy, Strategy)
	cfg.Width = cmp.Or(cfg.Width, xor.Bits)
	cfg.LostAfter = cmp.Or(cfg.LostAfter, DefaultLostAfter)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
}
