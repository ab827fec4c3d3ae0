package meshnode

import "time"

// A clock is what a peer goes by. It never goes back, and goes on while the machine is suspended, when Go's monotonic
// clock stands still on some systems: a node is to notice that it has slept.
type clock struct {
	began, last time.Time
	slept       time.Duration
}

// leap is by how much the wall clock goes ahead at once of a machine that was suspended; one that is set goes less, or
// passes for it, which costs a few questions.
const leap = 2 * time.Second

// at is the clock's time at a moment by the machine's clocks; it is told of later ones only.
func (c *clock) at(now time.Time) time.Time {
	if c.began.IsZero() {
		c.began, c.last = now, now
	}
	c.pass(now.Sub(c.last), now.Round(0).Sub(c.last.Round(0)))
	c.last = now
	return c.began.Add(now.Sub(c.began) + c.slept)
}

// pass lets time pass, by the monotonic clock and by the wall clock.
func (c *clock) pass(ran, wall time.Duration) {
	if wall-ran > leap {
		c.slept += wall - ran
	}
}

// back is a time of the clock's as the machine's clocks have it.
func (c *clock) back(t, now time.Time) time.Time { return now.Add(t.Sub(c.at(now))) }
