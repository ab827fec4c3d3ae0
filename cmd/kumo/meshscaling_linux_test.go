package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kumo/internal/base/secret"
	"kumo/internal/lab/clusterdemo"
	"kumo/internal/lab/synthweb"
	"kumo/internal/lab/testmain"
)

const (
	scalingRate   = 4                // requests a second of a node
	scalingSample = 10 * time.Second // the paper's 3 minutes

	throttledDelay = 500 * time.Millisecond // between two requests to a host
)

// throttled is a set of nodes without servers whose request rate is limited, and a web for them.
type throttled struct {
	*testing.T
	dir, key, list string
	hosts          int
	server         *synthweb.Server
	addresses      []string
	nodes          []*exec.Cmd
}

func newThrottled(t *testing.T, most, hosts, pages int) *throttled {
	cfg := synthweb.Clean(1, hosts, pages)
	cfg.ByAddress = true
	web := synthweb.New(cfg)
	c := &throttled{T: t, dir: t.TempDir(), key: secret.New().Text(), hosts: hosts}
	var err error
	if c.server, err = synthweb.Serve(t.Context(), web, synthweb.ServeOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.server.Close() })
	if c.addresses, err = clusterdemo.FreeAddresses(most); err != nil {
		t.Fatal(err)
	}
	var seeds strings.Builder
	for i := range web.Len() {
		fmt.Fprintln(&seeds, web.URL(synthweb.Ref{Host: uint32(i)}, c.server.Port()))
	}
	c.list = filepath.Join(c.dir, "seeds")
	if err := os.WriteFile(c.list, []byte(seeds.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, n := range c.nodes {
			_ = n.Process.Kill()
			_ = n.Wait() // it was killed
		}
	})
	return c
}

func (c *throttled) kumo(args ...string) *exec.Cmd {
	cmd := exec.Command(kumoProgram(c.T), args...)
	cmd.Env = append(os.Environ(), secretVariable+"="+c.key)
	return cmd
}

// begin starts another node.
func (c *throttled) begin(rate float64, flags ...string) {
	c.Helper()
	i := len(c.nodes)
	args := []string{"node", "-q", "--crawl", "throttled", "--strategy",
		cmp.Or(os.Getenv("KUMO_TEST_STRATEGY"), "mesh"), "--no-lan", "--allow-private", "--name", fmt.Sprint("n", i), "--out", filepath.Join(c.dir, fmt.Sprint(i)), "--listen", c.addresses[i],
		"--memory", "64MB", "--min-free-disk", "0", "--max-rate", fmt.Sprint(rate)}
	if i > 0 {
		args = append(args, "--join", c.addresses[0])
	}
	n := c.kumo(append(args, flags...)...)
	if err := n.Start(); err != nil {
		c.Fatal(err)
	}
	c.nodes = append(c.nodes, n)
}

// start starts the crawl, once all nodes are connected.
func (c *throttled) start() {
	c.Helper()
	time.Sleep(5 * time.Second)
	said, err := c.kumo("start", "--crawl", "throttled", "--join", c.addresses[0], "-i", c.list, "--scope", "any",
		"--allow-private", "--ip-delay", "0", "--delay", throttledDelay.String(), "--contact",
		"https://example.org/test").CombinedOutput()
	if err != nil {
		c.Fatalf("kumo start: %v\n%s", err, said)
	}
}

// TestMeshScaling is the paper's first experiment with real processes: nodes of equal speed, two at first, two more
// after five samples and after ten, one more after fifteen. The speed should be linear in their number. It takes four
// minutes, and runs if KUMO_TEST_SCALING is set. KUMO_TEST_STRATEGY=mesh/paper selects the paper's method.
func TestMeshScaling(t *testing.T) {
	if os.Getenv("KUMO_TEST_SCALING") == "" {
		t.Skip("SKIPPED: it takes four minutes; set KUMO_TEST_SCALING to run it")
	}
	c := newThrottled(t, 7, 400, 400*60)
	begin := func(until int) {
		for len(c.nodes) < until {
			c.begin(scalingRate)
		}
	}
	begin(2)
	c.start()
	tick := time.NewTicker(scalingSample)
	defer tick.Stop()
	<-tick.C
	var sums [8]int64
	for sample := range 20 {
		begin(min(2+2*(sample/5), 7))
		before := c.server.Requests()
		<-tick.C
		got := c.server.Requests() - before
		t.Logf("sample %2d, %d nodes: %d requests", sample, len(c.nodes), got)
		if sample%5 > 0 { // in the first sample of a step, nodes are still joining
			sums[len(c.nodes)] += got
		}
	}
	for _, n := range []int{2, 4, 6, 7} {
		each := float64(sums[n]) / 4 / scalingSample.Seconds() / float64(n)
		t.Logf("%d nodes: %.2f requests a second each", n, each)
		if each < scalingRate*0.9 || each > scalingRate*1.1 {
			t.Errorf("with %d nodes each sends %.2f requests a second, of %d that it may", n, each, scalingRate)
		}
	}
}

