package session

import (
	"context"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/stats"
	"kumo/internal/base/wait"
	"kumo/internal/state/forecast"
	"kumo/internal/state/frontier"
	"kumo/internal/state/stall"
)

// An Outlook is the forecast for a running crawl, and the reason if it is stalled.
type Outlook struct {
	Forecast forecast.Forecast
	Stall    stall.Alarm
}

// Outlook returns the latest outlook; the zero value before a run.
func (s *Session) Outlook() Outlook {
	if o := s.outlook.Load(); o != nil {
		return *o
	}
	return Outlook{}
}

const (
	outlookInterval = time.Second // between two updates
	maxSlowest      = 8           // hosts
)

// watch updates the outlook until ctx ends, and reports stalls to the listener. Host names are read from disk here, so
// that callers of Outlook never wait for the disk.
func (s *Session) watch(ctx context.Context) {
	defer s.watching.Stop()
	w := watcher{Session: s, began: s.Job.Now(), sweep: s.Frontier.Inspector().Sweep(maxSlowest)}
	for range wait.Ticks(ctx, outlookInterval) {
		w.update()
		s.watching.Beat()
	}
}

type watcher struct {
	*Session
	began      time.Time
	sweep      *frontier.Sweep
	forecaster forecast.Forecaster
	stall      stall.Monitor

	socketFailures int64 // attempts without a socket before the last response
	answered       time.Time
	stalled        time.Duration // duration at the last update
}

func (w *watcher) update() {
	now, counts, totals := w.Job.Now(), w.Frontier.Counts(), w.Stats.Totals()
	sample := forecast.Sample{Time: now, Pending: counts.URLs, Done: totals.Pages + totals.Failed}
	for _, h := range w.sweep.Next() {
		sample.SlowestHosts = append(sample.SlowestHosts, forecast.Host{Name: h.Key, URLs: h.Pending, Delay: h.Delay,
			Remaining: h.RemainingTime(now)})
	}
	sample.CapURLs(func(host string) int { return int(w.Engine.Inspector.MostPages(item.HostOfSlice(host))) })
	o := Outlook{Forecast: w.forecaster.Update(sample)}
	w.curves.Add(stats.Point{Time: now, Pages: totals.Pages, Bytes: totals.Bytes, Failed: totals.Failed,
		Known: int64(w.URLsKnown()), Waiting: int64(counts.URLs), Active: int64(counts.Active)})
	snapshot := w.snapshot(now, &counts)
	alarm, change := w.stall.Update(snapshot)
	o.Stall = alarm
	w.outlook.Store(&o)
	l := w.Job.Listener
	switch {
	case change == stall.Began && l.Stalled != nil:
		l.Stalled(alarm.For, alarm.Words, alarm.Do)
	case change == stall.Ended && l.Recovered != nil:
		l.Recovered(w.stalled)
	}
	w.stalled = alarm.For
}

func (w *watcher) snapshot(now time.Time, counts *frontier.Counts) *stall.Snapshot {
	v, line := w.Engine.Vitals(), w.Engine.Outage()
	since := w.began
	if v.Answered.After(since) {
		since = v.Answered
	}
	if !v.Answered.Equal(w.answered) {
		w.answered, w.socketFailures = v.Answered, line.Scarce
	}
	s := &stall.Snapshot{SinceAnswer: now.Sub(since), URLs: counts.URLs, Active: counts.Active, Waiting: counts.Waiting,
		BackingOff: counts.Backing, Paused: v.Paused, DiskFull: v.DiskFull, DiskFree: v.DiskFree, DiskNeed: v.DiskMin,
		Offline: line.Offline, OfflineReason: line.Why, OutboxFull: v.OutboxFull,
		ShareUsed: v.ShareUsed, NoSocket: line.Scarce - w.socketFailures,
		Failures: v.Failures, Failure: stats.Clip(v.Failure), Rate: w.Job.Crawl.Rate, Timeout: w.Job.Fetch.Timeout,
		Checkpointing: v.Checkpointing, Folder: w.Job.Dir}
	if line.Offline {
		s.OfflineFor = now.Sub(line.Since)
	}
	if h, ok := w.Frontier.Inspector().NextHost(); ok {
		s.HasNext, s.Next = true, stall.NextHost{Host: h.Key, In: h.Next.Sub(now), Why: string(h.Why), Delay: h.Delay}
	}
	return s
}
