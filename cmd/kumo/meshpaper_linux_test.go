package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kumo/internal/app/admin"
	"kumo/internal/app/inspect"
	"kumo/internal/app/wire/cluster"
	"kumo/internal/base/item"
	"kumo/internal/base/secret"
	"kumo/internal/base/xor"
)

// paperNode is a node of the paper's second and third experiment.
type paperNode struct {
	v, lambda float64 // URLs per second
	area      int     // blocks of paperBlock URLs

	name     string
	cmd      *exec.Cmd
	identity string

	begun, last machineUse
	arrived     int
	pages       int64 // when the measurement began
	waiting     int
	level       int
}

// machineUse is what a node has used of a machine until a time.
type machineUse struct {
	at    time.Time
	cpu   float64 // seconds
	bytes float64 // received and sent
	rss   float64 // MB
}

const (
	paperBlock = 20
	paperSpeed = 10 // times the paper's rates
	// paperEvery is T: 3 minutes of the paper
	paperEvery   = 3 * time.Minute / paperSpeed
	paperArea    = 5 // blocks, without balancing
	paperIdle    = 20 * time.Second
	paperAddress = "10.77.0.%d"
	manySlices   = 4096
)

// TestMeshPaper is the paper's second and third experiment with real processes, by the strategy mesh/paper, at ten
// times the paper's rates, with and without balancing. Each node is in a network namespace of its own, so that its
// traffic can be measured. The key of a URL is the URL. It takes 12 minutes, needs root, and runs in a network
// namespace of its own if KUMO_TEST_PAPER is set to the length of a run:
//
//	unshare -n env KUMO_TEST_PAPER=5m go test ./cmd/kumo -run '^TestMeshPaper$' -v -timeout 30m
func TestMeshPaper(t *testing.T) {
	long, err := time.ParseDuration(os.Getenv("KUMO_TEST_PAPER"))
	if err != nil {
		t.Skip("SKIPPED: it takes 12 minutes, and root; set KUMO_TEST_PAPER=5m to run it")
	}
	if links, err := net.Interfaces(); err != nil || len(links) > 1 {
		t.Fatal("run this in a network namespace of its own: unshare -n go test")
	}
	var pages [2]int64
	for i, balanced := range []bool{false, true} {
		t.Run(fmt.Sprintf("balanced %v", balanced), func(t *testing.T) {
			p := newPaperRun(t, balanced)
			p.measure(long)
			pages[i] = p.print(long)
		})
	}
	t.Logf("output with balancing: %+.1f %%", 100*(float64(pages[1])/float64(max(pages[0], 1))-1))
}

// A paperRun is a crawl of the eight nodes.
type paperRun struct {
	*testing.T
	dir, key, site string
	balanced       bool
	nodes          []*paperNode
	control        admin.Client
	requests       atomic.Int64
	slices         *item.Slices
	rng            *rand.Rand
	next           int // URL
	due            map[int][]string
}

func newPaperRun(t *testing.T, balanced bool) *paperRun {
	p := &paperRun{T: t, dir: t.TempDir(), key: secret.New().Text(), balanced: balanced, due: map[int][]string{},
		slices: item.NewSlices(manySlices), rng: rand.New(rand.NewPCG(1, 1))}
	for _, row := range [][3]float64{{0.2, 0.083, 6}, {0.2, 0.08, 6}, {0.05, 0.16, 1}, {0.1, 0.34, 1}, {0.2, 0.09, 6},
		{0.1, 0.083, 4}, {0.1, 0.22, 1}, {0.05, 0.136, 1}} {
		p.nodes = append(p.nodes, &paperNode{v: row[0] * paperSpeed, lambda: row[1] * paperSpeed, area: int(row[2])})
	}
	p.ip("link", "set", "lo", "up")
	p.ip("link", "add", "kmpbr", "type", "bridge")
	t.Cleanup(func() { p.ip("link", "del", "kmpbr") })
	p.ip("addr", "add", fmt.Sprintf(paperAddress, 1)+"/24", "dev", "kmpbr")
	p.ip("link", "set", "kmpbr", "up")
	p.serve()
	for i := range p.nodes {
		p.begin(i)
	}
	p.connect()
	return p
}

func (p *paperRun) ip(args ...string) {
	p.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		p.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// serve answers each request with a page of 10 KB without links.
func (p *paperRun) serve() {
	l, err := net.Listen("tcp", fmt.Sprintf(paperAddress, 1)+":0")
	if err != nil {
		p.Fatal(err)
	}
	text := "<html><head><title>page</title></head><body><p>" + strings.Repeat("some words of a page ", 480) + "</p></body></html>"
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.requests.Add(1)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, "%s<!-- %s -->", text, r.URL.Path)
	})}
	go func() { _ = s.Serve(l) }() // until it is closed
	p.Cleanup(func() { s.Close() })
	p.site = l.Addr().String()
}