// TestMeshBalance is the paper's experiment with eight nodes, 20 times as fast. A hash gives each the same number of
// hosts: without balancing the slowest would end last, after 20 times 1/8 of all URLs. It takes five minutes, and runs
// if KUMO_TEST_SCALING is set.
func TestMeshBalance(t *testing.T) {
	if os.Getenv("KUMO_TEST_SCALING") == "" {
		t.Skip("SKIPPED: it takes five minutes; set KUMO_TEST_SCALING to run it")
	}
	c := newThrottled(t, 8, 900, 900*5)
	took, best := c.crawl([]float64{4, 4, 1, 2, 4, 2, 2, 1}, scalingSample, 15*time.Minute)
	if took > best*13/10 {
		t.Errorf("the crawl took %v, more than 1.3 times %v", took, best)
	}
}

// TestMeshOfUnequalNodes has two fast nodes and a slow one, which owns a third of the hosts. Alone it would take four
// minutes for these.
func TestMeshOfUnequalNodes(t *testing.T) {
	testmain.Slow(t)
	c := newThrottled(t, 3, 240, 1800)
	if took, _ := c.crawl([]float64{20, 20, 2}, 4*time.Second, 4*time.Minute); took > 78*time.Second {
		t.Errorf("the crawl took %v: 60 s are required, 78 s are allowed for a busy machine", took)
	}
}

// crawl crawls the web with nodes of these rates, to the end. It returns how long that took, and how long it would take
// if all nodes worked at their rates all the time and no host moved.
func (c *throttled) crawl(rates []float64, sample, limit time.Duration) (took, best time.Duration) {
	c.Helper()
	sum := 0.0
	for _, r := range rates {
		c.begin(r, "--concurrency", "8")
		sum += r
	}
	c.start()
	began, next := time.Now(), sample
	for tick := time.Tick(100 * time.Millisecond); !c.ended(); <-tick {
		if took = time.Since(began); took > limit {
			c.Fatalf("the crawl has not ended after %v: %d requests\n%s", took, c.server.Requests(), c.server.Score())
		}
		if took >= next {
			next += sample
			c.Logf("%3.0f s: %5d requests, pages of each node %v", took.Seconds(), c.server.Requests(), c.pages())
		}
	}
	took = time.Since(began).Round(time.Second / 10)
	score := c.server.Score()
	// each host has a robots.txt
	best = time.Duration(float64(score.Truth+c.hosts) / sum * float64(time.Second)).Round(time.Second / 10)
	c.Logf("%d requests in %v, %.2f times the %v that the nodes' rates allow; pages of each node %v\n%s",
		score.Requests, took, took.Seconds()/best.Seconds(), best, c.pages(), score)
	if score.Missing > 0 || score.MostInFlight.Value > 1 || score.LeastGap.Value < throttledDelay {
		c.Error("pages are missing, or a host got two requests at once or too soon")
	}
	return took, best
}

// pages returns the number of pages that each node has fetched.
func (c *throttled) pages() (all []int) {
	for i := range c.nodes {
		data, err := os.ReadFile(filepath.Join(c.dir, fmt.Sprint(i), "pages.jsonl"))
		if err != nil && !os.IsNotExist(err) {
			c.Fatal(err)
		}
		all = append(all, bytes.Count(data, []byte("\n")))
	}
	return all
}

// ended reports whether all nodes have ended.
func (c *throttled) ended() bool {
	for _, n := range c.nodes {
		if n.Process.Signal(syscall.Signal(0)) == nil && !isZombie(n.Process.Pid) {
			return false
		}
	}
	return true
}

// isZombie reports whether a process has ended and was not waited for.
func isZombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}
