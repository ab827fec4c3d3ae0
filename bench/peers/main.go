// Peers compares kumo with other crawlers, and with itself, on the same made-up web. It builds what it needs, runs the
// crawlers in turn, and judges them by what the web's servers saw. ../README.md says what the figures mean.
//
//	go run -C bench/peers .                          kumo and all its peers
//	go run -C bench/peers . -peers loop,wget2        kumo and these
//	go run -C bench/peers . -case scale              kumo alone: scale, tls, slow, memory
//	go run -C bench/peers . -case cluster            kumo crawl beside clusters of 1, 2 and 4 nodes on this machine
//	go run -C bench/peers . -case batch              kumo batch run beside kumo crawl
//	go run -C bench/peers . -case ci                 fails when a page has become dearer than baseline.json says
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// options are what the flags say; a case has its own meaning for what is 0.
type options struct {
	what        string
	peers       string
	rounds      int
	hosts       int
	pages       int
	concurrency int
	scaleHosts  int
	renew       bool
	strategy    string
	seed        uint64
	limit       time.Duration
	window      time.Duration
	cache, out  string
}

// cases are what can be measured.
var cases = map[string]func(context.Context, *bench) error{
	"peers": comparePeers, "scale": measureScale, "tls": measureTLS, "slow": measureSlow, "memory": measureMemory,
	"ci": checkCost, "steps": measureSteps, "cluster": measureCluster, "batch": measureBatch,
}

func main() {
	var o options
	flag.StringVar(&o.what, "case", "peers", "what to measure: "+strings.Join(slices.Sorted(maps.Keys(cases)), ", "))
	flag.StringVar(&o.peers, "peers", "", "compare kumo with these, with commas (default: all that can be had)")
	flag.IntVar(&o.rounds, "rounds", 0, "run each this often, in turn (default: by the case; 3)")
	flag.IntVar(&o.hosts, "hosts", 0, "hosts of the web (default: by the case; 100)")
	flag.IntVar(&o.pages, "pages", 0, "pages of the web (default: by the case; 20000)")
	flag.IntVar(&o.concurrency, "concurrency", 0, "URLs worked on at once (default: by the case; 64)")
	flag.StringVar(&o.strategy, "strategy", "shard", "how the nodes of the case cluster share the hosts")
	flag.IntVar(&o.scaleHosts, "scale-hosts", 10_000, "hosts of the large web in the case scale, 20 pages each")
	flag.BoolVar(&o.renew, "renew", false, "record what the case ci measures, rather than compare it with what is "+
		"recorded")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the web")
	flag.DurationVar(&o.limit, "limit-time", 2*time.Minute,
		"end a peer's run after this time and count what it had fetched")
	flag.DurationVar(&o.window, "window", time.Minute, "how long the case slow warms up, and then measures")
	flag.StringVar(&o.cache, "cache", defaultCache(), "folder for programs that are built")
	flag.StringVar(&o.out, "out", "", "folder for what is crawled, removed after each run (default: one in memory "+
		"where there is one)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	measure, ok := cases[o.what]
	switch {
	case !ok:
		return fmt.Errorf("there is no case %q", o.what)
	case flag.NArg() > 0:
		return fmt.Errorf("%q is not a flag", flag.Arg(0))
	case o.rounds < 0:
		return fmt.Errorf("-rounds %d: at least one is needed", o.rounds)
	}
	b, err := newBench(ctx, o)
	if err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	return measure(ctx, b)
}

func defaultCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "kumo-bench")
}

// outDir makes a folder below parent, or below a file system in memory if there is none given.
func outDir(parent string) (string, error) {
	if parent == "" {
		parent = os.TempDir()
		if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
			parent = "/dev/shm"
		}
	}
	return os.MkdirTemp(parent, "kumo-bench-")
}
