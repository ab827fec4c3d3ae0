package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kumo/internal/lab/netlab"
	"kumo/internal/lab/synthweb"
)

// A bedMachine is a row of the paper's table of nodes.
type bedMachine struct {
	cores   int
	ghz     float64
	memory  float64 // GB
	network float64 // Mb/s
	disk    float64 // Mb/s
}

var unequal = []bedMachine{
	{4, 2.4, 4, 18, 18},
	{4, 2.4, 4, 5, 18},
	{4, 2.4, 1, 12, 3},
	{4, 2.6, 3, 2, 1.5},
	{1, 2.4, 3, 12, 1},
}

// Network and disks are as in the table. The seventeen cores are fractions of the processors of this machine, and
// memory is in proportion: a crawl of 500 pages needs little.
const (
	bedGHz    = 0.03      // of a processor for a core's GHz
	bedMemory = 128 << 20 // bytes for a GB
	bedDisk   = 256 << 20
	bedMbit   = 1_000_000
)

func (m bedMachine) limits() netlab.Limits {
	return netlab.Limits{CPU: float64(m.cores) * m.ghz * bedGHz, Processors: m.cores, Memory: int64(m.memory * bedMemory)}
}

// limit gives a host of the lab the limits of the table. It returns the folder of its disk.
func (m bedMachine) limit(t *testing.T, h *netlab.Host) (dir string) {
	t.Helper()
	err := h.Limit(m.limits())
	if err == nil {
		err = h.Bandwidth(int(m.network * bedMbit))
	}
	if err == nil {
		dir, err = h.Disk(bedDisk, int(m.disk*bedMbit))
	}
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skipf("SKIPPED: hosts cannot be held within limits here: %v", err)
	}
	return dir
}

func (m bedMachine) String() string {
	return fmt.Sprintf("%d × %.1f GHz, %g GB, network %g Mb/s, disk %g Mb/s", m.cores, m.ghz, m.memory, m.network, m.disk)
}

// A bedPlan describes the crawl of a bed.
type bedPlan struct {
	machines []bedMachine
	strategy string
	samples  string // a file of samples to start with; "": none
	pages    int    // of the site
	urls     int    // how many of the pages the crawl gets as seeds
	seed     uint64
}

const (
	bedSlices = 1000      // of the site: hardly any two pages share one
	bedSize   = 200 << 10 // bytes of a page; half of them have less
	// Concurrent requests of a node. With dozens of them on a line of 2 Mb/s, messages between nodes are lost among
	// pages. With four, each takes 4 s there, and the run ends so much later.
	bedAtOnce = "2"
)

// A bed is a cluster of nodes on unequal machines. It has all URLs, and its crawl is paused until the measurement
// begins.
type bed struct {
	*labCluster
	bedPlan
	gate *gate
	list string // the file of the URLs
	all  []string
}

