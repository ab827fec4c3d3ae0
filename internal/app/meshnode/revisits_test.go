package meshnode

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/vfs"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/state/history"
	"kumo/internal/state/journal/memory"
)

// A dueEngine has visits that are due at the second that is their data.
type dueEngine struct {
	Engine
	continuous bool
}

func (e dueEngine) RevisitDue(r *item.Revisit) time.Time { return time.Unix(int64(r.Data[0]), 0) }

func (e dueEngine) Revisits() (enabled, continuous bool) { return true, e.continuous }

// TestScansFindDueVisits scans a history: the due visits of hosts that this node dispatches become events, and a run
// that only makes visits due at its start is over when a scan finds none.
func TestScansFindDueVisits(t *testing.T) {
	db, err := history.Open(vfs.OS, t.TempDir(), memory.New(), history.Config{Key: Key})
	if err != nil {
		t.Fatal(err)
	}
	insert := func(host string, urls ...history.URL) {
		t.Helper()
		if _, err := db.Insert(host, urls, nil); err != nil {
			t.Fatal(err)
		}
	}
	at := func(url string, visit uint64, due byte) history.URL {
		return history.URL{Hash: history.HashOf(url), Visit: visit, Scheduled: true, Data: []byte{due}}
	}
	insert("mine", at("a", 3, 10), at("b", 3, 20), at("c", 3, 30), history.URL{Hash: history.HashOf("d"), Data: []byte{1}})
	insert("others", at("e", 5, 10))
	synctest.Test(t, func(t *testing.T) {
		var e Engine = dueEngine{}
		ref := &engineRef{}
		ref.p.Store(&e)
		box := newInbox()
		s := &dueVisits{history: db, engine: ref, inbox: box, router: &Router{},
			dueHere: func(host string) bool { return host == "mine" }}
		ctx, stop := context.WithCancel(t.Context())
		events := make(chan mesh.Due, 10)
		go func() { // stands for the loop
			for {
				select {
				case <-box.signal:
				case <-ctx.Done():
					return
				}
				all, calls := box.drain()
				for _, f := range calls {
					f()
				}
				for _, e := range all {
					events <- e.(mesh.Due)
				}
			}
		}()
		scan := func(until int64, next int64, want map[string]uint64) {
			t.Helper()
			started := time.Unix(5, 0)
			got := map[string]uint64{}
			at, err := s.scan(t.Context(), e, time.Unix(until, 0), started)
			synctest.Wait()
			for len(events) > 0 {
				e := <-events
				for _, k := range e.Links {
					got[e.Host+string(rune('0'+k.Item[0]/10))] = k.Visit
				}
			}
			if err != nil || at.Unix() != next || !maps.Equal(got, want) {
				t.Errorf("until %d: got %v, next %d (%v); want %v, next %d", until, got, at.Unix(), err, want, next)
			}
			if idle := s.idle(started); idle != (len(want) == 0) {
				t.Errorf("until %d: idle %v", until, idle)
			}
			if s.idle(started.Add(1)) {
				t.Errorf("until %d: idle in the next run, too", until)
			}
		}
		scan(9, 10, nil)
		scan(18, 20, map[string]uint64{"mine1": 3})
		scan(20, 25, map[string]uint64{"mine1": 3, "mine2": 3})
		insert("mine", history.URL{Hash: history.HashOf("a"), Visit: 3, Data: []byte{10}}, at("b", 21, 90))
		scan(29, 30, nil)
		e = dueEngine{continuous: true}
		if ref.p.Store(&e); s.idle(time.Unix(5, 0)) {
			t.Error("a crawl that visits pages again and again is idle")
		}
		stop()
	})
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
