package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"kumo/internal/bus/bustest"
	"kumo/internal/secret"
	"kumo/internal/synthweb"
)

// Three nodes with the servers that belong to them, TLS and all. One of them goes, with its server, its state and its
// disk, and comes back with nothing.
func TestNodesOverTheirOwnServers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	web := serve(t, synthweb.Clean(21, 40, 3000))
	servers, key := bustest.Addresses(t, 3), secret.New()
	dir := t.TempDir()
	timing := quick()
	timing.TTL, timing.Margin = 8*time.Second, time.Second // an election may take some seconds
	options := func(i int) NodeOptions {
		name := fmt.Sprint("node", i)
		return NodeOptions{Name: name, Listen: servers[i], Servers: servers, Secret: key, timing: timing,
			Log: slog.New(slog.NewTextHandler(t.Output(), nil)).With("node", name)}
	}
	start := func(i int, dir string) *running {
		j := jobFor(web)
		j.Dir = filepath.Join(dir, fmt.Sprint(i))
		j.Frontier.Delay = 100 * time.Millisecond
		ctx, stop := context.WithCancel(t.Context())
		r := &running{nil, j.Dir, stop, make(chan error, 1)}
		go func() {
			n, err := OpenNode(ctx, j, options(i))
			if err == nil {
				_, err = n.Run(ctx)
				n.Close()
			}
			r.ended <- err
		}()
		return r
	}
	nodes := []*running{start(0, dir), start(1, dir), start(2, dir)}
	control, err := OpenControl(t.Context(), "test", options(0))
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	c := &cluster{t: t, web: web, control: control}
	c.members(3)
	c.begin()
	c.eventually("some of it is fetched", func() bool { return web.Requests() > 600 })
	nodes[1].kill()
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
