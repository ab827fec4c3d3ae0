package outage

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A lineStory feeds events to the detector, second by second.
type lineStory struct {
	*testing.T
	o   Detector
	now time.Time
}

func newLineStory(t *testing.T, wait time.Duration) *lineStory {
	return &lineStory{T: t, o: Detector{MaxOutage: wait}, now: time.Unix(1_000_000, 0)}
}

func (s *lineStory) pass(d time.Duration) { s.now = s.now.Add(d) }

func originNo(n int) string { return fmt.Sprintf("http://site%d.example", n) }

func origin(n int) Origin { return Origin{URL: originNo(n), Hash: uint64(n), LooksUp: true} }

func (s *lineStory) miss(n int, by Layer) *FailedVisit {
	return &FailedVisit{At: s.now, Origin: origin(n), Layer: by, AnsweredBefore: true, Why: "refused"}
}

// ownMiss returns a failed visit because of the proxy.
func (s *lineStory) ownMiss(n int) *FailedVisit {
	m := s.miss(n, LayerConnection)
	m.ProxyFailed, m.Origin.Proxied = true, true
	return m
}

func (s *lineStory) works(hosts ...int) {
	for _, n := range hosts {
		s.o.Answered(s.now, origin(n))
	}
}

// fails makes a host fail that had worked.
func (s *lineStory) fails(n int) bool {
	return s.o.Failed(s.miss(n, LayerConnection))
}

func (s *lineStory) isDead(n int) bool {
	m := s.miss(n, LayerConnection)
	m.AnsweredBefore = false
	return s.o.Failed(m)
}

func (s *lineStory) want(state Phase) {
	s.Helper()
	if s.o.State != state {
		s.Fatalf("the state is %d, want %d", s.o.State, state)
	}
}

// check makes the checks that are due, successful or not.
func (s *lineStory) check(reached bool, want Event) {
	s.Helper()
	at, due := s.o.Due()
	if !due {
		s.Fatal("no check is due")
	}
	if at.After(s.now) {
		s.now = at
	}
	most := checkHosts
	if s.o.State == Doubted {
		most = MaxTargets
	}
	c := s.o.Check()
	if n := len(c.Origins); n == 0 || n > most {
		s.Errorf("%d hosts are checked at once", n)
	}
	if got := s.o.Checked(s.now, &c, reached, "refused"); got != want {
		s.Fatalf("event %d, want %d", got, want)
	}
}

// goesDown makes the two failed checks of a doubt.
func (s *lineStory) goesDown(want Event) {
	s.Helper()
	s.check(false, noEvent)
	s.want(Doubted)
	s.check(false, want)
	s.want(Down)
}

func TestHostsThatWorkedAndFailTogetherAreAnOutage(t *testing.T) {
	s := newLineStory(t, 0)
	s.works(1, 2, 3, 4, 5)
	s.pass(time.Second)
	blamed := []bool{s.fails(1), s.fails(1), s.fails(2), s.fails(3)}
	if !slices.Equal(blamed, []bool{false, false, false, true}) {
		t.Error("the third host that fails should be the first that is not to blame")
	}
	s.want(Doubted)
	s.goesDown(WentDown)
	var waited time.Duration
	for last := time.Duration(0); waited < 72*time.Hour; {
		before := s.now
		s.check(false, StillDown)
		pause := s.now.Sub(before)
		if pause < last || pause > lastPause {
			t.Fatalf("a pause of %v after one of %v", pause, last)
		}
		last = pause
		waited += pause
	}
	s.check(true, Recovered)
	s.want(Up)
}

// However many hosts fail at once, for example in one data center: as long as others work, there is no outage.
func TestManyHostsThatDieAtOnceAreNoOutage(t *testing.T) {
	for _, dead := range []int{30, 45, 81} { // of 90
		doubts, gone := 0, originsTo(dead)
		for seed := range uint64(40) {
			dice := rand.New(rand.NewPCG(seed, uint64(dead)))
			s := newLineStory(t, 0)
			for range 5 * 90 {
				s.pass(10 * time.Millisecond)
				s.works(dice.IntN(90))
			}
			for range 2000 { // visits; hosts with numbers below dead are down
				s.pass(10 * time.Millisecond)
				if n := dice.IntN(90); n >= dead {
					s.works(n)
				} else {
					s.fails(n)
				}
				if _, due := s.o.Due(); !due {
					continue
				}
				doubts++
				c := s.o.Check()
				alive := slices.ContainsFunc(c.Origins, func(origin string) bool { return !slices.Contains(gone, origin) })
				if ev := s.o.Checked(s.now, &c, alive, "refused"); ev != doubtEnded {
					t.Fatalf("%d of 90 are dead, seed %d: event %d", dead, seed, ev)
				}
			}
		}
		if doubts < 40 {
			t.Errorf("%d of 90 are dead: only %d doubts", dead, doubts)
		}
	}
}

