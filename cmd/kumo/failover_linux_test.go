package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kumo/internal/app/admin"
	"kumo/internal/app/inspect"
	"kumo/internal/app/node"
	"kumo/internal/app/wire/cluster"
	"kumo/internal/base/secret"
	"kumo/internal/cluster/desired"
	"kumo/internal/lab/clusterdemo"
	"kumo/internal/lab/synthweb"
)

const (
	failOverDelay = time.Second // between requests to a host
	// separate webs to begin with, so that each node comes to own hosts
	failOverSites = 10
	// of a web; each is a seed, admitted by the node that its hash names: hardly all by the dead node
	failOverHosts = 3
	// of a host to begin with, per kill, besides 40 more: a kill with its recovery takes longer than their fetching
	failOverPages  = 8
	failOverFresh  = 20 // of a host that is added while there is no control unit
	failOverPoll   = 200 * time.Millisecond
	failOverMost   = time.Minute      // maximum wait for a new control unit
	failOverMedian = 10 * time.Second // limit of the median time until a node leads
	failOverLimit  = 20 * time.Second // limit of each: the servers may have to elect a leader before
	// until a new host is fetched: requests may go to a dead node until it is declared dead
	failOverGrant = 30 * time.Second
	// without any request, while other nodes than the killed one have URLs to fetch
	failOverQuiet = 5 * time.Second
)

// TestFailOver kills the control unit of a cluster of five processes KUMO_TEST_KILLS times (none unless it is set), and
// each time restarts it in its folder. It logs how long it took until another node led, until a third node had its
// name, and until a host found after the kill was fetched. The first three by name may be control units; two of them
// run servers, and one does not. KUMO_TEST_KEEP is a folder for the nodes' files.
func TestFailOver(t *testing.T) {
	kills := number("KUMO_TEST_KILLS", 0)
	if kills == 0 {
		t.Skip("SKIPPED: it takes a quarter of a minute a kill; set KUMO_TEST_KILLS to run it")
	}
	f := newFailOver(t, number("KUMO_TEST_SEED", rand.Uint64N(1<<40)), int(kills))
	t.Cleanup(f.KillAll)
	f.form()
	for range kills {
		f.killControl()
	}
	f.finish()
	f.judge()
}

// A failOver is a cluster whose control unit is killed again and again.
type failOver struct {
	*testing.T
	clusterdemo.Demo // follows the cluster
	seed             uint64
	client           admin.Client
	sites            []*site
	killings         []*killing
}

// A site is one of the webs.
type site struct {
	*synthweb.Server
	web *synthweb.Web
}

// A killing is one kill of the control unit. Times count from the kill; zero: it did not happen.
type killing struct {
	at     time.Time
	victim string
	server bool // whether it ran a server
	next   string
	leads  time.Duration // until another node reported itself as the leader
	// until a third node reported the new leader: nodes without requests to the control unit learn of it later
	believed time.Duration
	added    time.Duration // until the first new seed was accepted
	granted  time.Duration // until a new host saw a request
	waiting  int           // the lowest number of pending URLs of the other nodes
	// the longest time without a request, until the restart; 0 if the other nodes had no URLs to fetch
	silent  time.Duration
	back    time.Time     // when the killed node was restarted
	settled time.Duration // until the cluster was complete again
}

