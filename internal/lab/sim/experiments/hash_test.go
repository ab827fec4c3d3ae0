package experiments

import (
	"context"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"
)

// TestHash: the table says what is known of each way.
func TestHash(t *testing.T) {
	rows := table(t, Hash{Slots: 16, Nodes: []int{1, 4, 16}, Hosts: 40_000, Seed: 1})
	if len(rows) != 15 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, r := range rows {
		minimal := r.Way == "rendezvous" || r.Way == "ring" || r.Way == "ring alone"
		if minimal && r.Join.Unnecessary+r.Leave.Unnecessary > 0 {
			t.Errorf("%+v: moved in vain", r)
		}
		if even := r.Way != "ring" && r.Way != "ring alone"; even && r.P < 1e-4 {
			t.Errorf("%+v: not even", r)
		}
		if r.Way == "ring alone" && r.Nodes > 1 && r.P > 1e-4 {
			t.Errorf("%+v: as even as chance", r)
		}
		if r.MaxMean < 1 || r.MaxMean == 1 && r.Nodes > 1 || r.Cost != 0 {
			t.Errorf("%+v", r)
		}
		full, single := r.Nodes == 16, r.Nodes == 1
		if full != (r.Join == Moves{}) || single != (r.Leave == Moves{}) {
			t.Errorf("%+v: want no join into a full table, and no leave of the only node", r)
		}
		if r.Way == "ring alone" || r.Nodes != 4 {
			continue
		}
		want := map[string]float64{"paper": 0.6125, "rendezvous": 0.2, "jump": 0.2, "ring": 0.2}[r.Way]
		if within := map[bool]float64{false: 0.01, true: 0.05}[r.Way == "ring"]; math.Abs(r.Join.All-want) > within {
			t.Errorf("%+v: want moves of %v from 4 to 5 nodes", r, want)
		}
	}
}

// TestHashAgain: the same table each time; with a clock, but for what look-ups cost.
func TestHashAgain(t *testing.T) {
	h := Hash{Slots: 8, Nodes: []int{3, 7}, Hosts: 2000, Seed: 5}
	rows, again := table(t, h), table(t, h)
	if !reflect.DeepEqual(rows, again) {
		t.Errorf("%+v, then %+v", rows, again)
	}
	ticks := time.Unix(0, 0)
	h.Now = func() time.Time { ticks = ticks.Add(4 * time.Millisecond); return ticks }
	for _, r := range table(t, h) {
		if r.Cost != 2*time.Microsecond {
			t.Errorf("%s: 4 ms for 2,000 look-ups are %v each", r.Way, r.Cost)
		}
	}
}

func table(t *testing.T, h Hash) []HashRow {
	t.Helper()
	rows, err := h.Rows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestHashInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if rows, err := (Hash{Slots: 4, Nodes: []int{2}, Hosts: 100}).Rows(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", rows, err)
	}
}
