package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kumo/internal/app/inspect"
	"kumo/internal/base/secret"
	"kumo/internal/lab/netlab"
	"kumo/internal/lab/synthweb"
)

// A labCluster is the nodes of one crawl, each on a host of its own, and a web for them.
type labCluster struct {
	*testing.T
	dir      string
	strategy string
	flags    []string // further flags of kumo node
	first    int      // how many of the nodes start with the crawl
	lab      *netlab.Lab
	nats     string // address of a server outside the nodes; "": the first nodes run servers
	secret   string
	desk     *netlab.Host // where commands run
	web      *synthweb.Web
	server   *synthweb.Server
	nodes    []*clusterNode
	forming  time.Duration // from the start of the crawl until all nodes were members
	began    time.Time     // when all nodes were members
	ended    time.Time
}

// A clusterNode is a host with a disk for one node.
type clusterNode struct {
	name    string
	host    *netlab.Host
	dir     string
	at      string       // where it listens, as others reach it; "": at the usual port of its host
	router  *netlab.Host // the router in front of it, or nil
	finds   []string     // flags that say how it finds the others; nil: the same as for all nodes
	lost    []string     // disks thrown away
	mu      sync.Mutex
	life    *netlab.Process // nil: not started, or stopped for good
	lives   int
	leaving bool // it received SIGINT
}