// begin starts a node in a network namespace of its own.
func (p *paperRun) begin(i int) {
	n := p.nodes[i]
	n.name = fmt.Sprint("kmp", i+1)
	address := fmt.Sprintf(paperAddress, 10+i)
	p.ip("netns", "add", n.name)
	p.Cleanup(func() { p.ip("netns", "del", n.name) })
	p.ip("link", "add", n.name, "type", "veth", "peer", "name", "eth0", "netns", n.name)
	p.Cleanup(func() { p.ip("link", "del", n.name) })
	p.ip("link", "set", n.name, "master", "kmpbr", "up")
	p.ip("-n", n.name, "addr", "add", address+"/24", "dev", "eth0")
	p.ip("-n", n.name, "link", "set", "eth0", "up")
	p.ip("-n", n.name, "link", "set", "lo", "up")
	area := n.area
	if !p.balanced {
		area = 1 << 20 // no node is heavy
	}
	args := []string{"netns", "exec", n.name, kumoProgram(p.T), "node", "-q", "--crawl", "paper", "--strategy",
		"mesh/paper", "--no-lan", "--allow-private", "--name", n.name, "--out", filepath.Join(p.dir, n.name), "--listen",
		address + ":7070", "--memory", "64MB", "--min-free-disk", "0", "--concurrency", "4", "--max-rate", fmt.Sprint(n.v),
		"--work-area", fmt.Sprint(area)}
	if i == 0 {
		args = append(args, "--block-size", fmt.Sprint(paperBlock), "--balance-every", paperEvery.String())
	} else {
		args = append(args, "--join", fmt.Sprintf(paperAddress, 10)+":7070")
	}
	n.cmd = exec.Command("ip", args...)
	n.cmd.Env = append(os.Environ(), secretVariable+"="+p.key)
	n.cmd.Stderr = os.Stderr
	if err := n.cmd.Start(); err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() {
		_ = n.cmd.Process.Kill()
		_ = n.cmd.Wait() // it was killed
	})
	time.Sleep(time.Second)
}

// connect connects to the nodes, and waits until all know each other.
func (p *paperRun) connect() {
	s, err := secret.Parse(p.key)
	if err != nil {
		p.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(p.Context(), time.Minute)
	defer cancel()
	p.control, err = cluster.OpenClient(ctx, "paper", cluster.NodeOptions{Join: []string{fmt.Sprintf(paperAddress, 10) +
		":7070"}, Secret: s})
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = p.control.Close() })
	for ctx.Err() == nil {
		if c, err := p.control.Cluster(ctx, "paper"); err == nil && c.Gathered != nil && c.Gathered.Nodes == len(p.nodes) {
			for _, n := range p.nodes {
				n.identity = p.report(c, n).Node
			}
			return
		}
		time.Sleep(time.Second)
	}
	p.Fatal("the nodes do not find each other")
}

func (p *paperRun) report(c *inspect.Cluster, n *paperNode) inspect.Node {
	for _, r := range c.Nodes {
		if r.Name == n.name {
			return r
		}
	}
	p.Fatalf("no report of %s", n.name)
	return inspect.Node{}
}

// urls returns URLs that arrive at a node: their key is closest to it.
func (p *paperRun) urls(node, count int) (all []string) {
	for len(p.due[node]) < count {
		p.next++
		url := fmt.Sprintf("http://%s/%d", p.site, p.next)
		id, best := xor.Of("target", p.slices.Of(url)), 0
		for i, n := range p.nodes {
			if xor.Compare(xor.Of("node", n.identity), xor.Of("node", p.nodes[best].identity), id) < 0 {
				best = i
			}
		}
		p.due[best] = append(p.due[best], url)
	}
	all, p.due[node] = p.due[node][:count], p.due[node][count:]
	p.nodes[node].arrived += count
	return all
}

// poisson returns a random number with a mean.
func (p *paperRun) poisson(mean float64) (n int) {
	for left := p.rng.Float64(); left > math.Exp(-mean); n++ {
		left *= p.rng.Float64()
	}
	return n
}

// arriving returns the URLs that arrive at all nodes in a time.
func (p *paperRun) arriving(d time.Duration) (all []string) {
	for i, n := range p.nodes {
		all = append(all, p.urls(i, p.poisson(n.lambda*d.Seconds()))...)
	}
	return all
}

