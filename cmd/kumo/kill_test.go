package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kumo/internal/lab/synthweb"
	"kumo/internal/lab/testmain"
	"kumo/internal/state/store/jsonl"
	"kumo/internal/state/store/storetest"
)

// TestKill ends crawls at random instants, most of them by SIGKILL, until it has done so KUMO_TEST_KILLS times (10 or
// 20; 5 where time is short), and then lets the last process finish. Each process has its own settings. In the end no
// page may be missing, no file may contradict another, and the servers may have seen no more repeated requests than the
// kills explain. KUMO_TEST_SEED replays the choices of a run.
func TestKill(t *testing.T) {
	t.Parallel()
	kills := uint64(testmain.Rounds(10, 20))
	if testing.Short() {
		kills = 5
	}
	want, seed := int(number("KUMO_TEST_KILLS", kills)), number("KUMO_TEST_SEED", rand.Uint64()>>1)
	t.Logf("KUMO_TEST_SEED=%d", seed)
	for n, ended := uint64(0), 0; ended < want; n++ {
		k := newKiller(t, seed+n, want-ended)
		k.crawl()
		k.judge()
		ended += len(k.lives) - 1
	}
}

func number(env string, otherwise uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(env), 10, 64); err == nil {
		return n
	}
	return otherwise
}

const (
	killDelay = 25 * time.Millisecond
	forDisk   = 200 * time.Millisecond // the longest time that a commit may take
)

// A killer runs one crawl in many processes.
type killer struct {
	*testing.T
	dice   *rand.Rand
	server *synthweb.Server
	hosts  int
	kills  int // after this many, a process runs to its end
	dir    string
	rules  string // a file
	lives  []life
	bound  int64 // of the number of repeated pages

	mu    sync.Mutex // guards the fields below
	beats []beat
}

// A life is one process.
type life struct {
	end   string
	start time.Duration // until its first request
}

// A beat is the number of requests at a time.
type beat struct {
	at time.Time
	n  int64
}

func newKiller(t *testing.T, seed uint64, kills int) *killer {
	k := &killer{T: t, dice: rand.New(rand.NewPCG(seed, 0)), dir: filepath.Join(t.TempDir(), "crawl"), hosts: 25 + kills/4,
		kills: kills}
	cfg := synthweb.Clean(seed, k.hosts, 80*kills)
	cfg.MedianSize, cfg.Latency, cfg.Spread = 4<<10, 4*time.Millisecond, -1
	// Copies are few: of many in one pattern, the trap guard would exclude the last as they bring nothing new.
	for kind, n := range map[synthweb.Kind]int{synthweb.Copy: 15, synthweb.Flaky: 10, synthweb.Lure: 10,
		synthweb.Script: 10, synthweb.Open: 10,
		synthweb.Hop2: 20, synthweb.Loop: 5, synthweb.Session: 10, synthweb.Image: 100, synthweb.Style: 100} {
		cfg.Kinds[kind] = n
	}
	cfg.Slow, cfg.CrawlDelay = 60*time.Millisecond, 80*time.Millisecond
	cfg.Traits = map[synthweb.Trait]int{synthweb.Gzip: 700, synthweb.Chunked: 300, synthweb.Closing: 100,
		synthweb.Delay: 100,
		synthweb.Slow:  100, synthweb.Refused: 1}
	s, err := synthweb.Serve(t.Context(), synthweb.New(cfg), synthweb.ServeOptions{DNS: true,
		Truth: synthweb.TruthOptions{Embeds: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	k.server = s
	k.rules = filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(k.rules, []byte(pageRules), 0o600); err != nil {
		t.Fatal(err)
	}
	return k
}

// crawl runs one process after another until one completes the crawl.
func (k *killer) crawl() {
	stop := make(chan struct{})
	var watch sync.WaitGroup
	defer watch.Wait()
	defer close(stop)
	watch.Go(func() { k.watch(stop) })
	for !k.live() {
	}
}

// watch records the number of requests over time.
func (k *killer) watch(stop <-chan struct{}) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case now := <-tick.C:
			k.mu.Lock()
			k.beats = append(k.beats, beat{now, k.server.Requests()})
			k.mu.Unlock()
		}
	}
}

// between returns the number of requests between two times.
func (k *killer) between(from, to time.Time) int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	first, last := int64(-1), int64(0)
	for _, b := range k.beats {
		if b.at.Before(from) {
			first = b.n
		}
		if last = b.n; b.at.After(to) {
			break
		}
	}
	return last - max(first, 0)
}

// firstAfter returns the time until the first request after a given time.
func (k *killer) firstAfter(at time.Time, n int64) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.beats, func(b beat) bool { return b.at.After(at) && b.n > n })
	if i < 0 {
		return 0
	}
	return k.beats[i].at.Sub(at)
}

func pick[T any](dice *rand.Rand, of ...T) T { return of[dice.IntN(len(of))] }

