package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/batch/collection"
)

// A diary runs collections that take a while, and records the events. The clock of a synctest starts at midnight of
// 2000-01-01, a Saturday.
type diary struct {
	lines []string
	takes map[string]time.Duration // by code of the first of a group
	fails map[string]error
	at    []string // active runs
}

func (d *diary) note(format string, args ...any) {
	d.lines = append(d.lines, time.Now().UTC().Format("02 15:04 ")+fmt.Sprintf(format, args...))
}

func codes(group []*collection.Collection) string {
	var all []string
	for _, c := range group {
		all = append(all, c.Code)
	}
	return strings.Join(all, "+")
}

func (d *diary) runner(all ...*collection.Collection) *Runner {
	return &Runner{Collections: all,
		Run: func(ctx context.Context, _ string, group []*collection.Collection) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(d.takes[group[0].Code]):
				return d.fails[group[0].Code]
			}
		},
		LastRun: func(context.Context, *collection.Collection) (LastRun, error) { return LastRun{}, nil },
		Listener: Listener{
			Missed: func(c *collection.Collection, due time.Time, times int, why string) {
				d.note("%s missed %d, last %s: %s", c.Code, times, due.Format("02 15:04"), why)
			},
			Started: func(day string, group []*collection.Collection, late time.Duration) {
				for _, c := range group {
					if slices.Contains(d.at, c.Code) {
						d.note("%s is run twice at once", c.Code)
					}
					d.at = append(d.at, c.Code)
				}
				line := "begin " + codes(group) + " of " + day
				if late > 0 {
					line += " late by " + late.String()
				}
				d.note("%s", line)
			},
			Ended: func(_ string, group []*collection.Collection, took time.Duration, err error) {
				for _, c := range group {
					d.at = slices.DeleteFunc(d.at, func(code string) bool { return code == c.Code })
				}
				line := "end " + codes(group) + " after " + took.String()
				if err != nil {
					line += ": " + err.Error()
				}
				d.note("%s", line)
			},
		}}
}

func coll(code, when string, seeds ...string) *collection.Collection {
	c := collection.New()
	c.Code, c.Schedule, c.Seeds = code, when, append(seeds, "https://www."+code+".example/")
	return c
}

// during runs a loop for a duration.
func during(t *testing.T, r *Runner, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := r.Loop(ctx); err != nil {
		t.Errorf("the loop ended: %v", err)
	}
}

func (d *diary) check(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(d.lines, want) {
		t.Errorf("got\n%s\nnot\n%s", strings.Join(d.lines, "\n"), strings.Join(want, "\n"))
	}
}

func TestCollectionsAreRunWhenTheyAreDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{takes: map[string]time.Duration{"a": time.Hour, "c": time.Minute}}
		var sleeps []string
		r := d.runner(coll("a", "03:30"), coll("b", "30 3 * * *"), coll("c", "0 12 * * sun"), coll("never", ""))
		r.Listener.Idle = func(until time.Time, group []*collection.Collection) {
			sleeps = append(sleeps, until.Format("02 15:04 ")+codes(group))
		}
		during(t, r, 60*time.Hour)
		d.check(t, "01 03:30 begin a+b of 2000-01-01", "01 04:30 end a+b after 1h0m0s",
			"02 03:30 begin a+b of 2000-01-02", "02 04:30 end a+b after 1h0m0s",
			"02 12:00 begin c of 2000-01-02", "02 12:01 end c after 1m0s",
			"03 03:30 begin a+b of 2000-01-03", "03 04:30 end a+b after 1h0m0s")
		want := []string{"01 03:30 a+b", "02 03:30 a+b", "02 12:00 c", "03 03:30 a+b", "04 03:30 a+b"}
		if !slices.Equal(sleeps, want) {
			t.Errorf("sleeps until %v, not %v", sleeps, want)
		}
	})
}

func TestACollectionIsNeverRunTwiceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{takes: map[string]time.Duration{"a": 150 * time.Minute}}
		r := d.runner(coll("a", "0 * * * *"))
		r.MaxRuns = 9
		during(t, r, 5*time.Hour+30*time.Minute)
		d.check(t, "01 01:00 begin a of 2000-01-01", "01 02:00 a missed 1, last 01 02:00: it is still running",
			"01 03:00 a missed 1, last 01 03:00: it is still running", "01 03:30 end a after 2h30m0s",
			"01 04:00 begin a of 2000-01-01", "01 05:00 a missed 1, last 01 05:00: it is still running",
			"01 05:30 end a after 1h30m0s: context deadline exceeded")
	})
}

