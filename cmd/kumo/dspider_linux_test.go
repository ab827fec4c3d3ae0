package main

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kumo/internal/app/inspect"
	"kumo/internal/lab/netlab"
)

// A spiderRun is one point of the experiments of the DSpider paper, with real processes: a control unit and nodes in
// network namespaces, and delays between nodes and hosts.
type spiderRun struct {
	strategy string
	network  string // "lan" or "wan"
	nodes    int
	timeout  int // of a connection, in ticks

	places       int // files that a node fetches at once
	tick         time.Duration
	hosts, files int // hosts of the web, and files of a host
}

// A spiderResult has the paper's measures.
type spiderResult struct {
	speed, srcuse, communicate, duplicate float64 // f/T, f/10T, 1/100T, 1/10,000
	missed                                float64 // share of the files that were not fetched
	counted                               int64   // duplicates by the nodes' count
	duplicates                            int     // by the server's log
	took                                  time.Duration
}

const (
	spiderLTB     = 25.0            // bandwidth of the LAN in f/T, in equal parts for the nodes
	spiderWAB     = 5.0             // bandwidth of a node in the WAN
	spiderSilence = 6 * time.Second // without a request, after which the speed of all nodes counts as 0
	spiderMost    = 150 * time.Second
)

// TestDSpider repeats both experiments of the DSpider paper with processes, and logs their tables. The web is smaller
// than the paper's: KUMO_TEST_DSPIDER_HOSTS hosts (30) with KUMO_TEST_DSPIDER_FILES files (14); T is
// KUMO_TEST_DSPIDER_TICK ms (40). KUMO_TEST_DSPIDER_STRATEGIES (hub/paper,hub) names the strategies, and KUMO_TEST_SEED
// the web and the delays. A node fetches KUMO_TEST_DSPIDER_PLACES files at once (1). KUMO_TEST_DSPIDER_STEP is the step
// of the numbers of nodes and the timeouts (2).
func TestDSpider(t *testing.T) {
	if testing.Short() || os.Getenv("KUMO_TEST_DSPIDER") == "" {
		t.Skip("SKIPPED: it takes 20 minutes, and root; set KUMO_TEST_DSPIDER to run it")
	}
	seed := number("KUMO_TEST_SEED", rand.Uint64N(1<<40))
	t.Logf("KUMO_TEST_SEED=%d", seed)
	base := spiderRun{tick: time.Duration(number("KUMO_TEST_DSPIDER_TICK", 40)) * time.Millisecond,
		places: int(number("KUMO_TEST_DSPIDER_PLACES", 1)),
		hosts:  int(number("KUMO_TEST_DSPIDER_HOSTS", 30)), files: int(number("KUMO_TEST_DSPIDER_FILES", 14))}
	step := int(max(1, number("KUMO_TEST_DSPIDER_STEP", 2)))
	for _, strategy := range strings.Split(strategyOf("KUMO_TEST_DSPIDER_STRATEGIES", "hub/paper,hub"), ",") {
		base.strategy = strategy
		var nodes, timeouts []spiderRun
		for _, network := range []string{"lan", "wan"} {
			r := base
			for r.network, r.timeout, r.nodes = network, 5, 3; r.nodes <= 7; r.nodes += step {
				nodes = append(nodes, r)
			}
			for r.nodes, r.timeout = 3, 3; r.timeout <= 7; r.timeout += step {
				timeouts = append(timeouts, r)
			}
		}
		done := map[spiderRun]spiderResult{} // one point is in both experiments
		spiderTable(t, seed, "experiment 1", nodes, done)
		spiderTable(t, seed, "experiment 2", timeouts, done)
	}
}

// spiderTable runs some points and prints each as a row of a table when it is done.
func spiderTable(t *testing.T, seed uint64, name string, runs []spiderRun, done map[spiderRun]spiderResult) {
	fmt.Printf("\n%s, %s, %d at once, seed %d\n\n| nodes | timeout | place | speed f/T | srcuse f/10T | "+
		"communicate 1/100T | duplicate 1/10,000 | not fetched | duplicates seen, counted | s |\n"+
		"|---|---|---|---|---|---|---|---|---|---|\n",
		name, runs[0].strategy, runs[0].places, seed)
	for _, r := range runs {
		t.Run(fmt.Sprintf("%s-%s-%d-%dT", strings.ReplaceAll(r.strategy, "/", "-"), r.network, r.nodes, r.timeout),
			func(t *testing.T) {
				x, again := done[r]
				if !again {
					x = r.run(t, seed)
					done[r] = x
				}
				fmt.Printf("| %d | %dT | %s | %.2f | %.2f | %.1f | %.0f | %.1f %% | %d, %d | %.0f |\n", r.nodes,
					r.timeout, strings.ToUpper(r.network), x.speed, x.srcuse, x.communicate, x.duplicate, 100*x.missed,
					x.duplicates, x.counted, x.took.Seconds())
				if r.strategy == "hub" && (x.missed > 0 || x.duplicates > 0) {
					t.Errorf("%.1f %% of the files were not fetched, %d twice", 100*x.missed, x.duplicates)
				}
			})
	}
}

