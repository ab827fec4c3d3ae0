package session

import (
	"cmp"
	"context"
	"time"

	"kumo/internal/app/folder"
	"kumo/internal/app/inspect"
	"kumo/internal/base/stats"
	"kumo/internal/state/stall"
)

// A run is what a session has begun: when, and what had been counted then.
type run struct {
	report stats.Report
	before stats.Snapshot
}

// Status says how the crawl goes. Of one that does not run, it is what its last run has reported, if nothing came
// after.
func (s source) Status(context.Context) (*inspect.Status, error) {
	c := s.session
	counts := c.Frontier.Counts()
	x := &inspect.Status{State: inspect.Running, Time: c.Job.Now(), Active: counts.Active, Idle: counts.Waiting,
		Backing: counts.Backing}
	x.SeedsTaken, x.Seeds = c.Seeds()
	r := c.run.Load()
	if r == nil {
		return x, c.lastReport(x)
	}
	x.Report = r.report
	x.Stopped = x.Time
	x.Fill(c.Stats.Snapshot(), r.before.Pages, r.before.Bytes)
	c.fill(&x.Report)
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

// Condition is what is to be expected at a time, and what is in the way.
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
	if last.Ended == "failed" { // what was under way is in the journal, and not in the report
		x.State, x.Ended = inspect.Stopped, last.Ended
	}
	x.Crawl = cmp.Or(last.Crawl, s.Job.Name)
	x.Fill(s.Stats.Snapshot(), last.Pages, last.Bytes)
	s.fill(&x.Report)
	return nil
}
