package machine

import (
	"math"
	"testing"
	"time"
)

// A span is a period: its length, the rate in megabits per second, and the shares of a processor and of the request
// slots in use.
type span struct {
	seconds   int
	mbps      float64
	cpu, busy float64
}

// watch passes spans to a BandwidthMeter every two seconds, on a machine with two processors.
func watch(story ...span) *BandwidthMeter {
	l, now, u := new(BandwidthMeter), time.Unix(1e9, 0), Usage{}
	for _, s := range story {
		u.Busy = s.busy
		for second := range s.seconds {
			if second%2 == 0 {
				l.Observe(now, u, 2)
			}
			now = now.Add(time.Second)
			u.Bytes += int64(s.mbps * megabit)
			u.CPU += time.Duration(s.cpu * float64(time.Second))
		}
	}
	return l
}

func TestLine(t *testing.T) {
	for what, c := range map[string]struct {
		story []span
		want  float64
	}{
		"it begins":                    {[]span{{10, 20, 0.5, 1}}, 0},
		"it is the limit":              {[]span{{40, 20, 0.5, 1}}, 20},
		"processors are the limit":     {[]span{{120, 20, 1.9, 1}}, 0},
		"places are free":              {[]span{{120, 20, 0.5, 0.5}}, 0},
		"places are free now and then": {[]span{{3, 20, .5, 1}, {2, 20, .5, .2}, {3, 20, .5, 1}, {2, 20, .5, .2}}, 0},
		"rates that differ": {[]span{{6, 20, .5, 1}, {6, 10, .5, 1}, {6, 15, .5, 1}, {6, 5, .5, 1}, {6, 1, .5, 1}},
			0},
		"it was the limit, and is not":       {[]span{{40, 20, 0.5, 1}, {60, 3, 0.5, 0.1}, {60, 3, 1.9, 1}}, 20},
		"it is a slower one":                 {[]span{{40, 20, 0.5, 1}, {90, 5, 0.5, 1}}, 5},
		"it is slower for a while":           {[]span{{40, 20, 0.5, 1}, {12, 5, 0.5, 1}}, 20},
		"it is a faster one":                 {[]span{{40, 20, 0.5, 1}, {30, 50, 0.5, 1}}, 50},
		"nothing comes":                      {[]span{{120, 0, 0.5, 1}}, 0},
		"it is the limit after a slow start": {[]span{{20, 3, 0.1, 0.3}, {30, 20, 0.5, 1}}, 20},
	} {
		if got := watch(c.story...).Mbps(); math.Abs(got-c.want) > 0.02*c.want {
			t.Errorf("%s: %.1f Mb/s, want %v", what, got, c.want)
		}
	}
}

// TestLineBeginsAnew tests that a restarted process counts from zero.
func TestLineBeginsAnew(t *testing.T) {
	l := watch(span{40, 20, 0.5, 1})
	now := time.Unix(2e9, 0)
	for second := range 60 {
		l.Observe(now.Add(time.Duration(second)*time.Second), Usage{Bytes: int64(second) * 30 * megabit, Busy: 1}, 2)
	}
	if got := l.Mbps(); math.Abs(got-30) > 0.1 {
		t.Errorf("%.1f Mb/s, want 30", got)
	}
}