func (r *spiderRun) run(t *testing.T, seed uint64) spiderResult {
	dice := rand.New(rand.NewPCG(seed, 8))
	web := newSpiderWeb(dice, r.hosts, r.files)
	c := newLabCluster(t, fmt.Sprintf("dspider-%d-%s-%s-%d-%d", seed, filepath.Base(r.strategy), r.network, r.nodes,
		r.timeout), seed, r.strategy, r.nodes, r.nodes)
	c.natsInLab()
	web.pace = time.Duration(float64(r.tick) / spiderWAB)
	if r.network == "lan" {
		web.pace = time.Duration(float64(r.tick) * float64(r.nodes) / spiderLTB)
	}
	web.serve(t, c.lab)
	delays := r.delays(rand.New(rand.NewPCG(seed, 9)))
	r.connect(t, c, web, delays)
	limit := fmt.Sprint(time.Duration(r.timeout) * r.tick)
	for _, n := range c.nodes {
		r.start(t, c, n, limit)
	}
	seeds := r.seeds(dice, web, delays)
	kumo := func(verb string, args ...string) {
		t.Helper()
		all := append(append([]string{verb, "--crawl", "lab", "--wait", "60s"}, c.reach()...), args...)
		if _, err := c.command(time.Minute, all...); err != nil {
			t.Fatal(err)
		}
	}
	fetchLimit := limit
	if r.strategy == "hub" { // also crawls hosts beyond the timeout
		fetchLimit = "10s"
	}
	kumo("start", append([]string{"--scope", "any", "--allow-private", "--contact", "test@example.org", "--delay", "0",
		"--ip-delay", "0", "--robots", "ignore", "--connect-timeout", fetchLimit, "--tries", "2"}, seeds[0]...)...)
	kumo("pause")
	for _, more := range seeds[1:] { // another list, which may go to another node
		kumo("add", more...)
	}
	r.awaitSilence(t, c)
	before, _ := c.status()
	kumo("resume")
	return r.measure(t, c, web, before)
}

// delays returns the connection times in ticks by node and host.
func (r *spiderRun) delays(dice *rand.Rand) (all [][]int) {
	one := make([]int, r.hosts)
	for range r.nodes {
		if len(all) == 0 || r.network == "wan" {
			one = make([]int, r.hosts)
			for h := range one {
				one[h] = 1 + dice.IntN(spiderDelays)
			}
		}
		all = append(all, one)
	}
	return all
}

// connect sets the delays. A connection takes 0.4 ticks less than its class, so that a class that equals the timeout is
// within it. As the paper's nodes do not retry with longer timeouts, such connections fail with hub/paper.
func (r *spiderRun) connect(t *testing.T, c *labCluster, web *spiderWeb, delays [][]int) {
	var routes []netlab.Route
	for i, n := range c.nodes {
		from := netlab.One(n.host.Addr())
		if r.network == "wan" { // a message from a node to another takes 5 ticks
			routes = append(routes, netlab.Between(from, netlab.One(c.desk.Addr()), 5*r.tick, 0)...)
		}
		for h, addr := range web.addrs {
			lost := 0.0
			if delays[i][h] > r.timeout && r.strategy == "hub/paper" {
				lost = 1
			}
			roundTrip := time.Duration(float64(r.tick) * (float64(delays[i][h]) - 0.4))
			routes = append(routes, netlab.Between(from, netlab.One(addr), roundTrip, lost)...)
		}
	}
	if err := c.lab.SetRoutes(routes...); err != nil {
		t.Fatal(err)
	}
}

