package frontier

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// each has a frontier tested that stays in memory, and one that has nearly all of its hosts on disk.
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

// visited visits so many URLs and returns when each host was asked.
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
