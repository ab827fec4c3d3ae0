package natsbus

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kumo/internal/base/secret"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/bus/bustest"
	"kumo/internal/cluster/strategy"
)

func TestOneServer(t *testing.T) {
	t.Parallel()
	listen := bustest.Addresses(t, 1)[0]
	server := open(t, Config{Crawl: "one", Listen: listen, Dir: t.TempDir()})
	client := open(t, Config{Crawl: "one", Join: []string{listen}})
	bustest.Run(t, inTurn(server, client))
}

func TestThreeServers(t *testing.T) {
	t.Parallel()
	s := secret.New()
	servers := three(t, "three", s)
	client := open(t, Config{Crawl: "three", Join: servers[0].cfg.Servers[:1], Secret: s})
	bustest.Run(t, inTurn(append(servers, client)...))
}

// three opens three processes with a server each.
func three(t *testing.T, crawl string, s secret.Secret) []*Cluster {
	servers := bustest.Addresses(t, 3)
	all := make([]*Cluster, 3)
	var wg sync.WaitGroup
	for i, listen := range servers {
		cfg := Config{Crawl: crawl, Listen: listen, Servers: servers, Dir: t.TempDir(), Secret: s}
		wg.Go(func() { all[i] = open(t, cfg) })
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return all
}

// inTurn joins each bus through the next of some processes.
func inTurn(all ...*Cluster) bustest.Join {
	var n atomic.Int64
	return func(t *testing.T, node strategy.Node) bus.Bus {
		b, err := all[int(n.Add(1))%len(all)].Join(node)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		return b
	}
}

// open opens a process's cluster, which is closed when the test ends.
func open(t *testing.T, cfg Config) *Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cfg.Log = func(s string) { t.Log(cfg.Listen, s) }
	c, err := Open(ctx, cfg)
	if err != nil {
		t.Errorf("open %s: %v", cfg.Listen, err)
		return nil
	}
	t.Cleanup(func() { c.Close() })
	return c
}
