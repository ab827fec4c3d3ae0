package visit

import (
	"testing"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/lab/testmain"
	"kumo/internal/state/frontier"
)

// TestHealthGoesByTheMonotonicClock sets the wall clock after an origin's first failure: later failures are counted as
// before, and the duration of failing is right.
func TestHealthGoesByTheMonotonicClock(t *testing.T) {
	const origin = "http://a.test"
	usual := 0 // visits until an origin is abandoned
	for _, leap := range []time.Duration{0, time.Hour, -time.Hour, 24 * time.Hour, -24 * time.Hour} {
		began := time.Now()
		clock := began
		o := NewOrigins(Limits{Refusals: 3, Silences: 10, Throttles: 10}, func() time.Time { return clock })
		visits := 0
		for ; visits < 100; visits++ {
			f := Verdict{Outcome: frontier.Failed, Failure: page.Refused}
			started := clock
			clock = clock.Add(time.Second)
			if _, over := o.Judge(origin, started, &f, false); over {
				break
			}
			if visits == 0 {
				clock = testmain.JumpClock(clock, leap)
			} else if _, first, _ := o.Failing(origin, clock); clock.Sub(first) != time.Duration(visits)*time.Second {
				t.Errorf("the clock leapt by %v: visit %d comes %v after the first failure", leap, visits,
					clock.Sub(first))
			}
		}
		if leap == 0 {
			usual = visits
		}
		if visits != usual || visits < 2 || visits == 100 {
			t.Errorf("the clock leapt by %v: the origin is given up after %d visits, not %d", leap, visits+1, usual+1)
		}
	}
}
