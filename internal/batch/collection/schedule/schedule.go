// Package schedule runs collections at the times that their schedules define.
//
// Each due time of a collection causes one run, for the day (UTC) of the due time. Collections that are due together
// run together. A collection misses a due time if it is still running or queued then. It also misses a due time at
// which no scheduler was running, unless [Runner].CatchUp is set. Collections whose seeds share a site never run in two
// runs at once, because only a single run can be polite to a site.
package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kumo/internal/base/weburl"
	"kumo/internal/batch/collection"
)

// A Runner says what is run, and how.
type Runner struct {
	Collections []*collection.Collection // those without a schedule are left out
	// Run runs a day of collections to its end. It ends early when ctx is done. It may be called again while it runs, with
	// other collections.
	Run func(ctx context.Context, day string, group []*collection.Collection) error
	// Last is the last day that a collection was run, before this runner was there.
	Last     func(ctx context.Context, c *collection.Collection) (Last, error)
	AtOnce   int  // runs, at most; 0: 1
	CatchUp  bool // run at the beginning what was missed while nobody was there
	Listener Listener
}

// A Last is the last day of a collection; its zero value is that there was none.
type Last struct {
	Day   string    // 2006-01-02
	Began time.Time // when it was first run
	Done  bool      // or it is to go on
}

// A Listener is told what happens, one thing at a time. Its fields may be nil.
type Listener struct {
	Sleeps func(until time.Time, group []*collection.Collection) // nothing runs or waits until then, when group is due
	Missed func(c *collection.Collection, due time.Time, times int, why string)
	Began  func(day string, group []*collection.Collection, late time.Duration) // since the first was due
	Ended  func(day string, group []*collection.Collection, took time.Duration, err error)
}

// ErrNoSchedule is the error of collections that have no schedule, none of them.
var ErrNoSchedule = errors.New("no collection has a schedule")

const (
	dayForm = "2006-01-02"
	// Clocks are set, and computers sleep: what is due is asked for again after this long at least.
	glance = time.Minute
	// A run that begins so long after it was due is late.
	late = 2 * glance
)

// A plan is what a runner knows of a collection.
type plan struct {
	*collection.Collection
	when    collection.Schedule
	next    time.Time // when it is due
	waiting time.Time // since when it is due and not run; zero if it is not
	day     string    // to be run, if it is waiting
	running bool
	sites   map[string]bool // of its seeds; nil: it may go anywhere
}

// A loop is a runner at work. One goroutine has it.
type loop struct {
	*Runner
	plans  []*plan
	ended  chan *run
	runs   int
	asleep time.Time // until when, as the listener was told
}

type run struct {
	day   string
	group []*plan
	began time.Time
	err   error
}

// Loop runs collections until ctx is done and what runs has ended. Its error is one of the schedules or of Last: an
// error of a run is the listener's to hear, and the next run may go well.
func (r *Runner) Loop(ctx context.Context) error {
	l := &loop{Runner: r, ended: make(chan *run)}
	if err := l.begin(ctx); err != nil {
		return err
	}
	for {
		l.look(time.Now())
		l.start(ctx)
		wake := time.NewTimer(l.pause(time.Now()))
		select {
		case <-ctx.Done():
			wake.Stop()
			for l.runs > 0 {
				l.end(<-l.ended)
			}
			return nil
		case done := <-l.ended:
			l.end(done)
		case <-wake.C:
		}
		wake.Stop()
	}
}

// begin finds out when each collection is due, what was missed, and which days are to go on.
func (l *loop) begin(ctx context.Context) error {
	now := time.Now()
	for _, c := range l.Collections {
		when, err := c.When()
		if err != nil {
			return fmt.Errorf("collection %s: %w", c.Code, err)
		}
		p := &plan{Collection: c, when: when, next: when.Next(now), sites: sitesOf(c)}
		if p.next.IsZero() {
			continue
		}
		last, err := l.Last(ctx, c)
		if err != nil {
			return fmt.Errorf("collection %s: %w", c.Code, err)
		}
		l.plans = append(l.plans, p)
		l.since(p, last, now)
	}
	if len(l.plans) == 0 {
		return ErrNoSchedule
	}
	return nil
}

