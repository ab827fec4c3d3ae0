package node

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/cluster/bus/inproc"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
)

// TestQueryAll: of the members, one cannot answer, one does not receive requests, and one is slow. Late replies
// are ignored.
func TestQueryAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, table := inproc.New(1), quorum.Table{}
		var mu sync.Mutex // guards counted
		counted := map[strategy.Node]int{}
		serve := func(name strategy.Node, takes time.Duration, wrong error) {
			table.Members = append(table.Members, strategy.Member{Node: name})
			b, err := hub.Join(name)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { b.Close() })
			n := &Node{self: name, log: slog.New(slog.DiscardHandler), tasks: &tasks{ctx: t.Context()}}
			n.cfg = Config{Crawl: "crawl", Bus: b, Query: func(_ context.Context, query json.RawMessage) ([]byte, error) {
				time.Sleep(takes)
				mu.Lock()
				defer mu.Unlock()
				counted[name]++
				return []byte(`{"hit":` + string(query) + `}`), wrong
			}}
			go b.Receive(t.Context(), func(from strategy.Node, data []byte) { n.handleMessage(t.Context(), from, data) })
		}
		serve("a~1", 0, nil)
		serve("b~1", 1500*time.Millisecond, nil)
		serve("c~1", 0, errors.New("its disk fails"))
		serve("d~1", time.Minute, nil)
		table.Members = append(table.Members, strategy.Member{Node: "gone~1"})
		asks, err := hub.Join("guest~1")
		if err != nil {
			t.Fatal(err)
		}
		defer asks.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if counts, err := (Control{Registry: asks}).QueryAll(ctx, asks, "crawl", nil); err != nil || len(counts) > 0 {
			t.Errorf("of a crawl without members %v, %v", counts, err)
		}
		if _, err := asks.Put(t.Context(), quorum.TableKey, table.Encode(), 0); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		counts, err := Control{Registry: asks}.QueryAll(ctx, asks, "crawl", []byte(`"x.test"`))
		if took := time.Since(began); err != nil || took > 5*time.Second || len(counts) != 5 {
			t.Fatalf("%v, %v after %v", counts, err, took)
		}
		const want = `{"hit":"x.test"}`
		for name, want := range map[strategy.Node]string{"a~1": want, "b~1": want, "c~1": "", "d~1": "", "gone~1": ""} {
			if string(counts[name]) != want {
				t.Errorf("%s has counted %s, want %s", name, counts[name], want)
			}
		}
		time.Sleep(2 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if counted["b~1"] != 1 || counted["d~1"] != 1 { // despite repeated requests
			t.Errorf("counted so often: %v", counted)
		}
	})
}
