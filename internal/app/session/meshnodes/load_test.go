package meshnodes

import (
	"testing"
	"time"

	"kumo/internal/cluster/member/mesh"
)

// meterOf returns a meter, and a function that adds a sample of the next second.
func meterOf(limit float64, places int) (*loadMeter, func(asked int64, s workSample) mesh.Load) {
	m := &loadMeter{limit: limit, places: places}
	now, sum := time.Unix(1e9, 0), int64(0)
	return m, func(asked int64, s workSample) mesh.Load {
		now, sum = now.Add(time.Second), sum+asked
		s.when, s.asked = now, sum
		m.add(s, nil)
		load, _ := m.last()
		return load
	}
}

func TestLoadMeter(t *testing.T) {
	m, next := meterOf(2, 64)
	if _, known := m.last(); known {
		t.Error("a load is known before the first sample")
	}
	// before the first request, the limit counts: the node is heavy at once
	if l := next(0, workSample{waiting: 600, active: 64, full: true, limited: true}); l.Rate != 2 || !l.Busy ||
		l.Backlog != 300*time.Second {
		t.Errorf("first: %+v", l)
	}
	// a burst and free slots do not inflate the rate
	next(20, workSample{waiting: 580, active: 1})
	if l := next(2, workSample{waiting: 578, active: 1}); l.Rate != 2 || l.Backlog != 289*time.Second {
		t.Errorf("after a burst: %+v", l)
	}
	if got := m.rate(); got != 11 {
		t.Errorf("the current rate is %v", got)
	}

	_, next = meterOf(0, 8)
	if l := next(0, workSample{waiting: 100, active: 4}); l.Rate != 2 || l.Busy {
		t.Errorf("without a limit: %+v", l)
	}
	var l mesh.Load
	for range 100 { // half of the slots are in use: it could fetch twice as much
		l = next(10, workSample{waiting: 100, active: 4})
	}
	if l.Rate != 20 || l.Busy || l.Arriving < 9.9 || l.Arriving > 10.1 {
		t.Errorf("with free slots: %+v", l)
	}
	for range 600 { // servers answer more slowly
		l = next(4, workSample{waiting: 100, active: 8, full: true})
	}
	if l.Rate < 4 || l.Rate > 4.1 || !l.Busy {
		t.Errorf("with all slots in use: %+v", l)
	}
	if l = next(4, workSample{waiting: 0, active: 1}); l.Backlog != 0 || l.Rate < 4 {
		t.Errorf("without pending URLs: %+v", l)
	}
}
