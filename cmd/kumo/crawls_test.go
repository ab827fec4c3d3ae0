package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"kumo/internal/app/inspect"
	"kumo/internal/cluster/bus/bustest"
	"kumo/internal/lab/synthweb"
	"kumo/internal/lab/testmain"
)

// A shared cluster is one of processes that take part in all crawls.
type sharedCluster struct {
	*testing.T
	dir     string
	address string   // of the server
	connect []string // flags of commands; nil: --join with the address
	server  *synthweb.Server
}

// start starts a node, which is killed at the end.
func (c *sharedCluster) start(args ...string) *exec.Cmd {
	cmd := exec.Command(kumoProgram(c), append([]string{"node"}, args...)...)
	cmd.Dir = c.dir
	log, err := os.CreateTemp(c.dir, "node*.log")
	if err != nil {
		c.Fatal(err)
	}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if said, err := os.ReadFile(log.Name()); err == nil && c.Failed() {
			c.Logf("kumo node %q:\n%s", args, said)
		}
		log.Close()
	})
	return cmd
}

// kumo runs a command, and returns its output.
func (c *sharedCluster) kumo(args ...string) []byte {
	c.Helper()
	out, err := c.try(args...)
	if err != nil {
		c.Fatal(err)
	}
	return out
}

func (c *sharedCluster) try(args ...string) ([]byte, error) {
	connect := c.connect
	if connect == nil {
		connect = []string{"--join", c.address}
	}
	cmd := exec.Command(kumoProgram(c), append(args, connect...)...)
	var out, said bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, &out, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("kumo %q: %w\n%s", args, err, said.String())
	}
	return out.Bytes(), nil
}

// status returns the state of all crawls. It waits while the servers elect a leader.
func (c *sharedCluster) status() map[string]inspect.Cluster {
	c.Helper()
	all := map[string]inspect.Cluster{}
	out, err := c.try("status", "--json")
	for tries := 0; err != nil; tries++ {
		if tries > 10 {
			c.Fatal(err)
		}
		out, err = c.try("status", "--json")
	}
	in := json.NewDecoder(bytes.NewReader(out))
	for in.More() {
		var one inspect.Cluster
		if err := in.Decode(&one); err != nil {
			c.Fatal(err)
		}
		all[one.Crawl] = one
	}
	return all
}

// eventually waits for a condition. It gives up when the servers have received no request for a while. The total time
// does not matter, because the machine may be busy.
func (c *sharedCluster) eventually(what string, is func(map[string]inspect.Cluster) bool) {
	c.Helper()
	var last map[string]inspect.Cluster
	var requests int64
	for looks := 0; looks < 240; looks++ {
		if last = c.status(); is(last) {
			return
		}
		if now := c.server.Requests(); now > requests {
			requests, looks = now, 0
		}
		time.Sleep(500 * time.Millisecond)
	}
	c.Fatalf("never: %s: %+v", what, last)
}

// Three nodes run two crawls of the same hosts, with different strategies. One node is killed. Both crawls fetch all
// pages, and together they visit each host no more often than one crawl may.
func TestSeveralCrawlsShareHosts(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	const delay = 300 * time.Millisecond
	cfg := synthweb.Clean(31, 8, 130)
	cfg.CrawlDelay, cfg.Traits = 500*time.Millisecond, map[synthweb.Trait]int{synthweb.Delay: 200}
	server, err := synthweb.Serve(t.Context(), synthweb.New(cfg), synthweb.ServeOptions{DNS: true, Log: true})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	c := &sharedCluster{T: t, dir: t.TempDir(), address: bustest.Addresses(t, 1)[0], server: server}
	dns := []string{"--dns-server", server.DNS()}
	c.start(append(dns, "--listen", c.address)...)
	c.start(append(dns, "--name", "b", "--join", c.address)...)
	victim := c.start(append(dns, "--name", "c", "--join", c.address)...)
	begin := func(crawl, strategy string) {
		c.kumo("start", "--crawl", crawl, "--strategy", strategy, "--scope", "any", "--allow-private", "--ip-delay", "0",
			"--delay", delay.String(), server.SeedURLs()[0])
	}
	begin("news", "shard")
	members := func(all map[string]inspect.Cluster, crawl string) (n int) {
		one := all[crawl]
		for i := range one.Nodes {
			if one.Nodes[i].Is == inspect.NodeMember {
				n++
			}
		}
		return n
	}
	c.eventually("news has three nodes, and pages", func(all map[string]inspect.Cluster) bool {
		return members(all, "news") == 3 && all["news"].Totals.Pages > 20
	})
	begin("docs", "balance")
	c.eventually("docs has three nodes, and pages", func(all map[string]inspect.Cluster) bool {
		return members(all, "docs") == 3 && all["docs"].Totals.Pages > 40
	})
	victim.Process.Kill()
	c.eventually("both are done", func(all map[string]inspect.Cluster) bool {
		return all["news"].State == "done" && all["docs"].State == "done"
	})
	log := server.Log()
	const slack = 5 * time.Millisecond // the server may notice the end of a request late
	if found := log.Overlaps(delay - slack); len(found) > 0 {
		t.Errorf("%d requests came too soon, such as %+v", len(found), found[0])
	}
	score := server.Score()
	if score.Missing > 0 || score.Hasty > 0 || score.Forbidden > 0 || score.MostInFlight.Value != 1 {
		t.Errorf("the servers saw:\n%s", score)
	}
	if repeats := len(log.Repeats()); repeats < score.Truth/2 {
		t.Errorf("only %d pages were fetched by both crawls", repeats)
	}
}

