package frontier

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// each runs a test with a frontier in memory, and with another that has nearly all of its hosts on disk.
func each(t *testing.T, cfg Config, test func(t *testing.T, f *Frontier)) {
	for _, where := range []string{"memory", "disk"} {
		t.Run(where, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				if where == "memory" {
					test(t, New(cfg))
					return
				}
				cfg := cfg
				cfg.Dir, cfg.Memory = dir, 1<<10
				f, _, err := Open(cfg)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				test(t, f)
			})
		})
	}
}

const delayedHosts = 200

// visited makes n visits and returns the times of each host's requests.
func visited(t *testing.T, f *Frontier, n int) map[string][]time.Time {
	t.Helper()
	at := map[string][]time.Time{}
	for range n {
		v, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		at[v.Host] = append(at[v.Host], time.Now())
		f.Done(v, Result{Outcome: Answered})
	}
	return at
}

func TestAShorterDelayHoldsAtOnce(t *testing.T) {
	each(t, Config{Delay: 10 * time.Hour}, func(t *testing.T, f *Frontier) {
		for i := range delayedHosts {
			f.Push(fmt.Sprint("host", i), items(fmt.Sprint("host", i), 3)...)
		}
		visited(t, f, delayedHosts)
		start := time.Now()
		time.Sleep(3 * time.Second)
		f.SetDelays(Delays{Delay: 4 * time.Second})
		visited(t, f, 2*delayedHosts)
		if took := time.Since(start); took < 8*time.Second || took > 10*time.Second {
			t.Errorf("two more visits of each host took %v, want 8 s and what a look takes", took)
		}
	})
}

func TestALongerDelayHoldsAtOnce(t *testing.T) {
	each(t, Config{Delay: 2 * time.Second}, func(t *testing.T, f *Frontier) {
		for i := range delayedHosts {
			f.Push(fmt.Sprint("host", i), items(fmt.Sprint("host", i), 3)...)
		}
		first := visited(t, f, delayedHosts)
		time.Sleep(time.Second)
		f.SetDelays(Delays{Delay: time.Minute})
		for host, at := range visited(t, f, 2*delayedHosts) {
			if gap := at[0].Sub(first[host][0]); gap < time.Minute || at[1].Sub(at[0]) < time.Minute {
				t.Fatalf("%s was asked %v after it was before, and %v after that", host, gap, at[1].Sub(at[0]))
			}
		}
	})
}

func TestAHostThatIsLeftAloneStaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(Config{Delay: time.Minute})
		f.Push("a", items("a", 2)...)
		v, _ := next(t, f)
		f.Done(v, Result{Outcome: Throttled, RetryAfter: 5 * time.Minute})
		f.SetDelays(Delays{Delay: time.Second})
		_, wait := next(t, f)
		wantWait(t, "as it has asked", wait, 5*time.Minute)
	})
}

func TestADelayIsShortenedUnderARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(Config{Delay: time.Hour})
		f.Push("a", items("a", 2)...)
		v, _ := next(t, f)
		f.SetDelays(Delays{Delay: time.Second})
		time.Sleep(time.Minute)
		f.Done(v, Result{Outcome: Answered})
		_, wait := next(t, f)
		wantWait(t, "after the answer", wait, time.Second)
	})
}

func TestACrawlDelayIsBoundedAnew(t *testing.T) {
	each(t, Config{Delay: time.Second, MaxDelay: time.Hour}, func(t *testing.T, f *Frontier) {
		for i := range delayedHosts {
			f.Push(fmt.Sprint("host", i), items(fmt.Sprint("host", i), 2)...)
			f.SetDelay(fmt.Sprint("host", i), time.Hour)
		}
		visited(t, f, delayedHosts)
		start := time.Now()
		f.SetDelays(Delays{Delay: time.Second, MaxDelay: 5 * time.Second})
		visited(t, f, delayedHosts)
		if took := time.Since(start); took < 5*time.Second || took > 7*time.Second {
			t.Errorf("it took %v, want 5 s and what a look takes", took)
		}
	})
}

// judged returns the clock of a host after visits with these results, ten seconds apart.
func judged(p *politeness, now time.Time, outcomes ...Result) (c clock, wait time.Duration) {
	for _, r := range outcomes {
		now = now.Add(10 * time.Second)
		v := &Visit{Started: now.Add(-time.Second), nextBefore: c.next}
		p.begin(&c, v.Started)
		v.nextSet = c.next
		wait = p.applyResult(&c, v, r, now, true)
	}
	return c, wait
}

func TestPolitenessSetsTheNextTime(t *testing.T) {
	cfg := Config{Delay: time.Second, RetryWait: 3 * time.Second, MaxWait: time.Minute}.withDefaults()
	failed, throttled := Result{Outcome: Failed}, Result{Outcome: Throttled}
	for _, tt := range []struct {
		name     string
		outcomes []Result
		want     time.Duration
		suspect  bool
	}{
		{"an answer", []Result{{Outcome: Answered}}, time.Second, false},
		{"a slow answer", []Result{{Outcome: Answered, Took: time.Minute}}, time.Second, true},
		{"a failure", []Result{failed}, 3 * time.Second, true},
		{"three failures", []Result{failed, failed, failed}, 12 * time.Second, true},
		{"ten failures", slices.Repeat([]Result{failed}, 10), time.Minute, true},
		{"an answer after a failure", []Result{failed, {Outcome: Answered}}, time.Second, false},
		{"429", []Result{throttled}, 3 * time.Second, false},
		{"Retry-After", []Result{{Outcome: Throttled, RetryAfter: 7 * time.Second}}, 7 * time.Second, false},
		{"a year", []Result{{Outcome: Throttled, RetryAfter: 365 * 24 * time.Hour}}, time.Minute, false},
	} {
		c, wait := judged(newPoliteness(&cfg), time.Now(), tt.outcomes...)
		if wait != tt.want || !c.next.Equal(c.lastEnd.Add(tt.want)) || c.suspect != tt.suspect {
			t.Errorf("%s: wait %v, next %v after the end, suspect %v", tt.name, wait, c.next.Sub(c.lastEnd), c.suspect)
		}
	}
}

func TestAHostWithoutADelayIsVisitedInBursts(t *testing.T) {
	cfg := Config{}.withDefaults()
	p, now := newPoliteness(&cfg), time.Now()
	var c clock
	c.next = now
	for i := range 2 * burst {
		due := c.next
		v := &Visit{Started: now.Add(time.Second), nextBefore: due}
		p.begin(&c, v.Started)
		v.nextSet = c.next
		p.applyResult(&c, v, Result{Outcome: Answered}, v.Started, true)
		if stays := c.next.Equal(due); stays != (i%burst < burst-1) {
			t.Errorf("visit %d: next is %v later", i, c.next.Sub(due))
		}
		now = v.Started
	}
}