// newLabCluster creates hosts for n nodes; the first ones start with the crawl. KUMO_TEST_KEEP is a folder for their
// files.
func newLabCluster(t *testing.T, name string, seed uint64, strategy string, first, n int) *labCluster {
	t.Helper()
	c := &labCluster{T: t, dir: t.TempDir(), strategy: strategy, first: first, secret: secret.New().Text(),
		lab: netlab.ForTest(t, seed)}
	if keep := os.Getenv("KUMO_TEST_KEEP"); keep != "" {
		c.dir = filepath.Join(keep, name)
		if err := errors.Join(os.RemoveAll(c.dir), os.MkdirAll(c.dir, 0o777)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		name := fmt.Sprintf("n%d", i+1)
		c.nodes = append(c.nodes, &clusterNode{name: name, host: c.lab.Add(t, name), dir: filepath.Join(c.dir, name)})
	}
	c.desk = c.lab.Add(t, "desk")
	return c
}

// natsInLab runs a NATS server for the nodes, on the desk.
func (c *labCluster) natsInLab() {
	c.Helper()
	at := netip.AddrPortFrom(c.desk.Addr(), 4222)
	path, err := exec.LookPath(natsProgram)
	if err != nil {
		c.Fatal(err)
	}
	cmd := exec.Command(path, at.String(), filepath.Join(c.dir, "nats"))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if _, err := c.desk.Start(cmd); err != nil {
		c.Fatal(err)
	}
	c.nats = "nats://" + at.String()
}

// serve serves a web of small pages in the lab.
func (c *labCluster) serve(cfg synthweb.Config) {
	c.Helper()
	cfg.MedianSize, cfg.Spread, cfg.Latency = 4<<10, -1, 10*time.Millisecond
	cfg.Kinds[synthweb.Image], cfg.Kinds[synthweb.Style] = 0, 0
	c.web = synthweb.New(cfg)
	c.server = serveInLab(c.T, c.lab, c.web)
}

func serveInLab(t *testing.T, lab *netlab.Lab, web *synthweb.Web) (server *synthweb.Server) {
	t.Helper()
	host, err := lab.Host("web", web.Len())
	if err == nil {
		err = host.Do(func() (err error) {
			server, err = synthweb.Serve(t.Context(), web, synthweb.ServeOptions{On: host.Addrs, DNS: true, Log: true})
			return err
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return server
}

// entrances returns the addresses by which a node joins or, if n is nil, a command reaches the cluster: those of the
// nodes with servers or, without servers, those of the first nodes except the joining one.
func (c *labCluster) entrances(n *clusterNode) string {
	var all []string
	for _, o := range c.nodes[:cmp.Or(serversWith(c.strategy), c.first)] {
		if c.strategy != "mesh" || o != n {
			all = append(all, o.addr())
		}
	}
	return strings.Join(all, ",")
}

func (n *clusterNode) addr() string { return cmp.Or(n.at, clusterAddr(n.host)) }

func clusterAddr(h *netlab.Host) string { return netip.AddrPortFrom(h.Addr(), 7070).String() }

// start starts a node's process.
func (c *labCluster) start(n *clusterNode) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lives++
	out, err := os.OpenFile(filepath.Join(c.dir, n.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer out.Close()
	fmt.Fprintf(out, "--- life %d, at %v of the crawl\n", n.lives, c.since(time.Now()))
	args := []string{"node", "--crawl", "lab", "--name", n.name, "--strategy", c.strategy, "--out", n.dir,
		"--memory", "64MiB", "--min-free-disk", "0", "--dns-server", c.server.DNS()}
	args = append(append(args, c.place(n)...), c.flags...)
	cmd := exec.Command(kumoProgram(c.T), args...)
	cmd.Env = append(os.Environ(), secretVariable+"="+c.secret)
	cmd.Stdout, cmd.Stderr = out, out
	n.life, err = n.host.Start(cmd)
	return err
}

// place returns the flags for a node's own address and for finding the others. Without servers the first node names
// none: it starts first, and after a restart it has the addresses of the others. If its disk is lost, it needs them.
func (c *labCluster) place(n *clusterNode) []string {
	if c.nats != "" {
		return []string{"--nats", c.nats}
	}
	listen, join := []string{"--listen", n.addr()}, []string{"--join", c.entrances(n)}
	switch {
	case n.finds != nil:
		return append(append(listen, "--allow-private"), n.finds...)
	case c.strategy != "mesh":
		return append(append(listen, join...), "--servers", strconv.Itoa(clusterServers))
	case n == c.nodes[0] && len(n.lost) == 0:
		join = nil
	}
	return append(append(listen, join...), "--no-lan", "--allow-private")
}

// reach returns the flags by which commands reach the cluster.
func (c *labCluster) reach() []string {
	if c.nats != "" {
		return []string{"--nats", c.nats}
	}
	return []string{"--join", c.entrances(nil)}
}

func (c *labCluster) since(at time.Time) time.Duration {
	if c.began.IsZero() {
		return 0
	}
	return at.Sub(c.began).Round(time.Millisecond)
}

// command runs kumo on the desk.
func (c *labCluster) command(most time.Duration, args ...string) (string, error) {
	var out, said bytes.Buffer
	cmd := exec.Command(kumoProgram(c.T), args...)
	cmd.Env = append(os.Environ(), secretVariable+"="+c.secret)
	cmd.Stdout, cmd.Stderr = &out, &said
	p, err := c.desk.Start(cmd)
	if err == nil {
		if err = p.Wait(most); p.Code() == -1 {
			_ = p.Signal(syscall.SIGKILL)
			<-p.Done()
		}
	}
	if err != nil {
		err = fmt.Errorf("kumo %s: %w: %s", strings.Join(args, " "), err, said.String())
	}
	return out.String(), err
}

// tell runs a command for the crawl; if it fails, the test ends.
func (c *labCluster) tell(verb string, args ...string) {
	c.Helper()
	flags := append([]string{verb, "--crawl", "lab", "--wait", "100s"}, c.reach()...)
	if _, err := c.command(2*time.Minute, append(flags, args...)...); err != nil {
		c.Error(err)
		c.why()
		c.FailNow()
	}
}

// begin starts the first nodes, and the crawl.
func (c *labCluster) begin(delay time.Duration, flags ...string) {
	c.Helper()
	c.launch()
	if c.strategy == "mesh" {
		c.meet(time.Minute)
	}
	c.order(delay, flags...)
}

// launch starts the first nodes.
func (c *labCluster) launch() {
	c.Helper()
	for _, n := range c.nodes[:c.first] {
		if err := c.start(n); err != nil {
			c.Fatal(err)
		}
	}
}

// order starts the crawl.
func (c *labCluster) order(delay time.Duration, flags ...string) {
	c.Helper()
	c.tell("start", append([]string{"--scope", "any", "--allow-private", "--contact", "test@example.org", "--delay",
		delay.String(), "--ip-delay", "0",
		c.server.SeedURLs()[0]}, flags...)...)
}

// meet waits until the first nodes of a cluster without servers have found each other: a node alone would begin at
// once.
func (c *labCluster) meet(most time.Duration) {
	c.Helper()
	c.until(most, "do not find each other", func(is *labStatus) bool {
		return is.Gathered != nil && is.Gathered.Nodes == c.first
	})
}

// A labStatus is the output of kumo status.
type labStatus struct {
	inspect.Cluster
	Control any `json:"control"`
}

// control returns the name of the control unit; "" if none is named.
func (s labStatus) control() string {
	identity, _ := s.Control.(string)
	name, _, _ := strings.Cut(identity, "~")
	return name
}

func (c *labCluster) status() (is labStatus, err error) {
	out, err := c.command(10*time.Second, append([]string{"status", "--crawl", "lab", "--json"}, c.reach()...)...)
	if err == nil {
		err = json.Unmarshal([]byte(out), &is)
	}
	return is, err
}

// settle waits until the first nodes are members and have received their hosts. The test begins after that.
func (c *labCluster) settle(most time.Duration) {
	c.Helper()
	began := time.Now()
	c.until(most, "are not a cluster", func(is *labStatus) bool {
		members := 0
		for _, n := range is.Nodes {
			if n.Is == inspect.NodeMember {
				members++
			}
		}
		return is.Settled && members == c.first
	})
	c.forming = time.Since(began)
}

// until waits until the status of the first nodes meets a condition.
func (c *labCluster) until(most time.Duration, otherwise string, is func(*labStatus) bool) {
	c.Helper()
	for began := time.Now(); time.Since(began) < most; time.Sleep(time.Second) {
		if now, err := c.status(); err == nil && is(&now) {
			return
		}
	}
	c.Errorf("%d nodes %s after %v", c.first, otherwise, most)
	c.why()
	c.FailNow()
}

// lookAfter returns the running nodes, and reports those that have failed. The first node that ends because the crawl
// is done sets the time of the end.
func (c *labCluster) lookAfter() (running []*clusterNode) {
	for _, n := range c.nodes {
		n.mu.Lock()
		if p := n.life; p != nil {
			select {
			case <-p.Done():
				if p.Code() != exitDone {
					c.Errorf("%s has ended by itself, with exit code %d", n.name, p.Code())
				}
				if c.ended.IsZero() && !n.leaving {
					c.ended = time.Now()
				}
				n.life = nil
			default:
				running = append(running, n)
			}
		}
		n.mu.Unlock()
	}
	return running
}

// stop ends the remaining processes.
func (c *labCluster) stop(done bool) {
	c.Helper()
	if !done {
		c.why()
	}
	for _, n := range c.nodes {
		if n.life == nil {
			continue
		}
		_ = n.life.Signal(syscall.SIGKILL) // if it has not ended
		<-n.life.Done()
	}
}

// why logs the known state of a crawl that did not end.
func (c *labCluster) why() {
	c.Helper()
	all, err := c.command(10*time.Second, append([]string{"status", "--crawl", "lab", "--json"}, c.reach()...)...)
	c.Logf("status: %s %v\n%s", all, err, c.server.Score())
	for _, n := range c.nodes {
		text, _ := os.ReadFile(filepath.Join(c.dir, n.name+".log"))
		c.Logf("%s said:\n%s", n.name, text[max(0, len(text)-2000):])
		if n.life != nil && os.Getenv("KUMO_TEST_KEEP") != "" {
			_ = n.life.Signal(syscall.SIGQUIT) // its stacks are in the log
		}
	}
}

// keep writes the server's log to the kept files.
func (c *labCluster) keep(e *evidence) {
	if os.Getenv("KUMO_TEST_KEEP") == "" {
		return
	}
	var b strings.Builder
	for _, q := range e.log {
		at, end := q.At.Sub(c.began).Seconds(), q.End.Sub(c.began).Seconds()
		fmt.Fprintf(&b, "%.4f %.4f %s %s %d %v %s\n", at, end, q.Client, q.Host, q.Status, q.Whole, q.Target)
	}
	if err := os.WriteFile(filepath.Join(c.dir, "requests"), []byte(b.String()), 0o666); err != nil {
		c.Error(err)
	}
}

// end kills a node's process.
func (n *clusterNode) end() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.life
	if p == nil {
		return fmt.Errorf("%s does not run", n.name)
	}
	n.life = nil // its end is expected
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.Done()
	return nil
}

// strategyOf returns the strategy named by an environment variable.
func strategyOf(variable, otherwise string) string { return cmp.Or(os.Getenv(variable), otherwise) }
