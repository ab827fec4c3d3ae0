package natsbus

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"kumo/internal/base/secret"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/bus/bustest"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central"
	"kumo/internal/cluster/strategy/hub"
)

// BenchmarkGrants measures how many hosts per second strategy hub assigns if its control unit has its log on one
// server, and on three, synced there before any answer is sent. Both nodes are in this process, and reach each host at
// once.
func BenchmarkGrants(b *testing.B) {
	for _, n := range []int{1, 3} {
		b.Run(fmt.Sprintf("servers %d", n), func(b *testing.B) {
			s, servers := secret.New(), bustest.Addresses(b, n)
			opened := make(chan *Cluster, n)
			for _, listen := range servers {
				cfg := Config{Crawl: "bench", Listen: listen, Servers: servers, Dir: b.TempDir(), Secret: s}
				go func() { opened <- openBench(b, cfg) }()
			}
			var at *Cluster
			for range servers {
				at = <-opened
			}
			bus, err := at.Join("a~1")
			if err != nil {
				b.Fatal(err)
			}
			benchGrants(b, bus)
		})
	}
}

func benchGrants(b *testing.B, bus bus.Bus) {
	g := &granting{b: b, bus: bus, told: make(chan told, 64), hubs: map[strategy.Node]*central.Strategy{}}
	members := strategy.Members{Epoch: 1, Settled: 1}
	for _, n := range []strategy.Node{"a~1", "b~1"} {
		g.hubs[n] = hub.New(hub.Config{Config: central.Config{Self: n, GatherTime: -1, Probes: 1 << 20}, BalanceInterval: -1})
		members.Members = append(members.Members, strategy.Member{Node: n})
	}
	for n := range g.hubs {
		g.step(n, members)
	}
	for !g.hubs["a~1"].Status().Leads {
		g.wait()
	}
	asked, begin := 0, time.Now()
	for b.Loop() {
		var hosts []string
		for range 500 {
			asked++
			hosts = append(hosts, fmt.Sprintf("www%d.example%d.com", asked, asked%977))
		}
		g.step("b~1", strategy.OwnersNeeded{Hosts: hosts})
		for asked-g.granted() > 10_000 {
			g.wait()
		}
	}
	for g.granted() < asked && time.Since(begin) < 2*time.Minute {
		g.wait()
	}
	b.ReportMetric(float64(g.granted())/time.Since(begin).Seconds(), "grants/s")
	if g.granted() < asked {
		b.Errorf("%d of %d hosts were given away", g.granted(), asked)
	}
}

// granting is hubs whose log is on a bus, but not their messages.
type granting struct {
	b    *testing.B
	bus  bus.Bus
	hubs map[strategy.Node]*central.Strategy
	told chan told
}

// told is the log entries that a node has received.
type told struct {
	node  strategy.Node
	event strategy.Event
}

func (g *granting) granted() int { return g.hubs["a~1"].Status().Owned + g.hubs["b~1"].Status().Owned }

// wait waits briefly for entries of the log.
func (g *granting) wait() {
	select {
	case t := <-g.told:
		g.step(t.node, t.event)
	case <-time.After(20 * time.Millisecond):
		for n := range g.hubs {
			g.step(n, strategy.Fired{})
		}
	}
}

func (g *granting) step(n strategy.Node, in ...strategy.Event) {
	var again []strategy.Event
	for _, a := range g.hubs[n].Step(time.Now(), in, nil) {
		switch a := a.(type) {
		case strategy.Send:
			g.step(a.To, strategy.Message{From: n, Data: a.Data})
		case strategy.Probe:
			again = append(again, strategy.ProbeResult{Host: a.Host, OK: true, Connect: 5 * time.Millisecond})
		case strategy.Persist:
			go g.persist(n, a)
		case strategy.Read:
			go g.read(n, a)
		case strategy.Trim:
			go func() { _ = g.bus.Trim(g.b.Context(), "strategy", a.Before) }()
		}
	}
	if len(again) > 0 {
		g.step(n, again...)
	}
}

func (g *granting) persist(n strategy.Node, a strategy.Persist) {
	e := strategy.Persisted{ID: a.ID, State: strategy.InDoubt}
	if number, err := g.bus.Append(g.b.Context(), "strategy", a.Data, a.After); err == nil {
		e.Number, e.State = number, strategy.Durable
	}
	g.tell(n, e)
}

func (g *granting) read(n strategy.Node, a strategy.Read) {
	last := a.After
	_ = g.bus.Read(g.b.Context(), "strategy", a.After, func(number uint64, data []byte) error {
		last = number
		g.tell(n, strategy.LogEntry{Number: number, Data: bytes.Clone(data)})
		return nil
	})
	g.tell(n, strategy.LogEnd{Last: last})
}

func (g *granting) tell(n strategy.Node, e strategy.Event) {
	select {
	case g.told <- told{n, e}:
	case <-g.b.Context().Done():
	}
}
