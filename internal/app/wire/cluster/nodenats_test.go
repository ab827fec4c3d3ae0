package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kumo/internal/app/inspect"
	"kumo/internal/base/secret"
	"kumo/internal/cluster/bus/bustest"
	"kumo/internal/cluster/member"
	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
	"kumo/internal/lab/testmain"
)

// Three nodes with their own servers and TLS. One of them is lost with its server, state and disk, and returns without
// data.
func TestNodesOverTheirOwnServers(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	web := jobtest.Serve(t, synthweb.Clean(21, 40, 3000))
	servers, key := bustest.Addresses(t, 3), secret.New()
	dir := t.TempDir()
	timing := &member.Timing{Beat: 200 * time.Millisecond, TTL: 8 * time.Second, Margin: time.Second, // for an election
		Retry: 200 * time.Millisecond, Window: 16}
	options := func(i int) NodeOptions {
		name := fmt.Sprint("node", i)
		return NodeOptions{Name: name, Listen: servers[i], Servers: servers, Secret: key, timing: timing,
			Log: slog.New(slog.NewTextHandler(t.Output(), nil)).With("node", name)}
	}
	type process struct {
		stop  context.CancelFunc
		ended chan error
	}
	start := func(i int, dir string) process {
		j := jobtest.For(web, filepath.Join(dir, fmt.Sprint(i)))
		j.Seeds = nil // they are passed to the cluster
		j.Frontier.Delay = 100 * time.Millisecond
		ctx, stop := context.WithCancel(t.Context())
		p := process{stop, make(chan error, 1)}
		go func() {
			n, err := OpenNode(ctx, j, options(i))
			if err == nil {
				_, err = n.Run(ctx)
				n.Close()
			}
			p.ended <- err
		}()
		return p
	}
	nodes := []process{start(0, dir), start(1, dir), start(2, dir)}
	client, err := OpenClient(t.Context(), "test", options(0))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	eventually := func(what string, is func() bool) {
		t.Helper()
		for range 600 {
			if is() {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Fatal("never: ", what)
	}
	eventually("all are members", func() bool {
		c, err := client.Cluster(t.Context(), "test")
		if err != nil {
			t.Fatal(err)
		}
		return len(c.Nodes) == 3 && c.Settled &&
			!slices.ContainsFunc(c.Nodes, func(n inspect.Node) bool { return n.Is != inspect.NodeMember })
	})
	if err := client.Start(t.Context(), nil, web.SeedURLs()); err != nil {
		t.Fatal(err)
	}
	eventually("some of it is fetched", func() bool { return web.Requests() > 600 })
	nodes[1].stop()
	<-nodes[1].ended
	nodes[1] = start(1, t.TempDir())
	for i, r := range nodes {
		select {
		case err := <-r.ended:
			if err != nil {
				t.Errorf("node %d ended with %v", i, err)
			}
		case <-time.After(3 * time.Minute):
			t.Fatalf("node %d goes on and on", i)
		}
	}
	if score := web.Score(); score.Missing != 0 || score.MostInFlight.Value != 1 || score.Repeats > 200 {
		t.Errorf("the servers saw:\n%s", score)
	}
}
