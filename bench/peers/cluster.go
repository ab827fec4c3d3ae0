package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"kumo/internal/app/inspect"
)

// measureCluster measures the cost of a page in a cluster on this machine: CPU time, and bytes between nodes.
func measureCluster(ctx context.Context, b *bench) error {
	b.defaults(100, 20_000, 64, 3)
	web := b.webFlags(b.hosts, b.pages)
	sizes := []int{1, 2, 4}
	var alone []result
	clusters := make([][]shared, len(sizes))
	for round := range b.rounds {
		one, err := b.run(ctx, round, kumoPeer(b.kumo), 0, web)
		if err != nil {
			return err
		}
		alone = append(alone, one)
		for i, n := range sizes {
			r, err := b.share(ctx, n, web)
			if err != nil {
				return fmt.Errorf("%d nodes: %w", n, err)
			}
			b.say("round %d: %d nodes, %s µs CPU a page, %s s", round+1, n, number(r.perPage()), number(wallSeconds(r.result)))
			clusters[i] = append(clusters[i], r)
		}
	}
	fmt.Printf("\nstrategy %s: %d pages on %d hosts, %d at once a node, one server, rounds: %d; median "+
		"(least-greatest)\n\n", b.strategy, b.pages, b.hosts,
		b.concurrency, b.rounds)
	var t table
	t.add("nodes", "µs CPU a page", "alone is 1", "pages/s", "peak MB of one", "coverage", "repeats",
		"message bytes a page", "shipped", "registry")
	t.add("kumo crawl", spread(each(alone, result.perPage)), "1", spread(each(alone, result.perSecond)),
		spread(each(alone, peakMB)),
		fmt.Sprintf("%.1f%%", median(each(alone, coverage))), "0")
	for i, n := range sizes {
		t.add(clusterRow(n, clusters[i], alone)...)
	}
	t.print(os.Stdout)
	return nil
}

// A shared is the result of a run with several nodes: CPU time of all nodes, memory of the largest.
type shared struct {
	result
	totals inspect.Load // as last reported by the nodes
}

func clusterRow(n int, runs []shared, alone []result) []string {
	var plain []result
	var message, shipped, registry []float64
	for _, r := range runs {
		plain = append(plain, r.result)
		pages := float64(max(r.totals.Pages, 1))
		message = append(message, float64(r.totals.MessageBytes)/pages)
		shipped = append(shipped, float64(r.totals.ShippedBytes)/pages)
		registry = append(registry, float64(r.totals.RegistryBytes)/pages)
	}
	repeats := each(plain, func(r result) float64 { return float64(r.score.Repeats + r.score.RepeatsOther) })
	return []string{fmt.Sprint(n), spread(each(plain, result.perPage)), spread(ratios(plain, alone, result.perPage)),
		spread(each(plain, result.perSecond)), spread(each(plain, peakMB)), fmt.Sprintf("%.1f%%",
			median(each(plain, coverage))),
		fmt.Sprintf("%.0f", median(repeats)), spread(message), spread(shipped), spread(registry)}
}

