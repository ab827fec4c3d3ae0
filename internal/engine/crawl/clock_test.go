package crawl

import (
	"testing"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/lab/testmain"
	"kumo/internal/state/frontier"
)

// TestHealthGoesByTheMonotonicClock sets the wall clock after an origin has failed first: that it goes on failing is
// counted as before, and it has been failing for as long as that took.
func TestHealthGoesByTheMonotonicClock(t *testing.T) {
	const origin = "http://a.test"
	usual := 0 // visits until an origin is given up
	for _, leap := range []time.Duration{0, time.Hour, -time.Hour, 24 * time.Hour, -24 * time.Hour} {
		began := time.Now()
		clock := began
		o := newOrigins(func() time.Time { return clock }, nil)
		visits := 0
		for ; visits < 100; visits++ {
			f := visitOutcome{outcome: frontier.Failed, failure: page.Refused}
			v := &frontier.Visit{Started: clock}
			clock = clock.Add(time.Second)
			if _, over := o.judge(origin, v, f); over {
				break
			}
			if visits == 0 {
				clock = testmain.Leapt(clock, leap)
			} else if h := o.healthOf(origin); clock.Sub(o.at(h.since)) != time.Duration(visits)*time.Second {
				t.Errorf("the clock leapt by %v: visit %d comes %v after the first failure", leap, visits,
					clock.Sub(o.at(h.since)))
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
