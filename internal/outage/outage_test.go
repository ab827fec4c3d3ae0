package outage

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A lineStory tells the machine what happens, second by second.
type lineStory struct {
	*testing.T
	o   Detector
	now time.Time
}

func newLineStory(t *testing.T, wait time.Duration) *lineStory {
	return &lineStory{T: t, o: Detector{Wait: wait}, now: time.Unix(1_000_000, 0)}
}

func (s *lineStory) pass(d time.Duration) { s.now = s.now.Add(d) }

func originNo(n int) string { return fmt.Sprintf("http://site%d.example", n) }

func (s *lineStory) works(hosts ...int) {
	for _, n := range hosts {
		s.o.Worked(s.now, originNo(n), uint64(n))
	}
}

// fails has a host that had worked fail.
func (s *lineStory) fails(n int) bool {
	return s.o.Failed(s.now, originNo(n), uint64(n), ByConnection, false, true, "refused")
}

func (s *lineStory) isDead(n int) bool {
	return s.o.Failed(s.now, originNo(n), uint64(n), ByConnection, false, false, "refused")
}

func (s *lineStory) want(state Phase) {
	s.Helper()
	if s.o.State != state {
		s.Fatalf("the state is %d, want %d", s.o.State, state)
	}
}

// check has the checks made that are due, which reach a host or not.
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
		most = MaxWorked
	}
	if n := len(s.o.Targets()); n == 0 || n > most {
		s.Errorf("%d hosts are checked at once", n)
	}
	if got := s.o.Checked(s.now, reached, "refused"); got != want {
		s.Fatalf("event %d, want %d", got, want)
	}
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
	s.check(false, CutOffNow)
	s.want(Down)
	var waited time.Duration
	for last := time.Duration(0); waited < 72*time.Hour; {
		before := s.now
		s.check(false, StillOff)
		pause := s.now.Sub(before)
		if pause < last || pause > lastPause {
			t.Fatalf("a pause of %v after one of %v", pause, last)
		}
		last = pause
		waited += pause
	}
	s.check(true, BackAgain)
	s.want(Up)
}

// However many hosts die at once, as in a data centre that fails: as long as others work, the crawl is not cut off.
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
			for range 2000 { // visits; hosts below dead are gone
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
				alive := slices.ContainsFunc(s.o.Targets(), func(origin string) bool { return !slices.Contains(gone, origin) })
				if ev := s.o.Checked(s.now, alive, "refused"); ev != notCut {
					t.Fatalf("%d of 90 are dead, seed %d: event %d", dead, seed, ev)
				}
			}
		}
		if doubts < 40 {
			t.Errorf("%d of 90 are dead: only %d doubts", dead, doubts)
		}
	}
}

// originsTo are those of the first n hosts.
func originsTo(n int) (all []string) {
	for i := range n {
		all = append(all, originNo(i))
	}
	return all
}

// An TestAnAnswerDuringACheckIsLookedInto that comes while hosts are tried in vain is looked into before anything is
// said; it does not put off for long what is true.
func TestAnAnswerDuringACheckIsLookedInto(t *testing.T) {
	s := newLineStory(t, 0)
	s.works(1, 2, 3, 4, 5)
	s.pass(time.Second)
	s.fails(1)
	s.fails(2)
	s.fails(3)
	s.want(Doubted)
	s.pass(time.Millisecond)
	s.works(9)
	s.check(false, nothing)
	s.want(Doubted)
	if to := s.o.Targets(); to[0] != originNo(9) {
		t.Errorf("who has just answered is not asked first: %v", to)
	}
	before := s.now
	s.check(false, CutOffNow)
	if waited := s.now.Sub(before); waited > 0 {
		t.Errorf("the second check is put off for %v", waited)
	}
}

