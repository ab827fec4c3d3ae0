package natsbus

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"kumo/internal/base/secret"
	"kumo/internal/cluster/bus/bustest"
	"kumo/internal/cluster/strategy"
)

// BenchmarkBus measures a node's bus with one server in its process, and with three servers, all on this machine.
func BenchmarkBus(b *testing.B) {
	before := memory()
	one := openBench(b, Config{Crawl: "bench", Listen: bustest.Addresses(b, 1)[0], Dir: b.TempDir()})
	b.Logf("memory of a server: %d KB", (memory()-before)>>10)
	b.Run("1 server", func(b *testing.B) { benchBus(b, one, one) })
	s, servers := secret.New(), bustest.Addresses(b, 3)
	all := make([]*Cluster, 3)
	before = memory()
	var wg sync.WaitGroup
	for i, listen := range servers {
		cfg := Config{Crawl: "bench", Listen: listen, Servers: servers, Dir: b.TempDir(), Secret: s}
		wg.Go(func() { all[i] = openBench(b, cfg) })
	}
	wg.Wait()
	b.Logf("memory of three servers: %d KB", (memory()-before)>>10)
	b.Run("3 servers", func(b *testing.B) { benchBus(b, all[0], all[1]) })
}

func openBench(b *testing.B, cfg Config) *Cluster {
	ctx, cancel := context.WithTimeout(b.Context(), 30*time.Second)
	defer cancel()
	c, err := Open(ctx, cfg)
	if err != nil {
		b.Error(err)
		return nil
	}
	b.Cleanup(func() { c.Close() })
	return c
}

// memory returns the memory in use, including stacks.
func memory() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

func benchBus(b *testing.B, at, other *Cluster) {
	for _, workers := range []int{1, 64} {
		b.Run(fmt.Sprintf("puts by %d", workers), func(b *testing.B) { benchPut(b, at, workers) })
	}
	for _, kb := range []int{64, 1024} {
		for _, logs := range []int{1, 8} {
			b.Run(fmt.Sprintf("appends of %d KB to %d logs", kb, logs), func(b *testing.B) { benchAppend(b, at, kb<<10, logs) })
		}
	}
	b.Run("round trip", func(b *testing.B) { benchRoundTrip(b, at, other) })
}

func joinBench(b *testing.B, c *Cluster, node strategy.Node) *Bus {
	bus, err := c.Join(node)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { bus.Close() })
	return bus
}

// share runs f by a number of workers, b.N times in all.
func share(b *testing.B, workers int, f func(worker int) error) {
	var wg sync.WaitGroup
	b.ResetTimer()
	for w := range workers {
		wg.Go(func() {
			for range b.N/workers + 1 {
				if err := f(w); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func benchPut(b *testing.B, c *Cluster, workers int) {
	bus := joinBench(b, c, "put~1")
	revs, run := make([]uint64, workers), time.Now().UnixNano()
	share(b, workers, func(w int) (err error) {
		revs[w], err = bus.Put(b.Context(), fmt.Sprint("put/", run, "/", w), make([]byte, 100), revs[w])
		return err
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "puts/s")
}

func benchAppend(b *testing.B, c *Cluster, size, logs int) {
	bus := joinBench(b, c, "append~1")
	data := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	after, run := make([]uint64, logs), time.Now().UnixNano()
	b.SetBytes(int64(size))
	share(b, logs, func(w int) (err error) {
		after[w], err = bus.Append(b.Context(), fmt.Sprint("log/", run, "/", w), data, after[w])
		return err
	})
	b.StopTimer()
	read, began := 0, time.Now()
	for w := range logs {
		log := fmt.Sprint("log/", run, "/", w)
		if err := bus.Read(b.Context(), log, 0, func(_ uint64,
			data []byte) error {
			read += len(data)
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(read)/1e6/time.Since(began).Seconds(), "readMB/s")
	for w := range logs {
		if err := bus.Drop(b.Context(), fmt.Sprint("log/", run, "/", w)); err != nil {
			b.Fatal(err)
		}
	}
}

func benchRoundTrip(b *testing.B, at, other *Cluster) {
	a, z := joinBench(b, at, "ping~1"), joinBench(b, other, "pong~1")
	back := make(chan struct{}, 1)
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(b.Context())
	wg.Go(func() { z.Receive(ctx, func(from strategy.Node, data []byte) { z.Send(from, data) }) })
	wg.Go(func() { a.Receive(ctx, func(strategy.Node, []byte) { back <- struct{}{} }) })
	defer wg.Wait()
	defer cancel()
	ping := func() {
		for {
			a.Send("pong~1", make([]byte, 100))
			select {
			case <-back:
				return
			case <-time.After(time.Second):
			}
		}
	}
	ping()
	for b.Loop() {
		ping()
	}
}

// TestRequestsAllocateLittle checks that a request for new messages of a stream allocates no queue for tens of
// thousands of messages. A node makes several such requests a second. The test counts all allocations of the process,
// so it is not parallel.
func TestRequestsAllocateLittle(t *testing.T) {
	c := open(t, Config{Crawl: "little", Listen: bustest.Addresses(t, 1)[0], Dir: t.TempDir()})
	var before, after runtime.MemStats
	const requests = 50
	runtime.ReadMemStats(&before)
	for range requests {
		q := query{From: 1 << 40, Next: c.names.allRegistry(), Batch: 256}
		_, err := c.request(t.Context(), c.names.registry(), q, func(stored) error { return nil })
		must(t, err)
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / requests; each > 100<<10 {
		t.Errorf("a request allocates %d bytes", each)
	}
}