// share crawls a web with a cluster of n nodes.
func (b *bench) share(ctx context.Context, n int, web []string) (r shared, err error) {
	w, err := startWeb(ctx, b.kumo, web)
	if err != nil {
		return r, err
	}
	defer w.stop()
	dir := filepath.Join(b.dir, "cluster")
	defer os.RemoveAll(dir)
	address, err := freePair()
	if err != nil {
		return r, err
	}
	startFlags, nodeFlags := splitFlags(w.flags)
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, n)
	each := make([]used, n)
	for i := range n {
		own := filepath.Join(dir, fmt.Sprint(i))
		if err := os.MkdirAll(own, 0o755); err != nil {
			return r, err
		}
		argv := []string{b.kumo, "node", "-q", "--crawl", "bench", "--name", fmt.Sprintf("n%d", i),
			"--out", filepath.Join(own, "crawl"),
			"-c", fmt.Sprint(b.concurrency), "--min-free-disk", "0", "--strategy", b.strategy}
		argv = append(argv, nodeFlags...)
		argv = append(argv, b.meeting(i, address)...)
		go func() {
			var err error
			each[i], _, err = execute(running, argv, own, nil, 0)
			ended <- err
		}()
	}
	if err := b.await(ctx, address, n, ended); err != nil {
		return r, err
	}
	before, begin := w.cpu(), time.Now()
	argv := append([]string{"start", "--crawl", "bench", "--join", address, "--delay", "0s", "--ip-delay", "0s"},
		startFlags...)
	if out, err := exec.CommandContext(ctx, b.kumo, append(argv, w.seed)...).CombinedOutput(); err != nil {
		return r, fmt.Errorf("kumo start: %w: %s", err, out)
	}
	if r.totals, err = b.follow(ctx, address, n, ended); err != nil {
		return r, err
	}
	r.wall, r.server = time.Since(begin), w.cpu()-before
	for _, u := range each {
		r.cpu += u.cpu
		r.rss = max(r.rss, u.rss)
	}
	r.score, err = w.score(ctx)
	return r, err
}

// meeting returns the flags by which a node finds the others.
func (b *bench) meeting(node int, address string) []string {
	switch {
	case !strings.HasPrefix(b.strategy, "mesh") && node == 0:
		return []string{"--join", address, "--listen", address}
	case !strings.HasPrefix(b.strategy, "mesh"):
		return []string{"--join", address}
	case node == 0:
		return []string{"--no-lan", "--listen", address}
	}
	return []string{"--no-lan", "--listen", "127.0.0.1:0", "--join", address}
}

// splitFlags separates flags of kumo crawl that each node needs from those for the start.
func splitFlags(all []string) (start, node []string) {
	for i := 0; i < len(all); i++ {
		if all[i] == "--dns-server" && i+1 < len(all) {
			node = append(node, all[i:i+2]...)
			i++
		} else {
			start = append(start, all[i])
		}
	}
	return start, node
}

// freePair finds two consecutive free ports.
func freePair() (string, error) {
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		port := l.Addr().(*net.TCPAddr).Port
		next, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+1))
		l.Close()
		if err == nil {
			next.Close()
			return fmt.Sprintf("127.0.0.1:%d", port), nil
		}
	}
	return "", errors.New("no two consecutive ports are free")
}

const (
	lookEvery  = time.Second
	clusterMax = 5 * time.Minute
)

// await waits until all nodes have joined.
func (b *bench) await(ctx context.Context, address string, n int, ended <-chan error) error {
	for begin := time.Now(); time.Since(begin) < time.Minute; {
		select {
		case err := <-ended:
			return errors.Join(errors.New("a node ended before the start"), err)
		case <-time.After(lookEvery / 4):
		}
		if c, err := b.status(ctx, address); err == nil && len(c.Nodes) == n {
			return nil
		}
	}
	return errors.New("the nodes did not join in time")
}

// follow waits until all nodes have ended, and returns the last totals they reported.
func (b *bench) follow(ctx context.Context, address string, n int, ended <-chan error) (last inspect.Load, err error) {
	for begin := time.Now(); n > 0; {
		select {
		case err := <-ended:
			if err != nil {
				return last, err
			}
			n--
			continue
		case <-ctx.Done():
			return last, ctx.Err()
		case <-time.After(lookEvery):
		}
		if c, err := b.status(ctx, address); err == nil && c.Totals.Pages >= last.Pages {
			last = c.Totals
		}
		if time.Since(begin) > clusterMax {
			return last, errors.New("the nodes did not end in time")
		}
	}
	return last, nil
}

func (b *bench) status(ctx context.Context, address string) (c inspect.Cluster, err error) {
	out, err := exec.CommandContext(ctx, b.kumo, "status", "--json", "--crawl", "bench", "--join", address).Output()
	if err == nil {
		err = json.Unmarshal(out, &c)
	}
	return c, err
}