// originsTo returns the origins of the first n hosts.
func originsTo(n int) (all []string) {
	for i := range n {
		all = append(all, originNo(i))
	}
	return all
}

// Any answer ends a doubt and an outage, unless it is from before the doubt. The result of a check that was under way
// is ignored.
func TestAnyAnswerEndsADoubtAndAnOutage(t *testing.T) {
	for _, down := range []bool{false, true} {
		s := newLineStory(t, 0)
		s.works(1, 2, 3, 4, 5)
		s.pass(time.Second)
		s.fails(1)
		s.fails(2)
		s.fails(3)
		s.want(Doubted)
		want := doubtEnded
		if down {
			s.goesDown(WentDown)
			want = Recovered
		}
		was, underWay := s.o.State, s.o.Check()
		if ev := s.o.Answered(s.o.Since, origin(9)); ev != noEvent || s.o.State != was {
			t.Errorf("down %v: an answer from before is event %d", down, ev)
		}
		s.pass(time.Millisecond)
		if ev := s.o.Answered(s.now, origin(9)); ev != want || s.o.State != Up {
			t.Errorf("down %v: an answer is event %d, want %d", down, ev, want)
		}
		if ev := s.o.Checked(s.now, &underWay, false, "refused"); ev != noEvent || s.o.State != Up {
			t.Errorf("down %v: a check that has begun before is event %d", down, ev)
		}
		s.pass(doubtCooldown)
		s.fails(4)
		s.fails(5)
		s.fails(9)
		s.want(Doubted)
		s.pass(leastDoubt)
		if ev := s.o.Checked(s.now, &underWay, false, "refused"); ev != noEvent || s.o.State != Doubted {
			t.Errorf("down %v: the check of another doubt is event %d", down, ev)
		}
	}
}

func TestAnAnswerInBetweenEndsTheDoubt(t *testing.T) {
	s := newLineStory(t, 0)
	s.works(1, 2, 3, 4, 5, 6)
	for n := range 5 { // they fail one by one
		s.pass(time.Second)
		if s.fails(n) {
			t.Fatal("a host that fails while others work is to blame itself")
		}
		s.pass(time.Second)
		s.works(6)
	}
	s.want(Up)
}

func TestHostsThatNeverWorkedDoNotCount(t *testing.T) {
	s := newLineStory(t, 0)
	s.works(1, 2, 3)
	s.pass(time.Second)
	for n := range 1000 {
		if s.isDead(10 + n) {
			t.Fatal("dead hosts are an outage")
		}
	}
	s.want(Up)
}

func TestNoHostIsToBlameUntilTheLineIsKnownToWork(t *testing.T) {
	s := newLineStory(t, 0)
	if !s.o.HostAtFault(s.miss(9, LayerConnection), s.now) {
		t.Error("nothing has ever worked: the host is to blame")
	}
	s.works(1, 2, 3)
	first := s.now.Add(time.Second)
	s.pass(3 * time.Second)
	if s.o.HostAtFault(s.miss(9, LayerConnection), first) {
		t.Error("nothing has worked since the host failed first")
	}
	s.check(true, doubtEnded)
	s.pass(time.Millisecond)
	if !s.o.HostAtFault(s.miss(9, LayerConnection), first) {
		t.Error("a host was reached since: this one is to blame")
	}
}

func TestADoubtIsNotRaisedAgainAtOnce(t *testing.T) {
	s := newLineStory(t, 0)
	s.works(1, 2, 3)
	for n := range 4 {
		s.fails(n)
	}
	s.check(true, doubtEnded)
	s.pass(doubtCooldown - time.Millisecond)
	if s.fails(1) || s.fails(2) || s.fails(3) {
		t.Error("checks follow each other too fast")
	}
	s.pass(time.Millisecond)
	if s.fails(1) || !s.fails(2) {
		t.Error("it is never doubted again, or before three hosts have failed")
	}
}

// In the pause after a doubt, three hosts that fail in a row are not at fault, and the doubt starts when the pause
// ends.
func TestFailuresInThePauseAfterADoubtDoNotCount(t *testing.T) {
	s := newLineStory(t, 0)
	s.works(0, 1, 2, 3, 4, 5)
	s.pass(time.Second)
	s.fails(0)
	s.fails(1)
	s.fails(2)
	s.want(Doubted)
	s.pass(time.Second)
	s.works(3)
	s.want(Up)
	s.pass(time.Second)
	if s.fails(3) || s.fails(4) {
		t.Error("one or two hosts that fail are excused")
	}
	for range 3 {
		if !s.fails(5) || !s.fails(3) {
			t.Error("the third host's failure, or a later one, counts")
		}
		s.want(Up)
		s.pass(time.Second)
	}
	s.pass(doubtCooldown)
	s.fails(4)
	s.want(Doubted)
}