// A crawl is stopped and resumed while another goes on. A node that was killed resumes only crawls that run.
func TestCrawlsOfAClusterAreIndependent(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	server, err := synthweb.Serve(t.Context(), synthweb.New(synthweb.Clean(32, 20, 20_000)),
		synthweb.ServeOptions{DNS: true})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	c := &sharedCluster{T: t, dir: t.TempDir(), address: bustest.Addresses(t, 1)[0], server: server}
	args := []string{"--dns-server", server.DNS(), "--listen", c.address}
	one := c.start(args...)
	for _, crawl := range []string{"a", "b"} {
		c.kumo("start", "--crawl", crawl, "--scope", "any", "--allow-private", "--ip-delay", "0", "--delay", "200ms",
			server.SeedURLs()[0])
	}
	c.eventually("both have pages", func(all map[string]inspect.Cluster) bool {
		return all["a"].Totals.Pages > 0 && all["b"].Totals.Pages > 0
	})
	c.kumo("stop", "--crawl", "a")
	var before int64
	advanced := func(all map[string]inspect.Cluster) bool {
		if before == 0 {
			before = all["b"].Totals.Pages
		}
		return all["b"].Totals.Pages > before+40
	}
	c.eventually("b goes on", advanced)
	stopped := c.status()["a"].Totals.Pages
	before = 0
	c.eventually("b goes on", advanced)
	if a := c.status()["a"]; a.Totals.Pages != stopped || a.State != "stopping" {
		t.Errorf("a goes on: %d pages, had %d", a.Totals.Pages, stopped)
	}
	one.Process.Kill()
	one.Wait()
	c.start(args...) // resumes b, but not a
	before = 0
	c.eventually("b is resumed", advanced)
	if a := c.status()["a"]; a.Totals.Pages != stopped || a.State != "stopping" {
		t.Errorf("a is resumed: %d pages, had %d", a.Totals.Pages, stopped)
	}
	c.kumo("start", "--crawl", "a")
	c.eventually("a is resumed", func(all map[string]inspect.Cluster) bool {
		return all["a"].State == "running" && all["a"].Totals.Pages > stopped+5
	})
}

// The requests of a node's two crawls are divided by their shares while both have enough pending URLs.
func TestCrawlsShareARate(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	server, err := synthweb.Serve(t.Context(), synthweb.New(synthweb.Clean(33, 60, 20_000)),
		synthweb.ServeOptions{DNS: true})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	c := &sharedCluster{T: t, dir: t.TempDir(), address: bustest.Addresses(t, 1)[0], server: server}
	const rate = 10
	c.start("--dns-server", server.DNS(), "--listen", c.address, "--max-rate", fmt.Sprint(rate))
	for crawl, share := range map[string]string{"news": "3", "docs": "1"} {
		c.kumo("start", "--crawl", crawl, "--share", share, "--scope", "any", "--allow-private", "--ip-delay", "0", "--delay",
			"100ms", server.SeedURLs()[0])
	}
	// A crawl that knows few hosts waits while the other one visits them.
	c.eventually("both know many hosts", func(all map[string]inspect.Cluster) bool {
		return all["news"].Totals.Pages > 100 && all["docs"].Totals.Pages > 100
	})
	news0, docs0, began := c.pages("news"), c.pages("docs"), time.Now()
	var news, docs int64
	c.eventually("300 more pages", func(all map[string]inspect.Cluster) bool {
		news = all["news"].Totals.Pages - news0
		docs = all["docs"].Totals.Pages - docs0
		return len(all) == 2 && news+docs > 300
	})
	took := time.Since(began)
	t.Logf("shares 3 and 1: %d and %d pages in %v", news, docs, took)
	if float64(news+docs) < 0.8*rate*took.Seconds() {
		t.Skip("SKIPPED: the machine is slower than the rate")
	}
	if ratio := float64(news) / float64(docs); ratio < 2 || ratio > 4.5 {
		t.Errorf("shares are 3 and 1, pages %d and %d", news, docs)
	}
}
