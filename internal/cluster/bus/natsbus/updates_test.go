package natsbus

import (
	"context"
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