func newBed(t *testing.T, name string, p bedPlan) *bed {
	t.Helper()
	n := len(p.machines)
	b := &bed{labCluster: newLabCluster(t, name, p.seed, p.strategy, n, n), bedPlan: p}
	for i, n := range b.nodes {
		n.dir = filepath.Join(p.machines[i].limit(t, n.host), "crawl")
	}
	b.natsInLab()
	b.gate = newGate(t, b.desk)
	b.web = synthweb.New(synthweb.Config{Seed: p.seed, Hosts: 1, Pages: p.pages, MedianSize: bedSize, SizeSpread: 0.3,
		MeanLinks: 2})
	b.server = serveInLab(t, b.lab, b.web)
	b.all = b.choose(p.urls)
	b.list = filepath.Join(b.dir, "urls")
	if err := os.WriteFile(b.list, []byte(strings.Join(b.all, "\n")+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	b.labCluster.flags = []string{"--concurrency", bedAtOnce}
	b.launch()
	b.until(time.Minute, "do not come", func(is *labStatus) bool { return len(is.Nodes) == n })
	flags := []string{"--scope", "any", "--depth", "0", "--allow-private", "--contact", "test@example.org", "--delay", "0",
		"--ip-delay", "0", "--slices", strconv.Itoa(bedSlices)}
	if p.samples != "" {
		flags = append(flags, "--samples", p.samples)
	}
	b.tell("start", append(flags, b.gate.url)...)
	b.tell("pause")
	b.gate.open()
	b.settle(time.Minute)
	b.tell("add", "-i", b.list)
	b.until(time.Minute, "do not take the URLs in", func(is *labStatus) bool {
		in := 0
		for _, n := range is.Nodes {
			in += n.Load.Known + n.Load.Outbox
		}
		return in >= len(b.all)
	})
	return b
}

// choose returns the URLs of some of the pages. Their sizes are spread evenly over those of all pages, so that the mean
// size is the same: for the first hundred pages it differs by up to 5 %, and so would the speed of a node.
func (b *bed) choose(urls int) (chosen []string) {
	b.Helper()
	type page struct {
		url  string
		size int
	}
	all := make([]page, b.pages)
	for i := range all {
		all[i].url = b.web.URL(synthweb.Ref{Kind: synthweb.Page, N: uint32(i)}, b.server.Port())
		p, err := b.web.Page(all[i].url)
		if err != nil {
			b.Fatal(err)
		}
		all[i].size = len(p.Body)
	}
	slices.SortStableFunc(all, func(x, y page) int { return cmp.Compare(x.size, y.size) })
	for i := range urls {
		chosen = append(chosen, all[(2*i+1)*len(all)/(2*urls)].url)
	}
	rand.New(rand.NewPCG(b.seed, 0)).Shuffle(urls, func(i, k int) { chosen[i], chosen[k] = chosen[k], chosen[i] })
	return chosen
}

// crawl resumes the nodes and waits until all URLs are done.
func (b *bed) crawl(most time.Duration) *bedRun {
	b.Helper()
	r := &bedRun{bedPlan: b.bedPlan, nodes: make([]bedShare, len(b.nodes))}
	for i := range b.nodes {
		r.nodes[i].usage = b.usage(i)
	}
	b.began = time.Now()
	ended := b.watchEnds()
	defer b.follow()()
	b.tell("resume")
	for len(b.lookAfter()) > 0 {
		if time.Since(b.began) > most {
			ended()
			b.Errorf("the crawl is not done after %v", most)
			b.stop(false)
			b.FailNow()
		}
		time.Sleep(20 * time.Millisecond)
	}
	for i, last := range ended() {
		r.nodes[i].last = last
	}
	b.measure(r)
	return r
}

// watchEnds records when the last page of each node becomes durable, until ended is called, which returns the times. It
// polls faster than a disk can commit, so that two commits are seen apart.
func (b *bed) watchEnds() (ended func() []time.Duration) {
	ends, last := make([]nodeEnd, len(b.nodes)), make([]time.Duration, len(b.nodes))
	for i, n := range b.nodes {
		ends[i].look(n, 0)
	}
	var watching sync.WaitGroup
	over := make(chan struct{})
	watching.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
			}
			for i, n := range b.nodes {
				if ends[i].look(n, time.Since(b.began)) {
					last[i] = ends[i].at
				}
			}
		}
	})
	return func() []time.Duration { close(over); watching.Wait(); return last }
}

// follow writes the statuses of the nodes to the kept files until stop is called.
func (b *bed) follow() (stop func()) {
	if os.Getenv("KUMO_TEST_KEEP") == "" {
		return func() {}
	}
	f, err := os.Create(filepath.Join(b.dir, "status"))
	if err != nil {
		b.Fatal(err)
	}
	var following sync.WaitGroup
	over := make(chan struct{})
	following.Go(func() {
		defer f.Close()
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
			}
			said, err := b.command(10*time.Second, append([]string{"status", "--crawl", "lab"}, b.reach()...)...)
			fmt.Fprintf(f, "at %v: %v\n%s\n", b.since(time.Now()), err, said)
		}
	})
	return func() { close(over); following.Wait() }
}

// A nodeEnd detects when a node's last page was durable. The journal grows then; the record was written before.
type nodeEnd struct {
	records, journal int64
	waits            bool // a record is not in the journal yet
	at               time.Duration
}

// look reports whether something has become durable.
func (e *nodeEnd) look(n *clusterNode, now time.Duration) (durable bool) {
	logs, _ := filepath.Glob(filepath.Join(n.dir, "state", "journal", "*.log")) // the pattern is right
	journal := sizeOf(logs...)
	if journal != e.journal && e.waits {
		durable, e.waits, e.at = true, false, now
	}
	records := sizeOf(filepath.Join(n.dir, "pages.jsonl"))
	e.waits = e.waits || records != e.records
	e.records, e.journal = records, journal
	return durable
}

func sizeOf(paths ...string) (size int64) {
	for _, path := range paths {
		if is, err := os.Stat(path); err == nil { // the file may have been deleted since
			size += is.Size()
		}
	}
	return size
}

// export writes the crawl's samples to a file.
func (b *bed) export(to string) {
	b.Helper()
	if _, err := b.command(time.Minute, append([]string{"balance", "model", "--crawl", "lab", "--export", to},
		b.reach()...)...); err != nil {
		b.Error(err)
	}
}

// A bedRun is the result of a crawl. Times count from when the crawl was resumed.
type bedRun struct {
	bedPlan
	took  time.Duration // until the crawl was done
	nodes []bedShare
	when  [][]int // pages answered, by node and by interval of bedStretch
}

// A bedShare is a node's part in it.
type bedShare struct {
	pages int
	first time.Duration // until its first request for a page
	last  time.Duration // until its last page was durable
	usage netlab.Usage
}

const bedStretch = 5 * time.Second

