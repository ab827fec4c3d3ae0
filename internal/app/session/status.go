package session

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"kumo/internal/app/folder"
	"kumo/internal/app/inspect"
	"kumo/internal/base/stats"
	"kumo/internal/engine/crawl"
	"kumo/internal/state/stall"
)

// A run has the report of a session at its start, and the counts at that time.
type run struct {
	report stats.Report
	before stats.Snapshot
}

// Status returns the state of the crawl. If it is not running, that is the report of its last run, unless it is
// outdated. A crawl without a guard against traps has admitted the URLs that earlier runs excluded as traps.
func (s source) Status(context.Context) (*inspect.Status, error) {
	x, err := s.status()
	if err == nil && s.session.Job.Crawl.NoTraps {
		maps.DeleteFunc(x.Skipped, func(rule string, _ int64) bool { return slices.Contains(crawl.TrapRules, rule) })
	}
	return x, err
}

func (s source) status() (*inspect.Status, error) {
	c := s.session
	counts := c.Frontier.Counts()
	x := &inspect.Status{State: inspect.Running, Time: c.Job.Now(), Active: counts.Active, Idle: counts.Waiting,
		Backing: counts.Backing}
	x.SeedsTaken, x.Seeds = c.Seeds()
	now := c.CurrentReport()
	if now == nil {
		return x, c.lastReport(x)
	}
	x.Report = *now
	x.Stopped = x.Time
	if v := c.Engine.Vitals(); v.Paused || v.DiskFull {
		x.State = inspect.Paused
	}
	is := c.Condition(x.Time)
	x.CutOff, x.CutOffWhy, x.EndsIn, x.Growth, x.Forecast = is.Offline, is.OfflineReason, is.EndsIn, is.Growth, is.Forecast
	x.Stalled, x.StalledBy, x.StallWhy, x.StallDo = is.Stalled, is.StalledBy, is.StallWhy, is.StallDo
	if a := c.Job.Upload; a != nil {
		u := a.Status()
		x.Uploads = &u
	}
	return x, nil
}

// CurrentReport returns the report of the run until now; nil before the run.
func (s *Session) CurrentReport() *stats.Report {
	run := s.run.Load()
	if run == nil {
		return nil
	}
	r := run.report
	r.Stopped = s.Job.Now()
	r.Fill(s.Stats.Snapshot(), run.before.Pages, run.before.Bytes)
	s.fill(&r)
	return &r
}

// Condition returns the forecast and the problems at a time.
func (s *Session) Condition(now time.Time) (c stats.Condition) {
	if o := s.Outage(); o.Offline {
		c.Offline, c.OfflineReason = max(now.Sub(o.Since).Seconds(), 0), o.Why
	}
	o := s.Outlook()
	c.EndsIn, c.Growth, c.Forecast = o.Forecast.AtLeast, o.Forecast.Growth, o.Forecast.Words
	if a := o.Stall; a.Kind != stall.None {
		c.Stalled, c.StalledBy, c.StallWhy, c.StallDo = a.For.Seconds(), string(a.Kind), a.Words, a.Do
	}
	return c
}

func (s *Session) lastReport(x *inspect.Status) error {
	x.State = inspect.Stopped
	last, err := folder.ReadReport(s.Folder.Dir)
	if err != nil {
		return err
	}
	switch {
	case last == nil:
		last = &stats.Report{}
	case last.Journal == uint64(s.Journal.End()):
		x.Report = *last
		return nil
	}
	x.State = inspect.BrokenOff
	if last.Ended == "failed" { // requests in progress are in the journal, but not in the report
		x.State, x.Ended = inspect.Stopped, last.Ended
	}
	x.Crawl = cmp.Or(last.Crawl, s.Job.Name)
	x.Fill(s.Stats.Snapshot(), last.Pages, last.Bytes)
	s.fill(&x.Report)
	return nil
}
