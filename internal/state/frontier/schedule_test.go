package frontier

import (
	"fmt"
	"testing"
	"time"
)

// Many hosts with important URLs are always due. A host with a less important URL has its turn after a wait that
// doubles with each factor of 2, and not earlier.
func TestNoHostStarves(t *testing.T) {
	for _, doublings := range []int{0, 1, 3, 5} {
		now := time.Now()
		f := New(Config{RankHosts: true, Hosts: 4, Now: func() time.Time { return now }})
		const rich, step = 20, time.Millisecond
		f.Push("poor", Item{URL: "http://poor/", Rank: int32(100 + 8*doublings)})
		for i := range rich {
			host := fmt.Sprint("rich", i)
			f.Push(host, Item{URL: "http://" + host + "/", Rank: 100})
		}
		began, waited := now, time.Duration(-1)
		for waited < 0 && now.Sub(began) < time.Hour {
			v, err := f.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if v.Host == "poor" {
				waited = now.Sub(began)
			}
			now = now.Add(step)
			f.Done(v, Result{Outcome: Answered, Requeue: []Item{v.Item}})
		}
		least := time.Duration(0)
		if doublings > 0 {
			least = firstBoost << (doublings - 1)
		}
		if most := least + rich*burst*step; waited < least || waited > most {
			t.Errorf("%d times half as important: visited after %v, want %v to %v", doublings, waited, least, most)
		}
	}
}

// Hosts go by their first URLs, equal ones by how long they are due. robots.txt goes first.
func TestHostsGoByRank(t *testing.T) {
	now := time.Now()
	r := newFakeRanker()
	f := New(Config{Ranker: r, Delay: time.Hour, Now: func() time.Time { return now }})
	f.Push("a", r.item("http://a/", 30, 0))
	now = now.Add(time.Millisecond)
	f.Push("b", r.item("http://b/", 10, 0), r.item("http://b/1", 5, 0))
	f.Push("c", r.item("http://c/", 30, 0))
	f.Push("d", r.item("http://d/", 500, 0))
	f.Push("e", r.item("http://e/", 20, 0))
	f.Push("f", r.item("http://f/", 40, 0))
	f.Push("g", Item{URL: "http://g/robots.txt", Robots: "http://g", Rank: 900})
	f.Move("d", []Move{r.put("http://d/", 1)})
	r.put("http://e/", 200) // its importance fell
	wantOrder(t, handedOut(t, f, 7), "http://g/robots.txt", "http://d/", "http://b/1", "http://a/", "http://c/",
		"http://f/", "http://e/")
}

func TestHostsGoByTheirTimesUnlessRanksAreAskedFor(t *testing.T) {
	now := time.Now()
	f := New(Config{Now: func() time.Time { return now }})
	f.Push("a", Item{URL: "http://a/", Rank: 9})
	now = now.Add(time.Second)
	f.Push("b", Item{URL: "http://b/", Rank: 1})
	wantOrder(t, handedOut(t, f, 2), "http://a/", "http://b/")
}

// A host whose delay becomes longer is no longer due.
func TestDelaysThatGrowHoldForReadyHosts(t *testing.T) {
	now := time.Now()
	f := New(Config{RankHosts: true, Delay: time.Second, Now: func() time.Time { return now }})
	f.Push("a", Item{URL: "http://a/1"}, Item{URL: "http://a/2"})
	f.Push("b", Item{URL: "http://b/1", Rank: 7}, Item{URL: "http://b/2", Rank: 7})
	wantOrder(t, handedOut(t, f, 2), "http://a/1", "http://b/1")
	now = now.Add(2 * time.Second)
	wantOrder(t, handedOut(t, f, 1), "http://a/2")
	f.SetDelays(Delays{Delay: time.Minute})
	if v, _ := poll(t, f); v != nil {
		t.Errorf("%s was handed out too early", v.URL)
	}
	if c := f.Counts(); c.Waiting != 1 || f.IsStuck() {
		t.Errorf("%+v", c)
	}
	now = now.Add(time.Minute)
	wantOrder(t, handedOut(t, f, 1), "http://b/2")
}

// scheduled adds a host of a class to a schedule.
func scheduled(s *schedule, c class, seq uint64, next time.Time) *host {
	h := &host{key: fmt.Sprint(seq), clock: clock{next: next}, position: position{seq: seq, class: c}}
	s.add(h)
	return h
}

func TestScheduleTakesTheLeastTimeOfClassesWithASlot(t *testing.T) {
	now := time.Now()
	s := &schedule{slots: 8, slowAfter: time.Second}
	first := scheduled(s, inactive, 1, now.Add(-2*time.Second))
	second := scheduled(s, sound, 2, now.Add(-time.Second))
	slow := scheduled(s, suspect, 3, now.Add(-time.Minute))
	next := func(want *host) {
		t.Helper()
		if got := s.next(now); got != want {
			t.Fatalf("next is %+v, want %+v", got, want)
		}
	}
	next(slow)
	s.begin(true, true)
	s.remove(slow)
	other := scheduled(s, suspect, 4, now.Add(-time.Minute))
	s.begin(true, true)
	next(second) // two suspects are a quarter, and sound hosts need the other slots
	s.remove(second)
	next(first)
	s.remove(first)
	next(other) // nobody else needs a slot
	for range 6 {
		s.begin(true, false)
	}
	next(nil)
	s.end(true, true)
	s.end(true, false)
	next(other)
	if s.remove(other); !s.isEmpty() || s.waiting() != 0 || s.firstWaiting() != nil {
		t.Error("hosts are left")
	}
}
