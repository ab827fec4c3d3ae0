package natsbus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"kumo/internal/base/secret"
	"kumo/internal/cluster/bus"
	"kumo/internal/lab/testmain"
)

// limit is how long a cluster may take to accept writes again.
const limit = 15 * time.Second

// TestServersDie shuts servers down, the leaders first, while a client writes: all acknowledged writes are there in the
// end, and with one of three servers down writes continue.
func TestServersDie(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	s := secret.New()
	servers := three(t, "die", s)
	client := open(t, Config{Crawl: "die", Servers: servers[0].cfg.Servers, Secret: s,
		Timings: Timings{Request: time.Second}})
	w := newWriter(t, client)
	w.goOn(t, 50)

	first := leader(t, servers, client.names.logs().name)
	first.Close()
	w.goOn(t, 50)
	second := leader(t, servers, client.names.registry().name, first)
	second.Close()
	w.stopped(t)
	reopen(t, first.cfg)
	w.goOn(t, 50)
	reopen(t, second.cfg)
	w.goOn(t, 50)
	w.verify(t)
}

// leader returns the live server that leads a stream.
func leader(t *testing.T, all []*Cluster, stream string, dead ...*Cluster) *Cluster {
	t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(pause) {
	next:
		for _, c := range all {
			for _, d := range dead {
				if c == d {
					continue next
				}
			}
			if c.server.JetStreamIsStreamLeader("$G", stream) {
				return c
			}
		}
	}
	t.Fatalf("nobody leads %s", stream)
	return nil
}

func reopen(t *testing.T, cfg Config) *Cluster {
	t.Helper()
	return open(t, cfg)
}

// A writer writes a log and a key as fast as it can, and records the acknowledged writes.
type writer struct {
	bus     *Bus
	mu      sync.Mutex
	entries map[uint64]string // acknowledged
	written int               // acknowledged writes of both kinds
	doubts  int               // writes that may have succeeded
	value   int               // the last acknowledged value
	rev     uint64
	told    []bus.Entry // entries that a watcher has received
}

func newWriter(t *testing.T, c *Cluster) *writer {
	b, err := c.Join("writer~1")
	if err != nil {
		t.Fatal(err)
	}
	w := &writer{bus: b, entries: map[uint64]string{}}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { w.append(ctx, t) })
	wg.Go(func() { w.put(ctx, t) })
	wg.Go(func() {
		b.Watch(ctx, "key", func(e bus.Entry) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.told = append(w.told, e)
		})
	})
	t.Cleanup(func() { cancel(); wg.Wait(); b.Close() })
	return w
}

func (w *writer) append(ctx context.Context, t *testing.T) {
	after := uint64(0)
	for i := 0; ctx.Err() == nil; i++ {
		data := fmt.Sprint("entry ", i)
		n, err := w.bus.Append(ctx, "log", []byte(data), after)
		switch {
		case err == nil:
			after = n
			w.acknowledged(func() { w.entries[n] = data })
		case errors.Is(err, bus.ErrUnavailable):
			w.doubt()
			last, _, err := w.bus.Last(ctx, "log")
			for err != nil && ctx.Err() == nil {
				last, _, err = w.bus.Last(ctx, "log")
			}
			after = last
		default:
			t.Errorf("Append of the only writer: %v", err)
			return
		}
	}
}

func (w *writer) put(ctx context.Context, t *testing.T) {
	rev := uint64(0)
	for i := 1; ctx.Err() == nil; i++ {
		n, err := w.bus.Put(ctx, "key", fmt.Append(nil, i), rev)
		switch {
		case err == nil:
			rev = n
			w.acknowledged(func() { w.value, w.rev = i, n })
		case errors.Is(err, bus.ErrUnavailable):
			w.doubt()
			e, err := w.bus.Get(ctx, "key")
			for err != nil && ctx.Err() == nil {
				e, err = w.bus.Get(ctx, "key")
			}
			rev = e.Revision
		default:
			t.Errorf("Put of the only writer: %v", err)
			return
		}
	}
}