func TestAnAnswerInBetweenEndsTheDoubt(t *testing.T) {
	s := newLineStory(t, 0)
	s.works(1, 2, 3, 4, 5, 6)
	for n := range 5 { // they die off, one by one
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
	if !s.o.Proven(s.now, s.now, originNo(9), ByConnection, "refused") {
		t.Error("nothing has ever worked: the host is to blame")
	}
	s.works(1, 2, 3)
	first := s.now.Add(time.Second)
	s.pass(3 * time.Second)
	if s.o.Proven(s.now, first, originNo(9), ByConnection, "refused") {
		t.Error("nothing has worked since the host failed first")
	}
	s.check(true, notCut)
	s.pass(time.Millisecond)
	if !s.o.Proven(s.now, first, originNo(9), ByConnection, "refused") {
		t.Error("a host was reached since: this one is to blame")
	}
}

func TestADoubtIsNotRaisedAgainAtOnce(t *testing.T) {
	s := newLineStory(t, 0)
	s.works(1, 2, 3)
	for n := range 4 {
		s.fails(n)
	}
	s.check(true, notCut)
	s.pass(passTime - time.Millisecond)
	if s.fails(1) || s.fails(2) || s.fails(3) {
		t.Error("checks follow each other too fast")
	}
	s.pass(time.Millisecond)
	if s.fails(1) || !s.fails(2) {
		t.Error("it is never doubted again, or before three hosts have failed")
	}
}

// TestAHostThatHangsIsToBlame: of one host one page hangs, and the host is reached. Every second failure counts,
// however long a visit takes.
func TestAHostThatHangsIsToBlame(t *testing.T) {
	s := newLineStory(t, 0)
	s.works(1)
	for range 4 {
		s.pass(30 * time.Second)
		if !s.fails(1) {
			t.Error("the only host that had worked is to blame before anybody has looked")
		}
		s.check(true, notCut)
		if s.pass(30 * time.Second); s.fails(1) {
			t.Error("a page that hangs is taken for an outage again and again")
		}
	}
	s.works(1)
	s.want(Up)
	s.pass(30 * time.Second)
	s.fails(1)
	s.check(true, notCut)
	s.pass(time.Minute) // and now the line goes
	if s.o.Proven(s.now, s.now.Add(-time.Second), originNo(1), ByConnection, "refused") {
		t.Error("the host is given up without a look at the line")
	}
	s.check(false, CutOffNow)
}

func TestNamesAreAWayOfTheirOwn(t *testing.T) {
	s := newLineStory(t, 0)
	s.works(1, 2, 3)
	s.pass(time.Minute)
	fail := func(n int) bool {
		return s.o.Failed(s.now, originNo(n), uint64(n), ByName, false, true, "no such host")
	}
	fail(1)
	s.works(4) // its name is known from before
	if fail(2); !fail(3) {
		t.Error("no name is found any more, whoever answers")
	}
	s.check(true, notCut)
	s.pass(time.Minute)
	fail(1)
	fail(2)
	s.pass(time.Second)
	s.o.Found(s.now)
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
	s.check(false, CutOffNow)
	for s.now.Sub(s.o.Since) < siteWait-lastPause {
		s.check(false, StillOff)
	}
	for ev := StillOff; ev == StillOff; {
		at, _ := s.o.Due()
		s.now = at
		if ev = s.o.Checked(s.now, false, "refused"); ev != StillOff && ev != Resigned {
			t.Fatalf("event %d", ev)
		}
	}
	s.want(Up)
	if s.fails(1) || !s.o.Proven(s.now, s.now, originNo(1), ByConnection, "refused") {
		t.Error("now the host is to blame")
	}
}

func TestALimitEndsTheRun(t *testing.T) {
	s := newLineStory(t, 10*time.Second)
	s.works(1, 2, 3)
	s.fails(1)
	s.fails(2)
	s.fails(3)
	s.check(false, CutOffNow)
	for s.now.Sub(s.o.Since) < 7*time.Second {
		s.check(false, StillOff)
	}
	at, _ := s.o.Due()
	s.now = at.Add(10 * time.Second)
	s.check(false, TooLong)
}

func TestAProxyThatNeverWorkedEndsTheRunSoon(t *testing.T) {
	s := newLineStory(t, 0)
	if !s.o.Failed(s.now, originNo(1), 1, ByConnection, true, false, "refused") {
		t.Fatal("a proxy's failure is a host's fault")
	}
	s.check(false, nothing)
	for range 100 {
		at, _ := s.o.Due()
		s.now = at
		switch ev := s.o.Checked(s.now, false, "refused"); {
		case ev == NoProxy && s.now.Sub(s.o.Since) < 2*neverWait:
			return
		case ev != nothing:
			t.Fatalf("event %d after %v", ev, s.now.Sub(s.o.Since))
		}
	}
	t.Error("it does not end")
}

// A proxy that has worked is waited for, though no host is left that has lately; one that begins late was never missed.
func TestAProxyThatHasWorkedIsWaitedFor(t *testing.T) {
	s := newLineStory(t, 0)
	s.works(1)
	s.o.Gone(1)
	s.o.Failed(s.now, originNo(1), 1, ByConnection, true, true, "refused")
	s.check(false, CutOffNow)
	for s.now.Sub(s.o.Since) < 10*neverWait {
		s.check(false, StillOff)
	}
	s = newLineStory(t, 0)
	s.o.Failed(s.now, originNo(1), 1, ByConnection, true, false, "refused")
	s.check(false, nothing)
	s.check(true, notCut)
}

func TestFewOfManyHostsAreKeptInMind(t *testing.T) {
	s := newLineStory(t, 0)
	for n := range 10 * MaxWorked {
		s.pass(time.Second)
		s.works(n, 0)
	}
	if len(s.o.hosts) != MaxWorked || len(s.o.places) != MaxWorked {
		t.Errorf("%d hosts, %d places", len(s.o.hosts), len(s.o.places))
	}
	if _, kept := s.o.places[0]; !kept {
		t.Error("the one that works all the time is forgotten")
	}
	for hash := range s.o.places {
		s.o.Gone(hash)
	}
	if len(s.o.hosts) != 0 || len(s.o.places) != 0 {
		t.Errorf("%d hosts, %d places are left", len(s.o.hosts), len(s.o.places))
	}
}