// measure checks the crawl: each page has one record, and none was fetched twice.
func (b *bed) measure(r *bedRun) {
	b.Helper()
	is, err := b.status()
	if err != nil || is.State != "done" {
		b.Fatalf("the crawl is %s: %v", is.State, err)
	}
	r.took = is.Since.Sub(b.began)
	b.server.Close()
	log := b.server.Log()
	if twice := log.Repeats(); len(twice) > 0 {
		b.Errorf("%d pages were fetched twice, as %+v", len(twice), twice[0])
	}
	recorded := map[string]int{}
	var dirs []string
	for i, n := range b.nodes {
		own := map[string]int{}
		if err := readRecords(n.dir, own); err != nil {
			b.Error(err)
		}
		for url, times := range own {
			if strings.HasPrefix(url, b.web.Host(0)) {
				r.nodes[i].pages += times
				recorded[url] += times
			}
		}
		r.nodes[i].usage = since(r.nodes[i].usage, b.usage(i))
		dirs = append(dirs, n.dir)
		when := make([]int, r.took/bedStretch+1)
		for _, q := range log {
			if q.Client != n.host.Addr() || !q.Whole {
				continue
			}
			if began := q.At.Sub(b.began); began > 0 && (r.nodes[i].first == 0 || began < r.nodes[i].first) {
				r.nodes[i].first = began
			}
			if at := int(q.End.Sub(b.began) / bedStretch); 0 <= at && at < len(when) {
				when[at]++
			}
		}
		r.when = append(r.when, when)
	}
	for _, url := range b.all {
		if recorded[schemeless(url)] != 1 {
			b.Errorf("%s is in %d records", url, recorded[schemeless(url)])
		}
	}
	b.wantVerified(dirs)
}

func (b *bed) usage(node int) netlab.Usage {
	b.Helper()
	u, err := b.nodes[node].host.Usage()
	if err != nil {
		b.Error(err)
	}
	return u
}

// since returns the usage after before; the peak is that of the whole time.
func since(before, u netlab.Usage) netlab.Usage {
	u.CPU, u.Throttled, u.Reclaims = u.CPU-before.CPU, u.Throttled-before.Throttled, u.Reclaims-before.Reclaims
	u.Written, u.Received, u.Sent = u.Written-before.Written, u.Received-before.Received, u.Sent-before.Sent
	return u
}

// tail returns the time from the end of the first node to the end of the last one.
func (r *bedRun) tail() time.Duration {
	first, last := r.took, time.Duration(0)
	for _, n := range r.nodes {
		first, last = min(first, n.last), max(last, n.last)
	}
	return last - first
}

// pages returns the number of pages of each node.
func (r *bedRun) pages() string {
	var b strings.Builder
	for _, n := range r.nodes {
		fmt.Fprintf(&b, " %d", n.pages)
	}
	return strings.TrimSpace(b.String())
}

// speed returns pages per second.
func (r *bedRun) speed() float64 { return float64(r.urls) / r.took.Seconds() }

func (r *bedRun) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d URLs in %.1f s, tail %.1f s\n\n", r.strategy, r.urls, r.took.Seconds(), r.tail().Seconds())
	fmt.Fprintf(&b, "| node | pages | first at s | last at s | CPU s | throttled s | peak MB | memory full | "+
		"written MB | received MB | sent MB | pages in each %.0f s |\n|%s\n", bedStretch.Seconds(),
		strings.Repeat(" --- |", 12))
	for i, n := range r.nodes {
		u := n.usage
		fmt.Fprintf(&b, "| %d | %d | %.1f | %.1f | %.1f | %.1f | %.0f | %d | %.1f | %.1f | %.1f | %s |\n", i+1, n.pages,
			n.first.Seconds(), n.last.Seconds(), u.CPU.Seconds(), u.Throttled.Seconds(), float64(u.Peak)/(1<<20), u.Reclaims,
			float64(u.Written)/1e6, float64(u.Received)/1e6, float64(u.Sent)/1e6, strings.Trim(fmt.Sprint(r.when[i]), "[]"))
	}
	return b.String()
}

// A gate is a page whose response ends when the gate is opened. Until then a crawl with this page is not done.
type gate struct {
	url    string
	opened chan struct{}
	once   sync.Once
}

func newGate(t *testing.T, h *netlab.Host) *gate {
	t.Helper()
	g := &gate{opened: make(chan struct{})}
	var l net.Listener
	if err := h.Do(func() (err error) {
		l, err = net.Listen("tcp4", netip.AddrPortFrom(h.Addr(), 0).String())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	g.url = "http://" + l.Addr().String() + "/gate"
	s := &http.Server{Handler: g}
	go func() { _ = s.Serve(l) }() // until it is closed
	t.Cleanup(func() { g.open(); s.Close() })
	return g
}

func (g *gate) open() { g.once.Do(func() { close(g.opened) }) }

// ServeHTTP sends a little now and then, so that no node abandons the page.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/gate" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html")
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		fmt.Fprintln(w, "<p>")
		_ = http.NewResponseController(w).Flush() // a closed connection is noticed below
		select {
		case <-g.opened:
			return
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}
