package natsbus

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/bus/bustest"
)

// TestAWriteComesOnce has a process that watches the registry four times, and counts what its connection receives: it
// must receive each write once, as an update or by a read.
func TestAWriteComesOnce(t *testing.T) {
	t.Parallel()
	listen := bustest.Addresses(t, 1)[0]
	writer := open(t, Config{Crawl: "once", Listen: listen, Dir: t.TempDir()})
	c := open(t, Config{Crawl: "once", Join: []string{listen}})
	b, err := c.Join("a~1")
	if err != nil {
		t.Fatal(err)
	}
	w, err := writer.Join("w~1")
	if err != nil {
		t.Fatal(err)
	}
	const watchers, writes = 4, 50
	ctx, cancel := context.WithCancel(t.Context())
	var begun, told, watching sync.WaitGroup
	begun.Add(watchers)
	told.Add(watchers)
	for range watchers {
		watching.Go(func() {
			_ = b.Watch(ctx, "", func(e bus.Entry) { // it ends with the context
				switch {
				case e.Key == "":
					begun.Done()
				case e.Key == "last":
					told.Done()
				}
			})
		})
	}
	begun.Wait()
	before, revision := c.conn.Stats().InMsgs, uint64(0)
	for range writes {
		if revision, err = w.Put(ctx, "key", []byte("value"), revision); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Put(ctx, "last", []byte("value"), 0); err != nil {
		t.Fatal(err)
	}
	told.Wait()
	came := c.conn.Stats().InMsgs - before
	cancel()
	watching.Wait()
	if came > 2*writes {
		t.Errorf("of %d writes %d messages came", writes+1, came)
	}
	least := uint64(1000)
	for range 5 { // on a busy machine an update may be requested again
		before := c.conn.Stats().InMsgs
		if _, err := b.Get(t.Context(), "key"); err != nil {
			t.Fatal(err)
		}
		least = min(least, c.conn.Stats().InMsgs-before)
	}
	if least > 4 { // the mark's answer, the mark, the requested messages, and the end
		t.Errorf("one entry was read with %d messages", least)
	}
}

// TestWatchersReadNoMoreThanTheyMust reads what a watcher lacks with one request, and the values of a few keys without
// those of all others: on a slow line, a request after each would have something new each time and never end.
func TestWatchersReadNoMoreThanTheyMust(t *testing.T) {
	t.Parallel()
	c := open(t, Config{Crawl: "few", Listen: bustest.Addresses(t, 1)[0], Dir: t.TempDir()})
	b, err := c.Join("a~1")
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for _, key := range []string{"large/1", "large/2", "large/3", "small/1", "small/2", "alone"} {
		value := make([]byte, 10)
		if strings.HasPrefix(key, "large") {
			value = make([]byte, readBytes)
		}
		if _, err := b.Put(ctx, key, value, 0); err != nil {
			t.Fatal(err)
		}
	}
	mark, err := c.mark(ctx, c.names.registry())
	must(t, err)
	for keys, want := range map[string]int{"small/": 2, "alone": 1, "none/": 0} {
		told := 0
		w := &watcher{bus: b, watched: keys, emit: func(bus.Entry) { told++ }, reported: map[string]bool{}}
		before := c.conn.Stats()
		w.readCurrent(ctx)
		after := c.conn.Stats()
		if told != want || w.upTo < mark {
			t.Errorf("keys %q: %d values up to %d, want %d up to %d", keys, told, w.upTo, want, mark)
		}
		if sent, came := after.OutMsgs-before.OutMsgs, after.InBytes-before.InBytes; sent != 1 || came > 10_000 {
			t.Errorf("keys %q: %d requests, answered with %d bytes", keys, sent, came)
		}
		for range 3 {
			_, err := b.Put(ctx, "small/3", nil, 0)
			if err != nil && !errors.Is(err, bus.ErrStale) {
				t.Fatal(err)
			}
		}
		before = c.conn.Stats()
		w.read(ctx)
		if sent := c.conn.Stats().OutMsgs - before.OutMsgs; sent != 1 {
			t.Errorf("keys %q: new entries were read with %d requests", keys, sent)
		}
		if err := b.Delete(ctx, "small/3", revisionOf(t, b, "small/3")); err != nil {
			t.Fatal(err)
		}
	}
}

func revisionOf(t *testing.T, b *Bus, key string) uint64 {
	t.Helper()
	e, err := b.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return e.Revision
}
