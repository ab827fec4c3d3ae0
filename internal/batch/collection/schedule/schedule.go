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

// A Runner runs collections by their schedules.
type Runner struct {
	Collections []*collection.Collection // those without a schedule are ignored
	// Run runs a day of collections to its end. It returns early when ctx is done. It is called concurrently with
	// different collections.
	Run func(ctx context.Context, day string, group []*collection.Collection) error
	// LastRun returns the last day for which a collection was run before this process started.
	LastRun  func(ctx context.Context, c *collection.Collection) (LastRun, error)
	MaxRuns  int  // maximum number of concurrent runs; 0: 1
	CatchUp  bool // at the start, run the days missed while no scheduler was running
	Listener Listener
}

// A LastRun is the last day of a collection; the zero value means none.
type LastRun struct {
	Day     string    // 2006-01-02
	Started time.Time // time of its first run
	Done    bool      // false if the day must be resumed
}

// A Listener receives events, one at a time. Its fields may be nil.
type Listener struct {
	// no runs are active or queued until then, when group is due
	Idle   func(until time.Time, group []*collection.Collection)
	Missed func(c *collection.Collection, due time.Time, times int, why string)
	// late is the time since the first one was due
	Started func(day string, group []*collection.Collection, late time.Duration)
	Ended   func(day string, group []*collection.Collection, took time.Duration, err error)
}

// ErrNoSchedule is returned if no collection has a schedule.
var ErrNoSchedule = errors.New("no collection has a schedule")

const (
	dayFormat = "2006-01-02"
	// Clocks are set, and computers sleep: check for due collections at least this often.
	maxSleep = time.Minute
	// A run that starts this long after its due time counts as late.
	lateAfter = 2 * maxSleep
)

// An entry is the scheduling state of a collection.
type entry struct {
	*collection.Collection
	schedule collection.Schedule
	next     time.Time // next due time
	dueSince time.Time // time since which it is due but not started; zero if it is not due
	day      string    // day to run, if dueSince is set
	running  bool
	sites    map[string]bool // sites of its seeds; nil: unrestricted
}

// A loop is the state of a running Runner. It belongs to one goroutine.
type loop struct {
	*Runner
	entries   []*entry
	ended     chan *run
	runs      int
	idleUntil time.Time // time last passed to Listener.Idle
}

type run struct {
	day   string
	group []*entry
	began time.Time
	err   error
}

// Loop runs collections until ctx is done and all runs have ended. It returns errors of schedules and of LastRun.
// Errors of runs go to the listener, and later runs continue.
func (r *Runner) Loop(ctx context.Context) error {
	l := &loop{Runner: r, ended: make(chan *run)}
	if err := l.init(ctx); err != nil {
		return err
	}
	for {
		l.enqueueDue(time.Now())
		l.startRuns(ctx)
		wake := time.NewTimer(l.sleepTime(time.Now()))
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

// init computes when each collection is due, which runs were missed, and which days must be resumed.
func (l *loop) init(ctx context.Context) error {
	now := time.Now()
	for _, c := range l.Collections {
		when, err := c.ParsedSchedule()
		if err != nil {
			return fmt.Errorf("collection %s: %w", c.Code, err)
		}
		p := &entry{Collection: c, schedule: when, next: when.Next(now), sites: sitesOf(c)}
		if p.next.IsZero() {
			continue
		}
		last, err := l.LastRun(ctx, c)
		if err != nil {
			return fmt.Errorf("collection %s: %w", c.Code, err)
		}
		l.entries = append(l.entries, p)
		l.addDowntime(p, last, now)
	}
	if len(l.entries) == 0 {
		return ErrNoSchedule
	}
	return nil
}

// addDowntime accounts for the time in which no scheduler was running.
func (l *loop) addDowntime(p *entry, last LastRun, now time.Time) {
	if last.Day == "" {
		return
	}
	if !last.Done {
		p.dueSince, p.day = now, last.Day
	}
	times, due := 0, time.Time{}
	for t := p.schedule.Next(last.Started); !t.After(now); t = p.schedule.Next(t) {
		if t.UTC().Format(dayFormat) > last.Day {
			times, due = times+1, t
		}
	}
	if times == 0 {
		return
	}
	l.missed(p, due, times, "no scheduler was running")
	if l.CatchUp && last.Done {
		p.dueSince, p.day = due, now.UTC().Format(dayFormat)
	}
}

func (l *loop) missed(p *entry, due time.Time, times int, why string) {
	if f := l.Listener.Missed; f != nil {
		f(p.Collection, due, times, why)
	}
}

// enqueueDue marks the collections that are due by now. If several due times of a collection have passed since the last
// call, only the last one counts.
func (l *loop) enqueueDue(now time.Time) {
	for _, p := range l.entries {
		passed, before, due := 0, time.Time{}, time.Time{}
		for !p.next.After(now) {
			passed, before, due = passed+1, due, p.next
			p.next = p.schedule.Next(p.next)
		}
		switch {
		case passed == 0:
		case p.running:
			l.missed(p, due, passed, "it is still running")
		case !p.dueSince.IsZero():
			l.missed(p, due, passed, "it is still queued behind other runs")
		default:
			if passed > 1 {
				l.missed(p, before, passed-1, "the computer slept, or its clock was set")
			}
			p.dueSince, p.day = due, due.UTC().Format(dayFormat)
		}
	}
}

// startRuns starts the due collections that can run, the earliest day first.
func (l *loop) startRuns(ctx context.Context) {
	for l.runs < max(l.MaxRuns, 1) && ctx.Err() == nil {
		var group []*entry
		for _, p := range l.entries {
			if p.dueSince.IsZero() || l.sharesRunningSite(p) {
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

// sharesRunningSite reports whether a running collection has seeds on a site of this one.
func (l *loop) sharesRunningSite(p *entry) bool {
	for _, o := range l.entries {
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

func (l *loop) run(ctx context.Context, group []*entry) {
	first := slices.MinFunc(group, func(a, b *entry) int { return a.dueSince.Compare(b.dueSince) }).dueSince
	r := &run{day: group[0].day, group: group, began: time.Now()}
	delay := r.began.Sub(first)
	if delay < lateAfter {
		delay = 0
	}
	for _, p := range group {
		p.running, p.dueSince = true, time.Time{}
	}
	l.runs++
	l.idleUntil = time.Time{}
	all := collections(group)
	if f := l.Listener.Started; f != nil {
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

func collections(group []*entry) (all []*collection.Collection) {
	for _, p := range group {
		all = append(all, p.Collection)
	}
	return all
}

// sleepTime returns how long to wait before the next check. If no run is active, it notifies the listener once.
func (l *loop) sleepTime(now time.Time) time.Duration {
	next := slices.MinFunc(l.entries, func(a, b *entry) int { return a.next.Compare(b.next) }).next
	if l.runs == 0 && !l.idleUntil.Equal(next) {
		l.idleUntil = next
		var group []*collection.Collection
		for _, p := range l.entries {
			if p.next.Equal(next) {
				group = append(group, p.Collection)
			}
		}
		if f := l.Listener.Idle; f != nil {
			f(next, group)
		}
	}
	return max(0, min(next.Sub(now), maxSleep))
}

// sitesOf returns the sites of a collection's seeds, which its scope restricts it to; nil if it is unrestricted.
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
