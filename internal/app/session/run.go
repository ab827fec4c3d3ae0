package session

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/content/fetch"
	"kumo/internal/content/policy"
	"kumo/internal/engine/crawl"
	"kumo/internal/state/frontier"
)

// Run crawls until the queue is empty, a limit is reached (a policy.ErrLimit) or ctx ends (its error). It returns the
// report even with an error.
func (s *Session) Run(ctx context.Context) (*stats.Report, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s.stop.Store(&stop)
	before := s.Stats.Totals()
	s.checkBytes()
	report := &stats.Report{Crawl: s.Job.Name, Started: s.Job.Now()}
	s.run.Store(&run{*report, before})
	s.restoreCounts()
	close := s.serveQueries()
	watching, enough := context.WithCancel(context.WithoutCancel(ctx))
	var watch sync.WaitGroup
	watch.Go(func() { s.watch(watching) })
	err := s.Engine.Run(ctx, s.SeedURLs, s.Job.Workers())
	enough()
	watch.Wait()
	close()
	report.Ended = endReason(err)
	if why := s.endReason.Load(); why != nil && IsStop(err) {
		report.Ended = *why
	}
	if err == nil || isEnd(err) {
		s.Stores = nil // the engine has closed them
	}
	report.Stopped = s.Job.Now()
	report.Fill(s.Stats.Snapshot(), before.Pages, before.Bytes)
	s.fill(report)
	if s.Folder != nil && !vfs.IsFull(err) {
		err = errors.Join(err, s.Folder.WriteReport(report))
	}
	if s.Advise != nil {
		err = s.Advise(err)
	}
	return report, err
}

// checkBytes warns if a limit on bytes per host lacks the counts of earlier runs for some hosts.
func (s *Session) checkBytes() {
	if c := &s.Job.Crawl; (c.BytesPerHost > 0 || c.Overrides.LimitsBytes()) && s.Stats.Snapshot().Partial {
		s.Job.Warn(fmt.Errorf("--max-bytes-per-host counts most hosts from this run on: there are too many hosts to keep " +
			"the bytes of earlier runs"))
	}
}

func (s *Session) fill(r *stats.Report) {
	reach, line, counts := s.Engine.Reach(), s.Engine.Outage(), s.Frontier.Counts()
	r.HostsAnswered, r.HostsAbandoned, r.HostsFailed = reach.Answered, reach.Abandoned, reach.Lost
	r.Outages, r.OutageSeconds, r.OutOfSockets = line.Times, line.Total.Seconds(), line.Scarce
	r.Journal, r.PendingDedup = uint64(s.Engine.Checkpoints.Journalled()), s.Engine.Undecided()
	r.Known, r.Waiting, r.Hosts = s.Engine.Known(), counts.URLs+int(r.Abandoned), counts.Hosts
	r.Refused = s.Engine.Refused()
	r.Cookies, r.CookiesEvicted = s.Engine.Cookies()
	if c := s.Engine.Rendering(); c != (stats.Rendering{}) {
		r.Rendering = &c
	}
	r.Documents = s.Engine.Documents()
	if s.Job.Fields != nil {
		r.Fields = s.Job.Fields.Counts()
	}
	if s.Job.Filters != nil {
		r.Filters = s.Job.Filters.Counts()
	}
	if s.Job.Sinks != nil {
		r.Sinks = s.Job.Sinks()
	}
}

// ReportSinks updates the report of the finished run with the progress of the sinks.
func (s *Session) ReportSinks(r *stats.Report) error {
	r.Sinks = s.Job.Sinks()
	err := s.Folder.WriteReport(r)
	if vfs.IsFull(err) {
		return nil // the run has reported that, or the report exists
	}
	return err
}

// restoreCounts restores the counts of field rules and filters from the last report. Those of a killed run are lost.
func (s *Session) restoreCounts() {
	if s.Job.Fields == nil && s.Job.Filters == nil || s.Folder == nil {
		return
	}
	last, err := folder.ReadReport(s.Folder.Dir)
	if err != nil || last == nil {
		return
	}
	if s.Job.Fields != nil {
		s.Job.Fields.Restore(last.Fields)
	}
	if s.Job.Filters != nil {
		s.Job.Filters.Restore(last.Filters)
	}
}

func endReason(err error) string {
	switch {
	case err == nil:
		return "done"
	case IsStop(err):
		return "interrupted"
	case vfs.IsFull(err):
		return "the disk is full"
	case isEnd(err):
		return err.Error()
	}
	return "failed"
}

// isEnd reports whether the engine ended a run in order before the crawl was done.
func isEnd(err error) bool {
	return IsStop(err) || errors.Is(err, policy.ErrLimit) || errors.Is(err, crawl.ErrStuck) ||
		errors.Is(err, crawl.ErrOffline) || errors.Is(err, crawl.ErrNoProxy)
}

// IsStop reports whether a run ended because its context did.
func IsStop(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// SetEndReason sets the reason, for the report, why a run's context is about to end.
func (s *Session) SetEndReason(why string) { s.endReason.Store(&why) }

// Reenter admits the URLs that f passes to the Reentry into a crawl with a rebuilt state. It replaces Run.
func (s *Session) Reenter(ctx context.Context, f func(*crawl.Reentry) error) error {
	err := s.Engine.Reenter(ctx, f)
	if err == nil {
		s.Stores = nil // the engine has closed them
	}
	return err
}

// Tune applies the settings of a job that may change during the run.
func (s *Session) Tune(j *job.Job) error {
	if _, err := j.Normalize(); err != nil {
		return err
	}
	if err := j.CheckSlices(); err != nil {
		return err
	}
	if err := s.Engine.CheckOverrides(j.Crawl.Overrides.All(), s.Job.Fetch.PerHost); err != nil {
		return err
	}
	blocks, err := policy.ParseBlocks(j.Block)
	if err != nil {
		return err
	}
	s.Job.ApplyOverrides(j)
	s.Fetcher.SetLiveSettings(fetch.LiveSettings{UserAgent: j.UserAgent(), ConnectTimeout: j.Fetch.ConnectTimeout,
		Timeout: j.Fetch.Timeout})
	d := frontier.Delays{Delay: j.Frontier.Delay, AddrDelay: j.Frontier.AddrDelay, MaxDelay: j.Frontier.MaxDelay,
		Overrides: s.Job.HostConfig}
	s.Engine.Tune(crawl.Tuning{Delays: d, Tries: j.Crawl.Tries, Pages: j.Crawl.Pages, Prefer: j.Crawl.Prefer,
		Block: blocks})
	if s.Folder == nil {
		return nil
	}
	return s.Folder.WriteSettings(j.Settings)
}
