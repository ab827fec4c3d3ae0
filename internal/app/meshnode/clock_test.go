package meshnode

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/cluster/member/peer"
)

// A clock includes the time of suspension, but not corrections of the wall clock.
func TestAClockCountsSleep(t *testing.T) {
	for _, c := range []struct{ ran, wall, want time.Duration }{
		{time.Minute, time.Minute, 0},
		{time.Second, time.Hour + time.Second, time.Hour},
		{time.Minute, time.Minute - time.Hour, 0},
		{time.Minute, time.Minute + time.Second, 0},
	} {
		var k clock
		now := time.Now()
		k.at(now)
		k.advance(c.ran, c.wall)
		if got := k.at(now).Sub(now); got != c.want {
			t.Errorf("%v by the monotonic clock, %v by the wall clock: it has slept %v", c.ran, c.wall, got)
		}
		if got := k.wallTime(k.at(now).Add(time.Second), now).Sub(now); got != time.Second {
			t.Errorf("after that a second lasts %v", got)
		}
	}
}

// After a suspension, a node asks the others about its hosts, and continues.
func TestWhoWasSuspendedGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.web.takes = 500 * time.Millisecond
		for i := range 4 {
			l.start(fmt.Sprintf("n%d~1", i))
		}
		time.Sleep(15 * time.Second)
		l.nodes[0].begin(t, nil)
		time.Sleep(2 * time.Second)
		n := l.nodes[3]
		stale := make(chan bool, 1)
		n.inbox.post(func() {
			n.loop.clock.slept += time.Hour
			n.loop.step(peer.Tick{})
			stale <- !n.loop.peer.Machine().KnowsPlace()
		})
		if !<-stale {
			t.Error("it goes on with what it has known before")
		}
		l.end(t, nil)
		l.wantAll(t)
	})
}