// TestAHostThatHangsIsToBlame: one page of a host hangs while the host is reachable. Every second failure counts,
// however long a visit takes.
func TestAHostThatHangsIsToBlame(t *testing.T) {
	s := newLineStory(t, 0)
	s.works(1)
	for range 4 {
		s.pass(30 * time.Second)
		if !s.fails(1) {
			t.Error("the only host that had worked is to blame before anybody has looked")
		}
		s.check(true, doubtEnded)
		if s.pass(30 * time.Second); s.fails(1) {
			t.Error("a page that hangs is taken for an outage again and again")
		}
	}
	s.works(1)
	s.want(Up)
	s.pass(30 * time.Second)
	s.fails(1)
	s.check(true, doubtEnded)
	s.pass(time.Minute) // now the connection fails
	if s.o.HostAtFault(s.miss(1, LayerConnection), s.now.Add(-time.Second)) {
		t.Error("the host is given up without a look at the line")
	}
	s.goesDown(WentDown)
}

func TestNamesAreAWayOfTheirOwn(t *testing.T) {
	s := newLineStory(t, 0)
	s.works(1, 2, 3)
	s.pass(time.Minute)
	fail := func(n int) bool {
		return s.o.Failed(s.miss(n, LayerDNS))
	}
	fail(1)
	s.works(4) // its name was resolved before
	if fail(2); !fail(3) {
		t.Error("no name is found any more, whoever answers")
	}
	s.check(true, doubtEnded)
	s.pass(time.Minute)
	fail(1)
	fail(2)
	s.pass(time.Second)
	s.o.Resolved(s.now)
	s.pass(time.Second)
	if fail(3) {
		t.Error("a name was found in between")
	}
}

func TestTheOnlySiteIsWaitedForAWhile(t *testing.T) {
	s := newLineStory(t, 0)
	s.works(1)
	if !s.fails(1) {
		t.Fatal("nothing else could tell")
	}
	s.goesDown(WentDown)
	for s.now.Sub(s.o.Since) < siteWait-lastPause {
		s.check(false, StillDown)
	}
	for ev := StillDown; ev == StillDown; {
		at, _ := s.o.Due()
		s.now = at
		c := s.o.Check()
		if ev = s.o.Checked(s.now, &c, false, "refused"); ev != StillDown && ev != SitesGone {
			t.Fatalf("event %d", ev)
		}
	}
	s.want(Up)
	if s.fails(1) || !s.o.HostAtFault(s.miss(1, LayerConnection), s.now) {
		t.Error("now the host is to blame")
	}
}

func TestALimitEndsTheRun(t *testing.T) {
	s := newLineStory(t, 10*time.Second)
	s.works(1, 2, 3)
	s.fails(1)
	s.fails(2)
	s.fails(3)
	s.goesDown(WentDown)
	for s.now.Sub(s.o.Since) < 7*time.Second {
		s.check(false, StillDown)
	}
	at, _ := s.o.Due()
	s.now = at.Add(10 * time.Second)
	s.check(false, OutageTooLong)
}

func TestAProxyThatNeverWorkedEndsTheRunSoon(t *testing.T) {
	s := newLineStory(t, 0)
	if !s.o.Failed(s.ownMiss(1)) {
		t.Fatal("a proxy's failure is a host's fault")
	}
	s.goesDown(noEvent)
	for range 100 {
		at, _ := s.o.Due()
		s.now = at
		c := s.o.Check()
		switch ev := s.o.Checked(s.now, &c, false, "refused"); {
		case ev == ProxyUnreachable && s.now.Sub(s.o.Since) < 2*proxyWait:
			return
		case ev != noEvent:
			t.Fatalf("event %d after %v", ev, s.now.Sub(s.o.Since))
		}
	}
	t.Error("it does not end")
}

// The crawl waits for a proxy that has worked, even if no host is left that has worked recently. If a proxy starts
// late, no outage is reported.
func TestAProxyThatHasWorkedIsWaitedFor(t *testing.T) {
	s := newLineStory(t, 0)
	s.works(1)
	s.o.Forget(1)
	s.o.Failed(s.ownMiss(1))
	s.goesDown(WentDown)
	for s.now.Sub(s.o.Since) < 10*proxyWait {
		s.check(false, StillDown)
	}
	s = newLineStory(t, 0)
	s.o.Failed(s.ownMiss(1))
	s.goesDown(noEvent)
	s.check(true, doubtEnded)
}
