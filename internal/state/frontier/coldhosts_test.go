package frontier

import (
	"testing"
	"time"
)

// The totals are those of all cold records after any change.
func TestColdHostsSumUpTheirRecords(t *testing.T) {
	cfg := Config{Delay: time.Second}.withDefaults()
	now := time.Now()
	c := newColdHosts(now, newPoliteness(&cfg), &saver{})
	sums := func(pending, eligible, backing int) {
		t.Helper()
		if c.pending != pending || c.eligible != eligible || c.backingOff != backing {
			t.Errorf("%d items, %d hosts are eligible, %d back off; want %d, %d, %d", c.pending, c.eligible, c.backingOff,
				pending, eligible, backing)
		}
	}
	a, b := c.add("a"), c.add("b")
	sums(0, 0, 0) // in memory
	c.update(a, func(r *record) { r.state, r.count = status{flags: isBacking}.pack(), 3 })
	c.update(b, func(r *record) { r.state, r.count = status{flags: hasRobots}.pack(), 4 })
	sums(7, 2, 1)
	c.park(a, "http://a")
	c.park(a, "https://a")
	c.park(b, "http://b")
	sums(7, 1, 1) // robots.txt is fetched even while a host is parked
	c.unpark(a, "http://a")
	sums(7, 1, 1)
	c.unpark(a, "https://a")
	sums(7, 2, 1)
	c.update(a, func(r *record) { r.set(isHot) })
	sums(4, 1, 0)
	if parked := c.removeParked(b); !parked["http://b"] || c.removeParked(b) != nil {
		t.Errorf("b was parked for %v", parked)
	}
	if c.find("a") != a || c.find("c") != 0 {
		t.Error("records are not found")
	}
}

func TestDelaysMoveTheTimesOfColdHosts(t *testing.T) {
	cfg := Config{Delay: time.Second, MaxDelay: time.Minute}.withDefaults()
	now := time.Now()
	c := newColdHosts(now, newPoliteness(&cfg), &saver{})
	id := c.add("a")
	c.update(id, func(r *record) { r.unset(isHot) })
	next := func(want time.Duration) {
		t.Helper()
		if got := c.time(c.table.at(id).next()).Sub(now); got != want {
			t.Errorf("next is after %v, want %v", got, want)
		}
	}
	c.restartDelay(id, "a", now)
	next(time.Second)
	c.setRequestedDelay(id, "a", 5*time.Second)
	next(5 * time.Second)
	c.postpone(id, now.Add(4*time.Second))
	next(5 * time.Second)
	before, _ := c.polite.set(Delays{Delay: time.Second, MaxDelay: 2 * time.Second})
	if !c.retime(before) {
		t.Error("no host is due sooner")
	}
	next(2 * time.Second)
}