func (w *writer) acknowledged(note func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written++
	note()
}

func (w *writer) doubt() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.doubts++
}

func (w *writer) count() (written, entries, doubts int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.written, len(w.entries), w.doubts
}

// goOn waits until n more writes of each kind are acknowledged.
func (w *writer) goOn(t *testing.T, n int) {
	t.Helper()
	began := time.Now()
	written, entries, _ := w.count()
	for {
		nowWritten, nowEntries, doubts := w.count()
		if nowEntries >= entries+n && nowWritten-nowEntries >= written-entries+n {
			t.Logf("%d writes more after %v, %d in doubt so far", nowWritten-written, time.Since(began).Round(time.Millisecond),
				doubts)
			return
		}
		if time.Since(began) > limit {
			t.Fatalf("%d entries and %d values written in %v", nowEntries-entries, nowWritten-nowEntries-written+entries, limit)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// stopped waits until writes are no longer acknowledged, but return ErrUnavailable.
func (w *writer) stopped(t *testing.T) {
	t.Helper()
	_, _, before := w.count()
	for end := time.Now().Add(limit); ; time.Sleep(pause) {
		if _, _, doubts := w.count(); doubts >= before+2 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("no write is in doubt without a majority")
		}
	}
	written, _, _ := w.count()
	_, err := w.bus.Put(t.Context(), "other", nil, 0)
	if !errors.Is(err, bus.ErrUnavailable) {
		t.Errorf("Put without a majority: %v", err)
	}
	if _, err := w.bus.Get(t.Context(), "key"); !errors.Is(err, bus.ErrUnavailable) {
		t.Errorf("Get without a majority: %v", err)
	}
	if now, _, _ := w.count(); now != written {
		t.Errorf("%d writes were acknowledged without a majority", now-written)
	}
}

// verify reads everything: all acknowledged writes are there, in order, and the watcher has the latest value.
func (w *writer) verify(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	acknowledged, value, rev := w.entries, w.value, w.rev
	w.entries = map[uint64]string{}
	w.mu.Unlock()
	count := len(acknowledged)
	after, end := uint64(0), time.Now().Add(limit)
	read := func(n uint64, data []byte) error {
		if want, ok := acknowledged[n]; ok && want != string(data) {
			t.Errorf("entry %d is %q, acknowledged was %q", n, data, want)
		}
		delete(acknowledged, n)
		after = n
		return nil
	}
	err := w.bus.Read(t.Context(), "log", after, read)
	for errors.Is(err, bus.ErrUnavailable) && time.Now().Before(end) { // a server may have started a moment ago
		err = w.bus.Read(t.Context(), "log", after, read)
	}
	if err != nil || len(acknowledged) > 0 {
		t.Errorf("%d of %d acknowledged entries are lost: %v", len(acknowledged), count, err)
	}
	e, err := w.bus.Get(t.Context(), "key")
	var is int
	if _, scan := fmt.Sscan(string(e.Value), &is); err != nil || scan != nil || is < value || e.Revision < rev {
		t.Errorf("the key is %q at %d, acknowledged was %d at %d: %v", e.Value, e.Revision, value, rev, err)
	}
	w.watcherKnows(t, e.Revision)
}

func (w *writer) watcherKnows(t *testing.T, rev uint64) {
	t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		w.mu.Lock()
		told := w.told
		w.mu.Unlock()
		if len(told) > 0 && told[len(told)-1].Revision >= rev {
			for i := 1; i < len(told); i++ {
				if told[i].Key != "" && told[i].Revision <= told[i-1].Revision {
					t.Errorf("the watcher was told %d after %d", told[i].Revision, told[i-1].Revision)
				}
			}
			t.Logf("the watcher was told %d states up to revision %d", len(told), rev)
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the watcher was told %d states, none of revision %d", len(told), rev)
		}
	}
}