func (r *spiderRun) start(t *testing.T, c *labCluster, n *clusterNode, limit string) {
	out, err := os.Create(filepath.Join(c.dir, n.name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(kumoProgram(t), append([]string{"node", "--crawl", "lab", "--name", n.name, "--strategy",
		r.strategy, "--preset", r.network, "--connect-timeout", limit, "--connect-timeout-min", limit,
		"--connect-timeout-max", limit, "--concurrency", fmt.Sprint(r.places),
		"--out", n.dir, "--memory", "64MiB", "--min-free-disk", "0"},
		c.reach()...)...)
	cmd.Env = append(os.Environ(), secretVariable+"="+c.secret)
	cmd.Stdout, cmd.Stderr = out, out
	if n.life, err = n.host.Start(cmd); err != nil {
		t.Fatal(err)
	}
}

// seeds returns the first hosts, a list for each node, of those that the node with the number of the list reaches.
func (r *spiderRun) seeds(dice *rand.Rand, web *spiderWeb, delays [][]int) (all [][]string) {
	used := map[int]bool{}
	for i := range r.nodes {
		var list []string
		for _, h := range dice.Perm(r.hosts) {
			if len(list) < spiderStart && delays[i][h] <= r.timeout && !used[h] {
				list, used[h] = append(list, web.url(h)), true
			}
		}
		if len(list) > 0 {
			all = append(all, list)
		}
	}
	return all
}

// awaitSilence waits until all nodes are members and have received their hosts.
func (r *spiderRun) awaitSilence(t *testing.T, c *labCluster) {
	for began := time.Now(); time.Since(began) < 2*time.Minute; time.Sleep(time.Second) {
		is, err := c.status()
		members := 0
		for _, n := range is.Nodes {
			if n.Is == inspect.NodeMember {
				members++
			}
		}
		if err == nil && is.Settled && members == r.nodes {
			t.Logf("a cluster after %v", time.Since(began).Round(time.Second))
			return
		}
	}
	t.Errorf("%d nodes are not a cluster after 2m", r.nodes)
	r.logs(t, c)
	t.FailNow()
}

// measure waits until all files are fetched or no node fetches any more, and stops the nodes.
func (r *spiderRun) measure(t *testing.T, c *labCluster, web *spiderWeb, before labStatus) (x spiderResult) {
	resumed := time.Now()
	distinct := map[[2]int]int{}
	var gets []spiderGet
	for {
		time.Sleep(100 * time.Millisecond)
		gets = web.served()
		clear(distinct)
		for _, g := range gets {
			distinct[[2]int{g.host, g.file}]++
		}
		last := resumed
		if len(gets) > 0 {
			last = gets[len(gets)-1].end
		}
		silence := spiderSilence
		if r.strategy == "hub" { // until it has retried parked hosts
			silence = 40 * time.Second
		}
		if len(distinct) == r.hosts*r.files || time.Since(last) > silence {
			break
		}
		if time.Since(resumed) > spiderMost {
			t.Errorf("not done after %v", spiderMost)
			break
		}
	}
	if len(gets) < 2 {
		c.Logf("nothing was fetched")
		r.logs(t, c)
		t.FailNow()
	}
	time.Sleep(2 * time.Second) // a node reports every second
	after, err := c.status()
	if err != nil {
		t.Error(err)
	}
	for _, n := range c.nodes {
		if n.life.Code() == -1 {
			_ = n.life.Signal(syscall.SIGKILL)
			<-n.life.Done()
		}
	}
	x.took = gets[len(gets)-1].end.Sub(resumed)
	ticks := x.took.Seconds() / r.tick.Seconds()
	units := 0
	by := map[netip.Addr]int{}
	for _, g := range gets {
		units += web.sizes[g.host][g.file]
		by[g.by]++
	}
	x.speed = float64(units) / ticks
	x.srcuse = 10 * x.speed / float64(r.nodes)
	x.duplicates = len(gets) - len(distinct)
	x.duplicate = 1e4 * float64(x.duplicates) / float64(len(gets))
	x.missed = 1 - float64(len(distinct))/float64(r.hosts*r.files)
	if m, b := after.Measures, before.Measures; m != nil && m.Requests != nil {
		x.counted = m.Duplicates
		requests := *m.Requests
		if b != nil && b.Requests != nil {
			requests -= *b.Requests
		}
		x.communicate = 100 * float64(requests) / ticks
	} else if err == nil {
		t.Error("kumo status shows no measures")
	}
	t.Logf("files by node %v, %v", by, after.Measures)
	return x
}

func (r *spiderRun) logs(t *testing.T, c *labCluster) {
	for _, n := range c.nodes {
		text, _ := os.ReadFile(filepath.Join(c.dir, n.name+".log"))
		t.Logf("%s:\n%s", n.name, text[max(0, len(text)-2000):])
	}
}
