package stats

import (
	"maps"
	"testing"
	"time"
)

func TestMerge(t *testing.T) {
	at := time.Unix(1e9, 0)
	a := &Report{Started: at, Stopped: at.Add(10 * time.Second), Seconds: 10, Pages: 30, PagesThisRun: 20, Bytes: 900,
		BytesPerSecond: 50, Known: 40, Statuses: map[int]int64{200: 30}, Types: map[string]int64{"text/html": 30},
		Errors: map[string]int64{"timeout": 1}, OffHosts: 2, OffTop: map[string]int64{"x": 1, "y": 2},
		Slowest: []SlowHost{{"h", 10, 1}, {"i", 1, 3}}}
	b := &Report{Started: at.Add(-10 * time.Second), Stopped: at.Add(5 * time.Second), Seconds: 15, Pages: 5,
		PagesThisRun: 5, Bytes: 100, BytesPerSecond: 20, Known: 7, Statuses: map[int]int64{200: 4, 404: 1},
		Skipped: map[string]int64{"robots": 2}, OffHosts: 1, OffTop: map[string]int64{"z": 2}, Slowest: []SlowHost{{"h", 30, 2}}}
	b.Shorten()
	m := Merge([]*Report{a, b})
	if m.Pages != 35 || m.Bytes != 1000 || m.Known != 47 || m.Seconds != 20 || m.PagesPerSecond != 1.25 ||
		m.BytesPerSecond != 40 || m.OffHosts != 3 || !maps.Equal(m.Statuses, map[int]int64{200: 34, 404: 1}) ||
		m.Skipped["robots"] != 2 || m.Errors["timeout"] != 1 {
		t.Errorf("%+v", m)
	}
	if len(m.Slowest) != 2 || m.Slowest[0] != (SlowHost{"i", 1, 3}) || m.Slowest[1] != (SlowHost{"h", 40, 1.75}) {
		t.Errorf("slowest: %v", m.Slowest)
	}
	if b.WithoutState(); b.Known != 0 || b.Pages != 5 {
		t.Errorf("a node that is gone: %+v", b)
	}
	if m := Merge(nil); m.Pages != 0 || m.Seconds != 0 {
		t.Errorf("no reports: %+v", m)
	}
}