// live runs one process to its end, and reports whether the crawl is done.
func (k *killer) live() (done bool) {
	connections := pick(k.dice, 8, 16, 32)
	commit := time.Duration(1+k.dice.IntN(pick(k.dice, 10, 100))) * time.Millisecond
	args := []string{"crawl", "-q", "-o", k.dir, "--delay", killDelay.String(), "--ip-delay", "0", "--scope", "any",
		"--allow-private", "--embeds", "--fields", k.rules, "--order", pick(k.dice, "depth", "pagerank", "pagerank", "opic"),
		"--contact", "test@example.org", "--dns-server", k.server.DNS(), "-c", strconv.Itoa(connections), "--commit",
		commit.String(),
		"--checkpoint", pick(k.dice, "1KiB", "16KiB", "256KiB", "64MiB"), "--memory", pick(k.dice, "1MiB", "2MiB", "64MiB"),
		"--warc-size", pick(k.dice, "100KB", "1MB", "1GB"), k.server.SeedURLs()[0]}
	cmd := exec.Command(kumoProgram(k.T), args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	before, began := k.server.Requests(), time.Now()
	if err := cmd.Start(); err != nil {
		k.Fatal(err)
	}
	end, times := k.ending()
	over := make(chan struct{})
	var ending sync.WaitGroup
	var struck time.Time
	ending.Go(func() { struck = strike(cmd.Process, times, end, over) })
	err := cmd.Wait()
	ended := time.Now()
	close(over)
	ending.Wait()
	wantVerified(k.T, k.dir)
	if err == nil {
		end = "done"
	}
	k.lives = append(k.lives, life{end, k.firstAfter(began, before)})
	code := cmd.ProcessState.ExitCode()
	switch {
	case code >= 0 && code != exitDone && (code != exitInterrupted || end == "none"):
		k.Fatalf("process %d, %q, to be ended by %s: exit code %d\n%s", len(k.lives), args, end, code, said.String())
	case end == "kill" || end == "twice":
		// In flight, or finished since the last commit: the last one may have begun without reaching the disk.
		since := struck.Add(-2*commit - forDisk)
		if since.Before(began) {
			since = began
		}
		k.bound += int64(connections) + k.between(since, ended)
	}
	return err == nil
}

// ending chooses how a process ends, and when it receives signals.
func (k *killer) ending() (end string, at []time.Duration) {
	end = pick(k.dice, "kill", "kill", "kill", "kill", "terminate", "interrupt", "twice")
	if runtime.GOOS == "windows" {
		end = "kill"
	}
	if len(k.lives) >= k.kills {
		return "none", nil
	}
	reach := pick(k.dice, 100, 400, 800) // during the start, often
	at = append(at, time.Duration(10+k.dice.IntN(reach))*time.Millisecond)
	if end == "twice" {
		at = append(at, time.Duration(k.dice.IntN(60))*time.Millisecond)
	}
	return end, at
}

// strike sends a process its signals, unless it is over before, and returns when it sent the first.
func strike(p *os.Process, after []time.Duration, end string, over <-chan struct{}) (first time.Time) {
	signal := map[string]os.Signal{"kill": os.Kill, "terminate": syscall.SIGTERM, "interrupt": os.Interrupt,
		"twice": os.Interrupt}[end]
	for _, d := range after {
		select {
		case <-over:
			return first
		case <-time.After(d):
		}
		if first.IsZero() {
			first = time.Now()
		}
		_ = p.Signal(signal) // it may just have ended
	}
	return first
}

// judge checks the crawl, by its files and by the servers' logs.
func (k *killer) judge() {
	k.Helper()
	ends := map[string]int{}
	var starts []time.Duration
	for _, l := range k.lives {
		ends[l.end]++
		if l.start > 0 {
			starts = append(starts, l.start)
		}
	}
	slices.Sort(starts)
	score := k.server.Score()
	twice := score.Repeats + score.RepeatsOther
	k.Logf("ended %v; %d pages fetched, %d twice, at most %d may be; %d requests for robots.txt of %d hosts; least "+
		"gap %v; from start to first request: median %v, most %v", fmt.Sprint(ends)[3:], score.Covered, twice, k.bound,
		score.Robots,
		k.hosts,
		score.LeastGap.Value, starts[len(starts)/2].Round(time.Millisecond), starts[len(starts)-1].Round(time.Millisecond))
	if score.Missing > 0 || score.Beyond > 0 || score.Forbidden > 0 || score.BeforeRobots > 0 || score.Hasty > 0 {
		k.Errorf("the servers saw:\n%s", score)
	}
	if twice > k.bound {
		k.Errorf("%d were fetched twice, at most %d may be", twice, k.bound)
	}
	if gap := score.LeastGap; gap.Value < killDelay-5*time.Millisecond {
		k.Errorf("%s was asked after %v", gap.Host, gap.Value)
	}
	if most := int64(2*k.hosts + len(k.lives)); score.Robots > most {
		k.Errorf("%d requests for robots.txt, at most %d should be", score.Robots, most)
	}
	storetest.CheckConsistent(k.T, k.dir)
	k.wantRecords()
}

const pageRules = `- {name: page, url: ., fields: {title: title, links: {css: a, attr: href, type: url, list: true}}}`

// wantRecords makes sure that each visit of a page has one line in fields.jsonl.
func (k *killer) wantRecords() {
	count := func(name string, visitOf func(line string) string) map[string]int {
		text, err := os.ReadFile(filepath.Join(k.dir, name))
		if err != nil {
			k.Fatal(err)
		}
		visits := map[string]int{}
		for line := range strings.Lines(string(text)) {
			if visit := visitOf(line); visit != "" {
				visits[visit]++
			}
		}
		return visits
	}
	records := count("fields.jsonl", func(line string) string {
		f, err := jsonl.ParseFields([]byte(strings.TrimSpace(line)))
		if err != nil {
			k.Errorf("%s: %v", line, err)
		}
		return f.URL + f.Time.String()
	})
	pages := count("pages.jsonl", func(line string) string {
		p, err := jsonl.ParsePage([]byte(strings.TrimSpace(line)))
		if err != nil || p.Status != 200 || p.Title == "" || p.NoIndex || p.NoArchive {
			return ""
		}
		return p.URL + p.Time.String()
	})
	for visit, n := range records {
		if n > 1 {
			k.Errorf("%d records of the visit %s", n, visit)
		}
	}
	for visit := range pages {
		if records[visit] == 0 {
			k.Errorf("no record of the visit %s", visit)
		}
	}
	if len(pages) == 0 {
		k.Error("no page has a title")
	}
}
