package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kumo/internal/app/admin"
	"kumo/internal/app/inspect"
	"kumo/internal/app/wire/cluster"
	"kumo/internal/base/secret"
	"kumo/internal/lab/clusterdemo"
	"kumo/internal/lab/synthweb"
)

const (
	spreadNodes = 3
	spreadDelay = 500 * time.Millisecond // between requests to a host
	spreadAfter = 30 * time.Second       // from the last node's joining until all have their shares
	spreadShare = 1.3                    // the greatest, as a share of the mean
	spreadMost  = 3 * time.Minute        // until all are members
)

// TestSpread starts a crawl of a made-up web, all of whose hosts are seeds, on three waiting processes,
// KUMO_TEST_SPREAD times (none unless it is set). It logs how many hosts each owns half a minute after the last of them
// has joined. KUMO_TEST_HOSTS is the number of hosts (40), and KUMO_TEST_BUSY the number of busy loops beside them (0):
// the nodes then have different priorities, so that some join long before others.
func TestSpread(t *testing.T) {
	runs := number("KUMO_TEST_SPREAD", 0)
	if runs == 0 {
		t.Skip("SKIPPED: it takes three quarters of a minute a run; set KUMO_TEST_SPREAD to run it")
	}
	seed := number("KUMO_TEST_SEED", rand.Uint64N(1<<40))
	t.Logf("KUMO_TEST_SEED=%d", seed)
	for i := range runs {
		t.Run(strconv.FormatUint(i+1, 10), func(t *testing.T) {
			spreadOnce(t, seed+i, int(number("KUMO_TEST_HOSTS", 40)),
				int(number("KUMO_TEST_BUSY", 0)))
		})
	}
}

// A spreading is one run.
type spreading struct {
	*testing.T
	clusterdemo.Demo // follows the cluster
}

func spreadOnce(t *testing.T, seed uint64, hosts, busy int) {
	addresses, err := clusterdemo.FreeAddresses(1)
	if err != nil {
		t.Fatal(err)
	}
	s := &spreading{T: t, Demo: clusterdemo.Demo{Secret: secret.New(), Servers: addresses,
		Settings: clusterdemo.Settings{Strategy: "hub", Out: t.TempDir(), Delay: spreadDelay}}}
	s.Started, s.W = time.Now(), io.Discard
	cfg := synthweb.Clean(seed, hosts, hosts*200)
	cfg.ByAddress = true
	web := synthweb.New(cfg)
	if s.Server, err = synthweb.Serve(t.Context(), web, synthweb.ServeOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Server.Close() })
	var seeds strings.Builder
	for i := range web.Len() {
		fmt.Fprintln(&seeds, web.URL(synthweb.Ref{Host: uint32(i)}, s.Server.Port()))
	}
	list := filepath.Join(s.Out, "seeds")
	if err := os.WriteFile(list, []byte(seeds.String()), 0o666); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(s.KillAll)
	for i := range spreadNodes {
		s.spreadNode(i, busy > 0)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), spreadMost, fmt.Errorf("the nodes are no members after %v",
		spreadMost))
	defer cancel()
	client, err := cluster.OpenClient(ctx, clusterdemo.Crawl, cluster.NodeOptions{Join: s.Servers, Secret: s.Secret})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if err := s.WaitFor(ctx, client, func(c *inspect.Cluster) bool { return len(c.Nodes) == spreadNodes }); err != nil {
		t.Fatal(err)
	}
	for range busy {
		busyLoop(t)
	}
	start := s.kumo("start", "--crawl", clusterdemo.Crawl, "--join", s.Servers[0], "-i", list, "--scope", "any", "--allow-private",
		"--ip-delay", "0", "--delay", s.Delay.String(),
		"--contact", "https://example.org/test")
	if said, err := start.CombinedOutput(); err != nil {
		t.Fatalf("kumo start: %v\n%s", err, said)
	}
	began := time.Now()
	if err := s.WaitFor(ctx, client, func(c *inspect.Cluster) bool { return clusterdemo.Members(c) == spreadNodes }); err != nil {
		t.Fatal(err)
	}
	came := time.Since(began)
	time.Sleep(spreadAfter)
	s.shares(ctx, client, came)
}

// spreadNode starts a node. With uneven ones each has a lower priority than the one before.
func (s *spreading) spreadNode(i int, uneven bool) {
	p := &clusterdemo.Node{Name: fmt.Sprintf("n%d", i+1), Ended: make(chan struct{})}
	how := "--join"
	if i == 0 {
		how = "--listen"
	}
	p.Cmd = s.kumo("node", "--crawl", clusterdemo.Crawl, "--name", p.Name, "--out", filepath.Join(s.Out, p.Name), "--strategy",
		s.Strategy, how, s.Servers[0],
		"--memory", "64MB", "--min-free-disk", "0")
	var err error
	if p.Log, err = os.Create(filepath.Join(s.Out, p.Name+".log")); err != nil {
		s.Fatal(err)
	}
	p.Cmd.Stdout, p.Cmd.Stderr = p.Log, p.Log
	if err := p.Cmd.Start(); err != nil {
		s.Fatal(err)
	}
	go func() {
		p.Err = p.Cmd.Wait()
		p.Log.Close()
		close(p.Ended)
	}()
	s.Procs = append(s.Procs, p)
	if uneven {
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, p.Cmd.Process.Pid, 5*i); err != nil {
			s.Fatal(err)
		}
	}
}

// kumo returns the program's command with the cluster's secret.
func (s *spreading) kumo(args ...string) *exec.Cmd {
	cmd := exec.Command(kumoProgram(s.T), args...)
	cmd.Env = append(os.Environ(), secretVariable+"="+s.Secret.Text())
	return cmd
}

// busyLoop keeps a processor busy until the test ends, and for ten minutes at most in case the test is killed.
func busyLoop(t *testing.T) {
	cmd := exec.Command("timeout", "600", "sh", "-c", "while :; do :; done")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // all of its group; it may have ended
		_ = cmd.Wait()                                      // it was killed
	})
}

// shares logs how many hosts each node owns, and checks it.
func (s *spreading) shares(ctx context.Context, client admin.Client, came time.Duration) {
	owners, err := client.Owners(ctx, admin.HostQuery{})
	if err != nil {
		s.Fatal(err)
	}
	c, err := client.Cluster(ctx, clusterdemo.Crawl)
	if err != nil {
		s.Fatal(err)
	}
	owned, total, most, moved := map[string]int{}, 0, 0, 0
	for _, by := range owners.By {
		owned[by.Node] = by.Hosts
		total, most = total+by.Hosts, max(most, by.Hosts)
	}
	for i := range owners.Hosts {
		if owners.Hosts[i].Moved {
			moved++
		}
	}
	var has, pages []string
	for i := range c.Nodes {
		has = append(has, strconv.Itoa(owned[c.Nodes[i].Node]))
		pages = append(pages, strconv.FormatInt(c.Nodes[i].Pages, 10))
	}
	greatest := float64(most*spreadNodes) / float64(max(total, 1))
	s.Logf("owned %s of %d, moved %d, greatest share %.2f, pages %s, all members after %.1f s", strings.Join(has, " "),
		total, moved, greatest,
		strings.Join(pages, " "), came.Seconds())
	if greatest > spreadShare || total == 0 {
		s.Errorf("one has %.2f times its share, want %.2f at most", greatest, spreadShare)
	}
}
