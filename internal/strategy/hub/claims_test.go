package hub

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"kumo/internal/bus"
	"kumo/internal/bus/natsbus"
	"kumo/internal/strategy"
)

// A logged unit is a control unit whose log is on a bus.
type logged struct {
	b      *testing.B
	bus    bus.Bus
	hub    *Hub
	told   chan strategy.Event
	grants int
}

func (l *logged) step(in ...strategy.Event) {
	for _, a := range l.hub.Step(time.Now(), in, nil) {
		switch a := a.(type) {
		case strategy.Persist:
			go func() {
				e := strategy.Persisted{ID: a.ID, State: strategy.Doubt}
				if n, err := l.bus.Append(l.b.Context(), "strategy", a.Data, a.After); err == nil {
					e.Number, e.State = n, strategy.Durable
				}
				l.told <- e
			}()
		case strategy.Read:
			go func() {
				last := a.After
				_ = l.bus.Read(l.b.Context(), "strategy", a.After, func(n uint64, data []byte) error {
					last = n
					l.told <- strategy.Logged{Number: n, Data: bytes.Clone(data)}
					return nil
				})
				l.told <- strategy.AtEnd{Last: last}
			}()
		case strategy.Trim:
			go func() { _ = l.bus.Trim(l.b.Context(), "strategy", a.Before) }()
		case strategy.Send:
			if m, err := parseMessage(a.Data); err == nil {
				for i := range m.items {
					if m.items[i].kind == itemYours {
						l.grants++
					}
				}
			}
		}
	}
}

// BenchmarkLoggedClaims is how many hosts a second a control unit grants whose log is on KUMO_SERVERS servers (1),
// synced there before any answer leaves. A batch is what has come while the one before was written.
func BenchmarkLoggedClaims(b *testing.B) {
	l := &logged{b: b, told: make(chan strategy.Event, 64)}
	l.bus = joined(b)
	l.hub = New(Config{Self: "a~1"})
	l.step(strategy.Members{Epoch: 1, Settled: 1, Members: []strategy.Member{{Node: "a~1"}, {Node: "b~1"}}})
	for l.hub.controller == nil || !l.hub.controller.leading {
		select {
		case e := <-l.told:
			l.step(e)
		case <-time.After(20 * time.Millisecond):
			l.step(strategy.Fired{})
		}
	}
	asked, begin := 0, time.Now()
	for b.Loop() {
		node := New(Config{Self: "b~1"})
		for range 500 {
			asked++
			node.post("a~1", msgAsk, item{kind: itemClaim, host: fmt.Sprintf("www%d.example%d.com", asked, asked%977),
				number: 5000})
		}
		for _, m := range node.mails {
			l.step(strategy.Message{From: "b~1", Data: m.data})
		}
		for asked-l.grants > 10_000 || len(l.told) > 0 {
			l.step(<-l.told)
		}
	}
	for l.grants < asked && time.Since(begin) < 2*time.Minute {
		select {
		case e := <-l.told:
			l.step(e)
		case <-time.After(50 * time.Millisecond):
			l.step(strategy.Fired{})
		}
	}
	b.ReportMetric(float64(l.grants)/time.Since(begin).Seconds(), "claims/s")
	if l.grants < asked {
		b.Errorf("%d of %d claims were granted", l.grants, asked)
	}
}

// joined is a bus over servers in this process.
func joined(b *testing.B) bus.Bus {
	n, err := strconv.Atoi(cmp.Or(os.Getenv("KUMO_SERVERS"), "1"))
	if err != nil {
		b.Fatal(err)
	}
	servers := make([]string, n)
	for i := range servers {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.%d.1:0", i+1))
		if err != nil {
			b.Fatal(err)
		}
		servers[i] = l.Addr().String()
		l.Close()
	}
	opened := make(chan *natsbus.Cluster, n)
	for i := range servers {
		go func() {
			c, err := natsbus.Open(b.Context(), natsbus.Config{Name: fmt.Sprintf("s%d", i), Crawl: "bench", Listen: servers[i],
				Servers: servers, Join: servers,
				Dir: b.TempDir(), Log: func(string) {}})
			if err != nil {
				b.Error(err)
			}
			opened <- c
		}()
	}
	var first bus.Bus
	for range servers {
		c := <-opened
		if c == nil {
			b.FailNow()
		}
		b.Cleanup(func() { c.Close() })
		if first == nil {
			if first, err = c.Join("a~1"); err != nil {
				b.Fatal(err)
			}
		}
	}
	return first
}
