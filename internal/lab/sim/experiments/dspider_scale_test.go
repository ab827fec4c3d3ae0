package experiments

import (
	"bytes"
	"context"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"
)

// quick takes figures for a few seconds.
func quick() Scale {
	s := ScaleOfPaper()
	s.Nodes, s.WarmUp, s.Time, s.mostWants = []int{20, 400}, 4*time.Second, 4*time.Second, 20_000
	return s
}

// TestScale: what is asked is answered as long as the log and the processor can, and a control unit without batches can
// write as many entries a second as their time allows.
func TestScale(t *testing.T) {
	rows, err := quick().Rows(t.Context(), func(int, int) {})
	if err != nil || len(rows) != 6 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, r := range rows {
		over := r.Nodes == 400 && r.Variant == Single // 2,000 claims a second, of which 500 can be written
		if r.Saturated() != over || over != (r.P99 > time.Second) {
			t.Errorf("%+v", r)
		}
		if over && (math.Abs(r.Answered-500) > 25 || r.Log < 0.99) {
			t.Errorf("%+v: 500 can be answered", r)
		}
		if want := 5 * float64(r.Nodes); math.Abs(r.Offered/want-1) > 0.15 || r.Capacity < 0.95 {
			t.Errorf("%+v: %v should be asked", r, want)
		}
		if least := 2*time.Millisecond + 45*time.Microsecond; r.Median < least {
			t.Errorf("%+v: sooner than messages take", r)
		}
	}
}

// TestScaleStarves: nodes that get too few hosts fetch as many pages as those have.
func TestScaleStarves(t *testing.T) {
	s := quick()
	s.Nodes, s.Persist, s.WarmUp, s.Time = []int{50}, 50*time.Millisecond, 20*time.Second, 40*time.Second
	rows, err := s.Rows(t.Context(), func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	// 20 hosts a second, where each node fetches one
	if got, want := rows[Single].Capacity, 20./50; math.Abs(got-want) > 0.05 {
		t.Errorf("%+v: %v of the capacity, %v expected", rows[Single], got, want)
	}
	if rows[Batched].Capacity < 0.99 {
		t.Errorf("%+v: starves, though a batch has room", rows[Batched])
	}
}

// TestScaleLimits: where the log is the limit, the number of nodes follows from its time; where the processor is,
// batches and more units help.
func TestScaleLimits(t *testing.T) {
	s := quick()
	s.Claim = 500 * time.Microsecond
	limits, err := s.Limits(t.Context())
	if err != nil || len(limits) != 3 {
		t.Fatal(limits, err)
	}
	if n := limits[Single].Nodes; n < 90 || n > 120 { // 500 entries a second, 5 claims a node
		t.Errorf("single: %+v", limits[Single])
	}
	if n := limits[Batched].Nodes; n < 300 || n > 420 { // less than 2,000 claims a second
		t.Errorf("batched: %+v", limits[Batched])
	}
	if ratio := float64(limits[Sharded].Nodes) / float64(limits[Batched].Nodes); ratio < 3 || ratio > 5 {
		t.Errorf("four control units serve %.1f times as many nodes as one", ratio)
	}
}

func TestScaleAgain(t *testing.T) {
	s := quick()
	s.Nodes = []int{20}
	write := func() ([]ScaleRow, []byte) {
		rows, err := s.Rows(t.Context(), func(int, int) {})
		var b bytes.Buffer
		table := ScaleTable(rows)
		if err := errors.Join(err, table.Write(&b), ScalePicture(rows, s.Shards).Write(&b)); err != nil {
			t.Fatal(err)
		}
		return rows, b.Bytes()
	}
	rows, first := write()
	if again, second := write(); !reflect.DeepEqual(rows, again) || !bytes.Equal(first, second) {
		t.Error("the same seed makes something else")
	}
	s.Seed++
	if _, other := write(); bytes.Equal(first, other) {
		t.Error("another seed makes the same")
	}
}

func TestScaleInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := quick().Rows(ctx, nil)
	_, also := quick().Limits(ctx)
	if !errors.Is(err, context.Canceled) || !errors.Is(also, context.Canceled) {
		t.Error(err, also)
	}
}