func newFailOver(t *testing.T, seed uint64, kills int) *failOver {
	f := &failOver{T: t, seed: seed}
	t.Logf("KUMO_TEST_SEED=%d", seed)
	dir := t.TempDir()
	if keep := os.Getenv("KUMO_TEST_KEEP"); keep != "" {
		dir = keep
	}
	said, err := os.Create(filepath.Join(dir, "test.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { said.Close() })
	f.Demo = clusterdemo.Demo{Secret: secret.New(), Settings: clusterdemo.Settings{Nodes: clusterNodes, Strategy: "hub",
		Out: dir, Delay: failOverDelay, W: said}}
	for i := range clusterServers { // not a port that another connection may have been given meanwhile
		f.Servers = append(f.Servers, fmt.Sprintf("127.%d.%d.%d:7070", 100+os.Getpid()%100, os.Getpid()/100%250, i+1))
	}
	for range failOverSites {
		f.serve(40 + kills*failOverPages)
	}
	f.Server = f.sites[0].Server
	return f
}

// serve serves another web, whose hosts have addresses and no names.
func (f *failOver) serve(pages int) *site {
	cfg := synthweb.Clean(f.seed+uint64(len(f.sites)), failOverHosts, failOverHosts*pages)
	cfg.ByAddress, cfg.MedianSize, cfg.Spread, cfg.Latency = true, 4<<10, -1, 10*time.Millisecond
	cfg.Kinds[synthweb.Image], cfg.Kinds[synthweb.Style] = 0, 0
	s := &site{web: synthweb.New(cfg)}
	var err error
	if s.Server, err = synthweb.Serve(f.Context(), s.web, synthweb.ServeOptions{Log: true}); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.Close() })
	f.sites = append(f.sites, s)
	return s
}

// startNode starts or restarts the process of a node.
func (f *failOver) startNode(i int) {
	name := fmt.Sprintf("n%d", i+1)
	args := []string{"node", "--crawl", clusterdemo.Crawl, "--name", name, "--out", filepath.Join(f.Out, name), "--strategy",
		f.Strategy,
		"--servers", fmt.Sprint(clusterServers), "--join", strings.Join(f.Servers, ","), "--memory", "64MB",
		"--min-free-disk", "0", "--concurrency", "16"}
	if serves(i) {
		args = append(args, "--listen", f.Servers[i/2])
	}
	p := &clusterdemo.Node{Name: name, Ended: make(chan struct{})}
	var err error
	if p.Log, err = os.OpenFile(filepath.Join(f.Out, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY,
		0o666); err != nil {
		f.Fatal(err)
	}
	p.Cmd = exec.Command(kumoProgram(f.T), args...)
	p.Cmd.Stdout, p.Cmd.Stderr = p.Log, p.Log
	p.Cmd.Env = append(os.Environ(), secretVariable+"="+f.Secret.Text())
	if err := p.Cmd.Start(); err != nil {
		f.Fatal(err)
	}
	go func() {
		p.Err = p.Cmd.Wait()
		p.Log.Close()
		close(p.Ended)
	}()
	if i == len(f.Procs) {
		f.Procs = append(f.Procs, p)
	} else {
		f.Procs[i] = p
	}
}

// serves reports whether a node runs a server: not the second, which may be the control unit.
func serves(i int) bool { return i%2 == 0 }

// form starts the nodes as a cluster, and the crawl.
func (f *failOver) form() {
	for i := range clusterNodes {
		f.startNode(i)
	}
	ctx, cancel := context.WithTimeout(f.Context(), failOverMost)
	defer cancel()
	var err error
	if f.client, err = cluster.OpenClient(ctx, clusterdemo.Crawl, cluster.NodeOptions{Join: f.Servers,
		Secret: f.Secret}); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { f.client.Close() })
	if err := startDemo(ctx, f.client, f.Delay, f.Server.SeedURLs()); err != nil {
		f.Fatal(err)
	}
	f.Started = time.Now()
	f.settle(time.Time{})
	for _, s := range f.sites {
		f.add(ctx, s, func() {})
	}
	f.settle(time.Now())
}

// add adds each host of a web as a seed, and calls first when the first one was accepted.
func (f *failOver) add(ctx context.Context, s *site, first func()) {
	for i := range s.web.Len() {
		seed := s.web.URL(synthweb.Ref{Host: uint32(i)}, s.Port())
		for {
			one, cancel := context.WithTimeout(ctx, clusterWait)
			err := f.client.Add(one, []string{seed})
			cancel()
			if err == nil {
				break
			}
			f.Logf("a seed is added again: %v", err)
			if ctx.Err() != nil {
				f.Error(err)
				return
			}
		}
		if i == 0 {
			first()
		}
	}
}

