// Peers compares kumo with other crawlers, and with itself, on the same synthetic web. It builds the programs, runs the
// crawlers in turns, and evaluates the requests that the web's servers received. ../README.md explains the figures.
//
//	go run -C bench/peers .                          kumo and all its peers
//	go run -C bench/peers . -peers loop,wget2        kumo and these
//	go run -C bench/peers . -case scale              kumo alone: scale, tls, slow, memory
//	go run -C bench/peers . -case cluster            kumo crawl and clusters of 1, 2 and 4 nodes on this machine
//	go run -C bench/peers . -case batch              kumo batch run and kumo crawl
//	go run -C bench/peers . -case ci                 fail if a page costs more than baseline.json says
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

// options has the values of the flags; 0 selects a case's default.
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

// cases are the measurements.
var cases = map[string]func(context.Context, *bench) error{
	"peers": comparePeers, "scale": measureScale, "tls": measureTLS, "slow": measureSlow, "memory": measureMemory,
	"ci": checkCost, "steps": measureSteps, "cluster": measureCluster, "batch": measureBatch,
}

func main() {
	var o options
	flag.StringVar(&o.what, "case", "peers", "what to measure: "+strings.Join(slices.Sorted(maps.Keys(cases)), ", "))
	flag.StringVar(&o.peers, "peers", "", "peers to compare with, separated by commas (default: all available)")
	flag.IntVar(&o.rounds, "rounds", 0, "number of rounds (default: by the case; 3)")
	flag.IntVar(&o.hosts, "hosts", 0, "hosts of the web (default: by the case; 100)")
	flag.IntVar(&o.pages, "pages", 0, "pages of the web (default: by the case; 20000)")
	flag.IntVar(&o.concurrency, "concurrency", 0, "concurrent fetches (default: by the case; 64)")
	flag.StringVar(&o.strategy, "strategy", "shard", "strategy of the nodes in the case cluster")
	flag.IntVar(&o.scaleHosts, "scale-hosts", 10_000, "hosts of the large web in the case scale, 20 pages each")
	flag.BoolVar(&o.renew, "renew", false, "record the result of the case ci instead of comparing it with the "+
		"recorded")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the web")
	flag.DurationVar(&o.limit, "limit-time", 2*time.Minute,
		"stop a peer's run after this time and count the pages fetched by then")
	flag.DurationVar(&o.window, "window", time.Minute, "duration of the warm-up, and of the measurement, in the case slow")
	flag.StringVar(&o.cache, "cache", defaultCache(), "folder for built programs")
	flag.StringVar(&o.out, "out", "", "folder for crawl output, removed after each run (default: in memory "+
		"if possible)")
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
		return fmt.Errorf("unknown case %q", o.what)
	case flag.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	case o.rounds < 0:
		return fmt.Errorf("-rounds %d: must be at least 1", o.rounds)
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

// outDir creates a folder below parent; if that is empty, in a memory file system if there is one.
func outDir(parent string) (string, error) {
	if parent == "" {
		parent = os.TempDir()
		if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
			parent = "/dev/shm"
		}
	}
	return os.MkdirTemp(parent, "kumo-bench-")
}