func TestRunsThatMeetOnASiteFollowEachOther(t *testing.T) {
	for atOnce, want := range map[int][]string{
		1: {"01 01:00 begin a of 2000-01-01", "01 04:00 end a after 3h0m0s",
			"01 04:00 begin b+c of 2000-01-01 late by 2h59m0s", "01 05:00 end b+c after 1h0m0s"},
		2: {"01 01:00 begin a of 2000-01-01", "01 01:02 begin c of 2000-01-01", "01 01:12 end c after 10m0s",
			"01 04:00 end a after 3h0m0s", "01 04:00 begin b of 2000-01-01 late by 2h59m0s", "01 05:00 end b after 1h0m0s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &diary{takes: map[string]time.Duration{"a": 3 * time.Hour, "b": time.Hour, "c": 10 * time.Minute}}
			r := d.runner(coll("a", "01:00", "https://www.bbc.example/hindi"), coll("b", "01:01", "https://bbc.example/urdu"),
				coll("c", "01:02"))
			r.MaxRuns = atOnce
			during(t, r, 20*time.Hour)
			d.check(t, want...)
		})
	}
}

func TestARunThatWaitsMissesItsNextTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{takes: map[string]time.Duration{"a": 30 * time.Hour}}
		during(t, d.runner(coll("a", "0 1 1 * *"), coll("b", "02:00")), 32*time.Hour)
		d.check(t, "01 01:00 begin a of 2000-01-01", "02 02:00 b missed 1, last 02 02:00: it is still queued behind "+
			"other runs",
			"02 07:00 end a after 30h0m0s", "02 07:00 begin b of 2000-01-01 late by 29h0m0s", "02 07:00 end b after 0s")
	})
}

func TestAFailedRunDoesNotEndTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{fails: map[string]error{"a": errors.New("the disk is full")}}
		during(t, d.runner(coll("a", "01:00")), 30*time.Hour)
		d.check(t, "01 01:00 begin a of 2000-01-01", "01 01:00 end a after 0s: the disk is full",
			"02 01:00 begin a of 2000-01-02", "02 01:00 end a after 0s: the disk is full")
	})
}

func TestWhatHappenedWhileNobodyWasThere(t *testing.T) {
	for _, catchUp := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(10*24*time.Hour + 12*time.Hour) // it is noon of the 11th
			d := &diary{}
			r := d.runner(coll("daily", "01:00"), coll("fresh", "01:00"), coll("half", "01:00"), coll("weekly", "0 1 * * sun"))
			r.CatchUp = catchUp
			day := func(n int) time.Time { return time.Date(2000, 1, n, 1, 0, 0, 0, time.UTC) }
			r.LastRun = func(_ context.Context, c *collection.Collection) (LastRun, error) {
				return map[string]LastRun{"daily": {"2000-01-08", day(8), true}, "half": {"2000-01-11", day(11), false},
					"weekly": {"2000-01-09", day(9), true}}[c.Code], nil
			}
			during(t, r, time.Hour)
			want := []string{"11 12:00 daily missed 3, last 11 01:00: no scheduler was running"}
			if catchUp {
				want = append(want, "11 12:00 begin daily+half of 2000-01-11 late by 11h0m0s", "11 12:00 end daily+half after 0s")
			} else {
				want = append(want, "11 12:00 begin half of 2000-01-11", "11 12:00 end half after 0s")
			}
			d.check(t, want...)
		})
	}
}

func TestALoopNeedsSchedules(t *testing.T) {
	if err := new(diary).runner(coll("a", "")).Loop(t.Context()); !errors.Is(err, ErrNoSchedule) {
		t.Errorf("without schedules: %v", err)
	}
	r, broken := new(diary).runner(coll("a", "daily")), errors.New("broken")
	r.LastRun = func(context.Context, *collection.Collection) (LastRun, error) { return LastRun{}, broken }
	if err := r.Loop(t.Context()); !errors.Is(err, broken) {
		t.Errorf("a place that cannot be read: %v", err)
	}
}

// If several due times pass between two checks, the last one runs and the others are reported as missed.
func TestAComputerThatSlept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{}
		l := &loop{Runner: d.runner(coll("a", "01:00")), ended: make(chan *run, 1)}
		if err := l.init(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3*24*time.Hour + 9*time.Hour)
		l.enqueueDue(time.Now())
		l.startRuns(t.Context())
		l.end(<-l.ended)
		d.check(t, "04 09:00 a missed 3, last 03 01:00: the computer slept, or its clock was set",
			"04 09:00 begin a of 2000-01-04 late by 8h0m0s", "04 09:00 end a after 0s")
	})
}