// settle waits until all nodes have reported since a given time that they are members and have received their hosts,
// and one node that it is the control unit.
func (f *failOver) settle(since time.Time) {
	f.Helper()
	late := fmt.Errorf("no settled cluster of %d nodes after %v", clusterNodes, 2*failOverMost)
	ctx, cancel := context.WithTimeoutCause(f.Context(), 2*failOverMost, late)
	defer cancel()
	if err := f.WaitFor(ctx, f.client, func(c *inspect.Cluster) bool {
		untold := slices.ContainsFunc(c.Nodes, func(n inspect.Node) bool {
			return n.Is == inspect.NodeMember &&
				!n.Clock.After(since)
		})
		return c.Settled && clusterdemo.Members(c) == clusterNodes && c.Control != "" && !untold
	}); err != nil {
		f.fail(err)
	}
}

// fail ends the test, and logs the state of the cluster.
func (f *failOver) fail(err error) {
	f.Helper()
	f.Error(err)
	for _, p := range f.Procs {
		text, _ := os.ReadFile(p.Log.Name())
		f.Logf("%s said:\n%s", p.Name, text[max(0, len(text)-2000):])
	}
	f.FailNow()
}

// killControl kills the control unit, and restarts it when another node has taken over.
func (f *failOver) killControl() {
	victim := slices.IndexFunc(f.Procs, func(p *clusterdemo.Node) bool { return p.Name == f.Control })
	if victim < 0 {
		f.fail(fmt.Errorf("%q is said to be the control unit", f.Control))
	}
	fresh := f.serve(failOverFresh)
	k := &killing{at: time.Now(), victim: f.Control, server: serves(victim), waiting: 1 << 30}
	f.killings = append(f.killings, k)
	if err := f.Procs[victim].Kill(); err != nil {
		f.fail(err)
	}
	<-f.Procs[victim].Ended
	ctx, cancel := context.WithTimeout(f.Context(), failOverMost)
	defer cancel()
	var adding sync.WaitGroup
	adding.Go(func() { f.add(ctx, fresh, func() { k.added = time.Since(k.at) }) })
	f.watch(ctx, k, fresh)
	k.back = time.Now()
	f.startNode(victim)
	adding.Wait()
	f.settle(k.back)
	k.settled = time.Since(k.back)
	f.Logf("%v", k)
}

// watch waits until another node is the control unit and the others have its name, and until a new host is assigned.
func (f *failOver) watch(ctx context.Context, k *killing, fresh *site) {
	poll := time.NewTicker(failOverPoll)
	defer poll.Stop()
	for k.leads == 0 || k.believed == 0 || fresh.Requests() == 0 {
		select {
		case <-ctx.Done():
			f.Errorf("after %v: %v", failOverMost, k)
			return
		case <-poll.C:
		}
		registry := f.client.(interface {
			Status(context.Context) (desired.Record, []node.Status, error)
		})
		if _, all, err := registry.Status(ctx); err == nil {
			k.see(time.Since(k.at), all)
		}
	}
	if log := fresh.Log(); len(log) > 0 { // the log has a request once it is answered
		k.granted = log[0].At.Sub(k.at)
	} else {
		k.granted = time.Since(k.at)
	}
}

// see evaluates the statuses of the other nodes at a time.
func (k *killing) see(at time.Duration, all []node.Status) {
	said, waiting := map[string]int{}, 0
	for i := range all {
		s := &all[i]
		if s.Node.Name() == k.victim || s.Facts == nil {
			continue
		}
		waiting += s.Waiting
		said[s.Control]++
		if s.Leads && k.leads == 0 {
			k.leads, k.next = at, s.Node.Name()
		}
	}
	k.waiting = min(k.waiting, waiting)
	if k.leads > 0 && k.believed == 0 && said[k.next] > 1 {
		k.believed = at
	}
}

// finish lets the crawl and its processes end.
func (f *failOver) finish() {
	ctx, cancel := context.WithTimeoutCause(f.Context(), 10*failOverMost, fmt.Errorf("the crawl has no end after %v",
		10*failOverMost))
	defer cancel()
	if err := f.WaitEnd(ctx, f.client); err != nil {
		f.fail(err)
	}
}