// since takes in what happened while nobody was there.
func (l *loop) since(p *plan, last Last, now time.Time) {
	if last.Day == "" {
		return
	}
	if !last.Done {
		p.waiting, p.day = now, last.Day
	}
	times, due := 0, time.Time{}
	for t := p.when.Next(last.Began); !t.After(now); t = p.when.Next(t) {
		if t.UTC().Format(dayForm) > last.Day {
			times, due = times+1, t
		}
	}
	if times == 0 {
		return
	}
	l.missed(p, due, times, "nobody was there to run it")
	if l.CatchUp && last.Done {
		p.waiting, p.day = due, now.UTC().Format(dayForm)
	}
}

func (l *loop) missed(p *plan, due time.Time, times int, why string) {
	if f := l.Listener.Missed; f != nil {
		f(p.Collection, due, times, why)
	}
}

// look finds what is due by now. Where several times of a collection have passed since the last look, the last one
// counts.
func (l *loop) look(now time.Time) {
	for _, p := range l.plans {
		passed, before, due := 0, time.Time{}, time.Time{}
		for !p.next.After(now) {
			passed, before, due = passed+1, due, p.next
			p.next = p.when.Next(p.next)
		}
		switch {
		case passed == 0:
		case p.running:
			l.missed(p, due, passed, "it is still run")
		case !p.waiting.IsZero():
			l.missed(p, due, passed, "it still waits for other runs")
		default:
			if passed > 1 {
				l.missed(p, before, passed-1, "the computer slept, or its clock was set")
			}
			p.waiting, p.day = due, due.UTC().Format(dayForm)
		}
	}
}

// start starts what waits and can be run, the earliest day first.
func (l *loop) start(ctx context.Context) {
	for l.runs < max(l.AtOnce, 1) && ctx.Err() == nil {
		var group []*plan
		for _, p := range l.plans {
			if p.waiting.IsZero() || l.meets(p) {
				continue
			}
			if len(group) > 0 && p.day < group[0].day {
				group = nil
			}
			if len(group) == 0 || p.day == group[0].day {
				group = append(group, p)
			}
		}
		if len(group) == 0 {
			return
		}
		l.run(ctx, group)
	}
}

// meets reports whether a collection that is run begins on a site that this one begins on, too.
func (l *loop) meets(p *plan) bool {
	for _, o := range l.plans {
		if !o.running || o == p {
			continue
		}
		if o.sites == nil || p.sites == nil {
			return true
		}
		for site := range p.sites {
			if o.sites[site] {
				return true
			}
		}
	}
	return false
}

func (l *loop) run(ctx context.Context, group []*plan) {
	first := slices.MinFunc(group, func(a, b *plan) int { return a.waiting.Compare(b.waiting) }).waiting
	r := &run{day: group[0].day, group: group, began: time.Now()}
	delay := r.began.Sub(first)
	if delay < late {
		delay = 0
	}
	for _, p := range group {
		p.running, p.waiting = true, time.Time{}
	}
	l.runs++
	l.asleep = time.Time{}
	all := collections(group)
	if f := l.Listener.Began; f != nil {
		f(r.day, all, delay)
	}
	go func() {
		r.err = l.Run(ctx, r.day, all)
		l.ended <- r
	}()
}

func (l *loop) end(r *run) {
	l.runs--
	for _, p := range r.group {
		p.running = false
	}
	if f := l.Listener.Ended; f != nil {
		f(r.day, collections(r.group), time.Since(r.began), r.err)
	}
}

func collections(group []*plan) (all []*collection.Collection) {
	for _, p := range group {
		all = append(all, p.Collection)
	}
	return all
}

// pause is how long to wait before the next look, and tells the listener once when that is for long.
func (l *loop) pause(now time.Time) time.Duration {
	next := slices.MinFunc(l.plans, func(a, b *plan) int { return a.next.Compare(b.next) }).next
	if l.runs == 0 && !l.asleep.Equal(next) {
		l.asleep = next
		var group []*collection.Collection
		for _, p := range l.plans {
			if p.next.Equal(next) {
				group = append(group, p.Collection)
			}
		}
		if f := l.Listener.Sleeps; f != nil {
			f(next, group)
		}
	}
	return max(0, min(next.Sub(now), glance))
}

// sitesOf are the sites that a collection begins on, and stays in as far as its scope says; nil: it may go anywhere.
func sitesOf(c *collection.Collection) map[string]bool {
	if c.Scope == weburl.ScopeAny.String() {
		return nil
	}
	sites := map[string]bool{}
	for _, seed := range c.Seeds {
		if u, err := weburl.Parse(seed); err == nil {
			sites[weburl.Domain(u.Hostname())] = true
		}
	}
	return sites
}
