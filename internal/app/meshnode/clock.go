package meshnode

import "time"

// A clock is what a peer goes by. It never goes back, and goes on while the machine is suspended, when Go's monotonic
// clock stands still on some systems: a node is to notice that it has slept.
type clock struct {
	began, last time.Time
	slept       time.Duration
}

// suspendGap is by how much the wall clock goes ahead at once of a machine that was suspended; one that is set goes less, or
// passes for it, which costs a few questions.
const suspendGap = 2 * time.Second

// at is the clock's time at a moment by the machine's clocks; it is told of later ones only.
func (c *clock) at(now time.Time) time.Time {
	if c.began.IsZero() {
		c.began, c.last = now, now
	}
	c.advance(now.Sub(c.last), now.Round(0).Sub(c.last.Round(0)))
	c.last = now
	return c.began.Add(now.Sub(c.began) + c.slept)
}

// advance lets time pass, by the monotonic clock and by the wall clock.
func (c *clock) advance(ran, wall time.Duration) {
	if wall-ran > suspendGap {
		c.slept += wall - ran
	}
}

// wallTime is a time of the clock's as the machine's clocks have it.
func (c *clock) wallTime(t, now time.Time) time.Time { return now.Add(t.Sub(c.at(now))) }