// measure measures idle nodes, and then nodes at work.
func (p *paperRun) measure(long time.Duration) {
	const step = 3 * time.Second
	for _, n := range p.nodes {
		n.begun = p.usage(n)
	}
	time.Sleep(paperIdle)
	p.Logf("idle, a node: %% of a CPU, MB, kB/s")
	for _, n := range p.nodes {
		n.last = p.usage(n)
		p.Logf("| %s | %s |", n.name, n.used())
	}
	start := exec.Command(kumoProgram(p.T), append([]string{"start", "--crawl", "paper", "--join",
		fmt.Sprintf(paperAddress, 10) + ":7070", "--scope", "any", "--allow-private", "--delay", "0", "--ip-delay", "0",
		"--slices", fmt.Sprint(manySlices), "--robots", "ignore", "--contact", "https://example.org/test"},
		p.arriving(2*step)...)...)
	start.Env = append(os.Environ(), secretVariable+"="+p.key)
	if out, err := start.CombinedOutput(); err != nil {
		p.Fatalf("kumo start: %v: %s", err, out)
	}
	for _, n := range p.nodes {
		n.begun = p.usage(n)
	}
	tick := time.NewTicker(step)
	defer tick.Stop()
	began := time.Now()
	for i := 1; time.Since(began) < long; i++ {
		<-tick.C
		if err := p.control.Add(p.Context(), p.arriving(step)); err != nil {
			p.Fatal(err)
		}
		if i%6 == 0 {
			p.sample(time.Since(began))
		}
	}
	for _, n := range p.nodes {
		n.last = p.usage(n)
	}
	p.sample(time.Since(began))
}

// sample logs the load ratios.
func (p *paperRun) sample(at time.Duration) {
	c, err := p.control.Cluster(p.Context(), "paper")
	if err != nil {
		p.Logf("no status: %v", err)
		return
	}
	line := fmt.Sprintf("%4.0f s: %5d requests; u", at.Seconds(), p.requests.Load())
	for _, n := range p.nodes {
		r := p.report(c, n)
		n.waiting, n.level, n.pages = r.Waiting, 0, r.Pages
		if r.Peering != nil {
			n.level = r.Level
		}
		line += fmt.Sprintf(" %.2f (%d)", p.ratio(n), n.level)
	}
	p.Log(line)
}

func (p *paperRun) ratio(n *paperNode) float64 {
	area := n.area
	if !p.balanced {
		area = paperArea
	}
	return float64(n.waiting) / float64(area*paperBlock)
}

// print logs the results, and returns the number of requests.
func (p *paperRun) print(long time.Duration) int64 {
	p.Logf("| node | v | lambda | arrived/s | pages/s | u | waiting | %% of a CPU | MB | kB/s |")
	for i, n := range p.nodes {
		p.Logf("| %d | %.1f | %.2f | %.2f | %.2f | %.2f | %d | %s |", i+1, n.v, n.lambda,
			float64(n.arrived)/long.Seconds(), float64(n.pages)/long.Seconds(), p.ratio(n), n.waiting, n.used())
	}
	total := p.requests.Load()
	p.Logf("%d requests, %.2f a second", total, float64(total)/long.Seconds())
	return total
}

// used formats what a node has used of a machine since a measurement began.
func (n *paperNode) used() string {
	d := n.last.at.Sub(n.begun.at).Seconds()
	return fmt.Sprintf("%.2f | %.0f | %.1f", 100*(n.last.cpu-n.begun.cpu)/d, n.last.rss, (n.last.bytes-n.begun.bytes)/d/1e3)
}

// usage reads what a node has used of a machine so far.
func (p *paperRun) usage(n *paperNode) machineUse {
	p.Helper()
	u := machineUse{at: time.Now()}
	read := func(file string) string {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", n.cmd.Process.Pid, file))
		if err != nil {
			p.Fatalf("node %s: %v", n.name, err)
		}
		return string(data)
	}
	number := func(s string) float64 {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			p.Fatal(err)
		}
		return f
	}
	stat := read("stat")
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	u.cpu = (number(fields[11]) + number(fields[12])) / 100
	u.rss = number(strings.Fields(read("statm"))[1]) * float64(os.Getpagesize()) / 1e6
	for line := range strings.Lines(read("net/dev")) {
		if name, rest, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "eth0" {
			f := strings.Fields(rest)
			u.bytes = number(f[0]) + number(f[8])
		}
	}
	return u
}
