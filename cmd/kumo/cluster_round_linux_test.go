package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kumo/internal/look"
	"kumo/internal/netlab"
	"kumo/internal/secret"
	"kumo/internal/synthweb"
)

const (
	clusterDelay = 300 * time.Millisecond // between requests to a host
	clusterHosts = 40
	clusterPages = 120 // of a host: the time that a crawl takes without faults follows
	roundMost    = 3 * time.Minute
)

// A round is one crawl.
type round struct {
	*testing.T
	seed    uint64
	dice    *rand.Rand
	dir     string
	lab     *netlab.Lab
	network string // in words
	secret  string
	desk    *netlab.Host
	web     *synthweb.Web
	server  *synthweb.Server
	nodes   []*clusterNode
	faults  []*fault
	forming time.Duration // from the start of the crawl until all nodes were members
	began   time.Time     // when they were
	ended   time.Time
	trouble chan error // of faults that could not be carried out
}

// A clusterNode is one place for a node: a host with a disk.
type clusterNode struct {
	name  string
	host  *netlab.Host
	dir   string
	lost  []string // disks thrown away
	mu    sync.Mutex
	life  *netlab.Process // nil: not started, or gone for good
	lives int
}

func newRound(t *testing.T, seed uint64) *round {
	r := &round{T: t, seed: seed, secret: secret.New().Text(), dice: rand.New(rand.NewPCG(seed, 3)), dir: t.TempDir(), faults: plan(seed), trouble: make(chan error, 10)}
	if keep := os.Getenv("KUMO_KEEP"); keep != "" {
		r.dir = filepath.Join(keep, strconv.FormatUint(seed, 10))
		if err := os.RemoveAll(r.dir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(r.dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	r.lab = netlab.ForTest(t, seed)
	n := clusterNodes
	for _, f := range r.faults {
		n = max(n, f.node+1)
	}
	for i := range n {
		name := fmt.Sprintf("n%d", i+1)
		r.nodes = append(r.nodes, &clusterNode{name: name, host: r.lab.Add(t, name), dir: filepath.Join(r.dir, name)})
	}
	for _, f := range r.faults {
		others := f.with >= 0 && f.with < clusterServers // most servers are cut off, so it is the others who are
		for i, n := range r.nodes {
			if (i == f.node || i == f.with) != others {
				f.clients = append(f.clients, n.host.Addr().String())
			}
		}
	}
	r.desk = r.lab.Add(t, "desk")
	r.serve(synthweb.Clean(seed, clusterHosts, clusterHosts*clusterPages))
	r.connect()
	return r
}

// serve serves a web in the lab.
func (r *round) serve(cfg synthweb.Config) {
	r.Helper()
	cfg.MedianSize, cfg.Spread, cfg.Latency = 4<<10, -1, 10*time.Millisecond
	cfg.Kinds[synthweb.Image], cfg.Kinds[synthweb.Style] = 0, 0
	r.web = synthweb.New(cfg)
	r.server = serveInLab(r.T, r.lab, r.web)
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

// connect makes the network between the nodes what the seed says: close to each other, or some way apart over lines that lose packets now and then.
func (r *round) connect() {
	bits := pick(r.dice, 50, 100, 1000) * 1_000_000
	far := r.dice.IntN(2) == 0
	r.network = fmt.Sprintf("%d Mbit/s", bits/1_000_000)
	if far {
		r.network += ", 1 to 8 ms one way and as much jitter, 0.2 % loss"
	}
	for _, a := range r.nodes {
		if err := a.host.Bandwidth(bits); err != nil {
			r.Fatal(err)
		}
		for _, b := range r.nodes {
			path := netlab.Path{Delay: time.Duration(1+r.dice.IntN(8)) * time.Millisecond, Loss: 0.002}
			path.Jitter = path.Delay
			if far && a != b {
				if err := r.lab.SetPath(a.host, b.host, path); err != nil {
					r.Fatal(err)
				}
			}
		}
	}
}

// servers are the addresses of those who run servers.
func (r *round) servers() string {
	var all []string
	for _, n := range r.nodes[:clusterServers] {
		all = append(all, clusterAddr(n.host))
	}
	return strings.Join(all, ",")
}

func clusterAddr(h *netlab.Host) string { return netip.AddrPortFrom(h.Addr(), 7070).String() }

// start starts a node's process.
func (r *round) start(n *clusterNode) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lives++
	out, err := os.OpenFile(filepath.Join(r.dir, n.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer out.Close()
	fmt.Fprintf(out, "--- life %d, at %v of the crawl\n", n.lives, r.since(time.Now()))
	cmd := exec.Command(kumoProgram(r.T), "node", "--crawl", "lab", "--name", n.name, "--listen", clusterAddr(n.host), "--join", r.servers(),
		"--servers", strconv.Itoa(clusterServers), "--out", n.dir, "--concurrency", "16", "--memory", "64MiB", "--min-free-disk", "0",
		"--dns-server", r.server.DNS())
	cmd.Env = append(os.Environ(), secretVariable+"="+r.secret)
	cmd.Stdout, cmd.Stderr = out, out
	n.life, err = n.host.Start(cmd)
	return err
}

func (r *round) since(at time.Time) time.Duration {
	if r.began.IsZero() {
		return 0
	}
	return at.Sub(r.began).Round(time.Millisecond)
}

// command runs kumo on the desk.
func (r *round) command(most time.Duration, args ...string) (string, error) {
	var out, said bytes.Buffer
	cmd := exec.Command(kumoProgram(r.T), args...)
	cmd.Env = append(os.Environ(), secretVariable+"="+r.secret)
	cmd.Stdout, cmd.Stderr = &out, &said
	p, err := r.desk.Start(cmd)
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

// crawl lets the nodes crawl, and the faults happen.
func (r *round) crawl() {
	r.Helper()
	for _, n := range r.nodes[:clusterNodes] {
		if err := r.start(n); err != nil {
			r.Fatal(err)
		}
	}
	if _, err := r.command(time.Minute, "start", "--crawl", "lab", "--join", r.servers(), "--scope", "any", "--allow-private", "--contact", "test@example.org",
		"--delay", clusterDelay.String(), "--ip-delay", "0", r.server.SeedURLs()[0]); err != nil {
		r.Error(err)
		r.why()
		r.FailNow()
	}
	r.settle()
	r.began = time.Now()
	over := make(chan struct{})
	var faults sync.WaitGroup
	for _, f := range r.faults {
		faults.Go(func() { r.carryOut(f, over) })
	}
	done := r.await()
	close(over)
	faults.Wait()
	r.stop(done)
}

// settle waits until all nodes are members and have what is theirs: what happens before is not what is tested.
func (r *round) settle() {
	r.Helper()
	began := time.Now()
	for time.Since(began) < time.Minute {
		out, err := r.command(10*time.Second, "status", "--crawl", "lab", "--join", r.servers(), "--json")
		var is look.Cluster
		if err == nil {
			err = json.Unmarshal([]byte(out), &is)
		}
		members := 0
		for _, n := range is.Nodes {
			if n.Is == look.NodeMember {
				members++
			}
		}
		if err == nil && is.Settled && members == clusterNodes {
			r.forming = time.Since(began)
			return
		}
		time.Sleep(300 * time.Millisecond)
	}
	r.Errorf("%d nodes are not a cluster after a minute", clusterNodes)
	r.why()
	r.FailNow()
}

// await waits until the crawl is done, or for as long as it may take.
func (r *round) await() (done bool) {
	most := time.After(roundMost)
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case err := <-r.trouble:
			r.Error(err)
			return false
		case <-most:
			r.Errorf("the crawl is not done after %v", roundMost)
			return false
		case <-look.C:
			switch running := r.lookAfter(); {
			case len(running) == 0: // nodes end when the crawl is done
				return true
			case r.ended.IsZero() || time.Since(r.ended) < straggling:
			case r.allHarmed(running):
				r.Logf("%d nodes that were away when the crawl was done wait for the others", len(running))
				return true
			}
		}
	}
}

const straggling = 20 * time.Second // how long after the others a node may end

// allHarmed reports whether only nodes run that were paused or cut off. Once the others are gone nobody can tell those that the crawl is done.
func (r *round) allHarmed(running []*clusterNode) bool {
	for _, n := range running {
		if !slices.ContainsFunc(r.faults, func(f *fault) bool {
			return (f.kind == pause || f.kind == partition) && slices.Contains(f.clients, n.host.Addr().String())
		}) {
			return false
		}
	}
	return true
}

// lookAfter returns the nodes that run, and complains of those that have failed. The first that ends because the crawl is done tells when it was.
func (r *round) lookAfter() (running []*clusterNode) {
	for i, n := range r.nodes {
		n.mu.Lock()
		if p := n.life; p != nil {
			select {
			case <-p.Done():
				if p.Code() != exitDone {
					r.Errorf("%s has ended by itself, with exit code %d", n.name, p.Code())
				}
				if r.ended.IsZero() && !slices.ContainsFunc(r.faults, func(f *fault) bool { return f.kind == leave && f.node == i }) {
					r.ended = time.Now()
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

// stop ends what has not ended by itself.
func (r *round) stop(done bool) {
	r.Helper()
	if !done {
		r.why()
	}
	for _, n := range r.nodes {
		if n.life == nil {
			continue
		}
		_ = n.life.Signal(syscall.SIGKILL) // where it has not ended
		<-n.life.Done()
	}
}

// why says what is known of a round that came to no end.
func (r *round) why() {
	r.Helper()
	all, err := r.command(10*time.Second, "status", "--crawl", "lab", "--join", r.servers(), "--json")
	r.Logf("status: %s %v\n%s", all, err, r.server.Score())
	for _, n := range r.nodes {
		text, _ := os.ReadFile(filepath.Join(r.dir, n.name+".log"))
		r.Logf("%s said:\n%s", n.name, text[max(0, len(text)-2000):])
		if n.life != nil && os.Getenv("KUMO_KEEP") != "" {
			_ = n.life.Signal(syscall.SIGQUIT) // its stacks are in the log
		}
	}
}
