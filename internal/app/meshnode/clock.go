package meshnode

import "time"

// A clock is the time base of a peer. It never goes back. It includes the time for which the machine was suspended,
// when Go's monotonic clock stops on some systems, so that a node notices the gap.
type clock struct {
	began, last time.Time
	slept       time.Duration
}

// suspendGap is the smallest jump of the wall clock that counts as a suspension. A larger correction of the wall clock
// is mistaken for one, which only costs a few messages.
const suspendGap = 2 * time.Second

// at returns the clock's time at a time of the machine's clocks. Calls must be in order.
func (c *clock) at(now time.Time) time.Time {
	if c.began.IsZero() {
		c.began, c.last = now, now
	}
	c.advance(now.Sub(c.last), now.Round(0).Sub(c.last.Round(0)))
	c.last = now
	return c.began.Add(now.Sub(c.began) + c.slept)
}

// advance compares the elapsed time of the monotonic clock with that of the wall clock.
func (c *clock) advance(ran, wall time.Duration) {
	if wall-ran > suspendGap {
		c.slept += wall - ran
	}
}

// wallTime converts a time of this clock to the machine's clocks.
func (c *clock) wallTime(t, now time.Time) time.Time { return now.Add(t.Sub(c.at(now))) }
