// Seen compares kumo's URL database with Pebble, a log-structured merge tree. It offers URLs in batches as large as a
// page's links, 60 % of them repeats, and gets for each whether it is new.
//
//	go run . -n 10000000 -memory 256MB            kumo's database
//	go run . -n 10000000 -memory 256MB -pebble    Pebble, insert if absent
//
// Both make their data durable when memory is full, without a log: a crawl has its journal. In addition to the budget,
// Pebble's cache gets as much memory as kumo's filters take.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"

	"kumo/internal/state/seen/urlgen"
)

func main() {
	var cfg config
	memory := flag.String("memory", "256MB", "memory budget")
	flag.Int64Var(&cfg.n, "n", 10_000_000, "number of known URLs at the end; 2.5 times as many are offered")
	flag.StringVar(&cfg.dir, "dir", "", "folder for the files (default: a temporary one)")
	flag.IntVar(&cfg.batch, "batch", 40, "URLs per Offer")
	flag.IntVar(&cfg.payload, "payload", 0, "size in bytes of the data offered with a URL and returned with late results")
	flag.IntVar(&cfg.ratio, "ratio", 4, "files of a tier that are merged into one")
	flag.IntVar(&cfg.share, "share", 0, "decide pending URLs when there is one for so many known ones "+
		"(default: the database's)")
	flag.Uint64Var(&cfg.seed, "seed", 1, "seed of the URLs")
	flag.BoolVar(&cfg.fetched, "fetched", false, "at the end, record a visit for every URL, and measure the disk again "+
		"(kumo only)")
	usePebble := flag.Bool("pebble", false, "measure Pebble")
	profile := flag.String("cpuprofile", "", "write a CPU profile to this file")
	flag.Parse()
	var err error
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			fmt.Fprintln(os.Stderr, "seen:", err)
			os.Exit(1)
		}
		if pprof.StartCPUProfile(f) == nil {
			defer pprof.StopCPUProfile()
		}
	}
	if cfg.memory, err = megabytes(*memory); err == nil {
		err = run(cfg, *usePebble)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "seen:", err)
		os.Exit(1)
	}
}

type config struct {
	n, memory             int64
	dir                   string
	batch, payload, ratio int
	share                 int
	seed                  uint64
	fetched               bool
}

func megabytes(s string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSuffix(s, "MB"), 10, 64)
	return n << 20, err
}

// A database is a database to measure.
type database interface {
	offer(urls []string) error
	tend() error   // called after each offer
	busy() bool    // whether files are being merged
	finish() error // returns when all data is durable
	report() error
	close() error
}

func run(cfg config, usePebble bool) error {
	if cfg.dir == "" {
		dir, err := os.MkdirTemp("", "kumo-seen-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		cfg.dir = dir
	}
	open := openKumo
	if usePebble {
		open = openPebble
	}
	db, err := open(cfg)
	if err != nil {
		return err
	}
	if err := measure(cfg, db); err != nil {
		return err
	}
	fmt.Printf("peak RSS                  %.0f MB\n", peak())
	return db.close()
}

// measure offers URLs until the wanted number of them was new.
func measure(cfg config, db database) error {
	debug.SetGCPercent(30) // for both: their data is large and long-lived
	stream := urlgen.New(cfg.seed)
	var buf []byte
	ends, urls := make([]int, cfg.batch), make([]string, cfg.batch)
	var all, merging histogram
	var tenths, cpus []time.Duration
	var generating time.Duration
	offers, start := 0, time.Now()
	lap, used := start, cpu()
	for int64(stream.Generated()) < cfg.n {
		begin := time.Now()
		buf = buf[:0]
		for i := range ends {
			buf = stream.Append(buf)
			ends[i] = len(buf)
		}
		text, from := string(buf), 0
		for i, end := range ends {
			urls[i], from = text[from:end], end
		}
		generated := time.Now()
		busy := db.busy()
		if err := db.offer(urls); err != nil {
			return err
		}
		done := time.Now()
		if err := db.tend(); err != nil {
			return err
		}
		generating += generated.Sub(begin)
		all.add(done.Sub(generated))
		if busy {
			merging.add(done.Sub(generated))
		}
		offers += cfg.batch
		if int64(stream.Generated()) >= int64(len(tenths)+1)*cfg.n/10 {
			now := cpu()
			tenths, lap = append(tenths, done.Sub(lap)), done
			cpus, used = append(cpus, now-used), now
		}
	}
	offered := time.Since(start)
	if err := db.finish(); err != nil {
		return err
	}
	total := time.Since(start)
	rate := func(d time.Duration, n float64) float64 { return n / d.Seconds() }
	tenth := float64(offers) / 10
	fmt.Printf("offered                   %d URLs in batches of %d, %d meant to be new\n", offers, cfg.batch,
		stream.Generated())
	fmt.Printf("URLs a second             %.0f overall, %.0f in the first tenth, %.0f in the last, %.0f until all was "+
		"durable\n",
		rate(offered, float64(offers)), rate(tenths[0], tenth), rate(tenths[len(tenths)-1], tenth),
		rate(total, float64(offers)))
	fmt.Printf("  of that the generator   %.0f %%; without it %.0f URLs a second\n",
		100*generating.Seconds()/offered.Seconds(), rate(offered-generating, float64(offers)))
	fmt.Printf("tenths, seconds           %.1f\n", seconds(tenths))
	fmt.Printf("  of CPU time             %.1f, all goroutines\n", seconds(cpus))
	fmt.Printf("an Offer                  p50 %v, p99 %v, p99.9 %v, max %v\n", all.at(.5), all.at(.99), all.at(.999),
		all.at(1))
	fmt.Printf("an Offer during a merge   p50 %v, p99 %v, p99.9 %v (%d of them)\n",
		merging.at(.5), merging.at(.99), merging.at(.999), merging.len())
	return db.report()
}

func seconds(all []time.Duration) (out []float64) {
	for _, d := range all {
		out = append(out, d.Seconds())
	}
	return out
}

// A histogram counts times in microseconds. Long times are kept individually.
type histogram struct {
	short [2000]int
	long  []time.Duration
	n     int
}

func (h *histogram) add(d time.Duration) {
	h.n++
	if i := d.Microseconds(); i < int64(len(h.short)) {
		h.short[i]++
		return
	}
	h.long = append(h.long, d)
}

func (h *histogram) len() int { return h.n }

// at returns the q-quantile.
func (h *histogram) at(q float64) time.Duration {
	rest := int(q * float64(h.n))
	for i, n := range h.short {
		if rest -= n; rest <= 0 {
			return time.Duration(i+1) * time.Microsecond
		}
	}
	slices.Sort(h.long)
	return h.long[min(rest, len(h.long))-1].Round(10 * time.Microsecond)
}

// cpu returns the CPU time of the process; 0 if the system does not report it.
func cpu() (d time.Duration) {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // fields after the command name
	for _, ticks := range strings.Fields(rest)[11:13] {
		n, _ := strconv.Atoi(ticks)
		d += time.Duration(n) * time.Second / 100
	}
	return d
}

// peak returns the peak memory of the process in MB; 0 if the system does not report it.
func peak() float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kb, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, _ := strconv.ParseFloat(kb, 64)
	return n / 1024
}
