package ui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"kumo/internal/app/inspect"
	"kumo/internal/base/stats"
	"kumo/internal/state/forecast"
)

// An Overview is the state of a crawl: its status, current rates, and notices.
type Overview struct {
	Name string `json:"name"` // name of the crawl in URLs
	inspect.Status
	PagesNow  float64 `json:"pages_per_second_now"` // over the last seconds
	BytesNow  float64 `json:"bytes_per_second_now"`
	ErrorsNow float64 `json:"errors_per_second_now"`
	Words     []Word  `json:"words"`
}

// A Word is a notice about a crawl, with advice.
type Word struct {
	Level string `json:"level"` // wrong: the crawl is blocked; look: needs attention; info
	What  string `json:"what"`
	Do    string `json:"do,omitempty"`
}

const (
	levelProblem = "wrong"
	levelWarning = "look"
	levelInfo    = "info"
)

// ruleTrap is the rule of URLs that are excluded as traps.
const ruleTrap = "trap"

// A sample is a measurement for computing rates.
type sample struct {
	time                 time.Time
	pages, bytes, failed int64
}

const (
	overviewAge = 900 * time.Millisecond // maximum age of an overview
	rateWindow  = 10 * time.Second
)

// A statusCache has the last overview of a crawl, and samples for computing rates. mu is held while the crawl is
// queried: one query runs at a time.
type statusCache struct {
	name string // name of the crawl
	view *sharedView

	mu     sync.Mutex // guards the fields below
	last   *Overview
	before []sample // samples of the last seconds
}

// overview returns the state of the crawl, at most a second old. Concurrent requests share one query.
func (s *statusCache) overview(ctx context.Context) (*Overview, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil && time.Since(s.last.Time) < overviewAge && time.Since(s.last.Time) >= 0 {
		return s.last, nil
	}
	var x *inspect.Status
	err := s.view.use(ctx, func(v *inspect.View) (err error) {
		x, err = v.Status(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	o := &Overview{Name: s.name, Status: *x}
	s.rates(o)
	o.Words = notices(o)
	s.last = o
	return o, nil
}

func getOverview(c *crawl, r *http.Request) (*Overview, error) {
	return c.status.overview(r.Context())
}

// invalidate makes the next request query the crawl again.
func (s *statusCache) invalidate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = nil
}

// stateDone is the page's name of the state of a crawl that has ended because no URL is pending.
const stateDone = "done"

// stateText returns a crawl's state as the page shows it: a crawl whose last run was complete is done.
func stateText(state inspect.State, ended string) string {
	if state == inspect.Stopped && ended == stateDone {
		return stateDone
	}
	return string(state)
}

// StateText returns the state as the page shows it.
func (o *Overview) StateText() string { return stateText(o.State, o.Ended) }

func (o *Overview) runs() bool { return o.State == inspect.Running || o.State == inspect.Paused }

// rates sets the rates of the last seconds, or of the whole run if there are no samples.
func (s *statusCache) rates(o *Overview) {
	if !o.runs() {
		s.before = nil
		return
	}
	s.before = slices.DeleteFunc(s.before, func(b sample) bool {
		return o.Time.Sub(b.time) > 2*rateWindow || b.pages > o.Pages
	})
	for len(s.before) > 1 && o.Time.Sub(s.before[1].time) >= rateWindow {
		s.before = s.before[1:]
	}
	now := sample{o.Time, o.Pages, o.Bytes, o.Failed}
	if len(s.before) == 0 {
		o.PagesNow, o.BytesNow = o.PagesPerSecond, o.BytesPerSecond
	} else if first := s.before[0]; now.time.After(first.time) {
		span := now.time.Sub(first.time).Seconds()
		o.PagesNow, o.BytesNow = float64(now.pages-first.pages)/span, float64(now.bytes-first.bytes)/span
		o.ErrorsNow = float64(now.failed-first.failed) / span
	}
	s.before = append(s.before, now)
}

// notices returns problems, warnings and forecasts, the worst first.
func notices(o *Overview) (all []Word) {
	say := func(level, do, what string, args ...any) {
		all = append(all, Word{level, fmt.Sprintf(what, args...), do})
	}
	if o.CutOff > 0 {
		say(
			levelProblem,
			"Check whether this machine can reach the web. The crawl tries a few hosts now and then, and resumes by "+
				"itself.",
			"Offline for %s: %s",
			span(o.CutOff),
			o.CutOffWhy,
		)
	}
	if o.StalledBy != "" {
		say(levelProblem, o.StallDo, "No answers for %s: %s", span(o.Stalled), o.StallWhy)
	}
	if o.State == inspect.Paused && o.StalledBy == "" {
		say(levelWarning, "Resume it, or free disk space if it waits for that.", "The crawl is paused")
	}
	if o.State == inspect.BrokenOff {
		say(levelWarning, "The same kumo crawl command resumes it.",
			"The last run was killed, or could not write its report for lack of disk space")
	}
	if tried := o.Pages + o.Failed; o.Failed >= 20 && o.Failed*5 > tried {
		kind := most(o.Errors)
		say(levelWarning, adviceOn[kind], "%d %% of all requested URLs got no answer, mostly for one reason: %s",
			100*o.Failed/tried, kind)
	}
	if busy := o.Statuses[429] + o.Statuses[503]; busy >= 20 && busy*10 > o.Pages {
		say(levelWarning, "Raise --delay, or the delay of the hosts that send these answers.",
			"%d %% of answers ask the crawl to slow down (429, 503)",
			100*busy/o.Pages)
	}
	if o.AbandonedMany() && o.HostsAbandoned > 0 {
		say(levelWarning, "The next run retries them.", "%d hosts were abandoned, with %s pending", o.HostsAbandoned,
			stats.Count(o.Abandoned, "URLs"))
	}
	if n := o.Skipped[ruleTrap]; n > 0 {
		say(levelInfo, "kumo traps, with the crawl's folder, lists their patterns and releases them.",
			"%s excluded as traps: their patterns yield nothing new", stats.Count(n, "URLs")+" "+stats.Either(n, "was",
				"were"))
	}
	if o.OutOfSockets > 0 {
		say(levelWarning, "Raise ulimit -n, or lower --concurrency.",
			"This machine had no file descriptor, port or buffer for %d connections", o.OutOfSockets)
	}
	switch {
	case o.Forecast != "" && o.runs() && o.StalledBy == "":
		say(levelInfo, "", "Ends: %s", o.Forecast)
	case o.State == inspect.Stopped && o.Waiting > 0:
		say(levelInfo, "The same kumo crawl command resumes it.", "%s in the queue when it ended",
			stats.Count(o.Waiting, "URLs")+" "+stats.Either(o.Waiting, "was", "were"))
	}
	if all == nil {
		all = []Word{}
	}
	return all
}

// adviceOn returns advice for kinds of failures.
var adviceOn = map[string]string{
	"dns":     "Check this machine's resolver: kumo doctor. --dns-server selects another one.",
	"connect": "Check whether this machine can reach the web: kumo doctor.",
	"refused": "The servers are down, or refuse this address.",
	"tls":     "Certificates are invalid, or this machine's clock is wrong: date.",
	"timeout": "The servers are slow, or the network is saturated: raise --timeout, or lower --concurrency.",
	"reset":   "The servers, or devices in front of them, reset connections: raise --delay.",
	"private": "--allow-private lets the crawl visit private addresses.",
	"robots":  "The hosts' robots.txt is not available, which forbids everything: the crawl tries again.",
	"local":   "This machine has no file descriptors or ports left: raise ulimit -n, or lower --concurrency.",
}

func most(m map[string]int64) string {
	return slices.MaxFunc(append(slices.Sorted(maps.Keys(m)), ""), func(a, b string) int {
		return cmp.Compare(m[a], m[b])
	})
}

func span(seconds float64) string { return stats.Span(time.Duration(seconds * float64(time.Second))) }

// liveValues returns the values that an open page updates.
func liveValues(o *Overview) map[string]string {
	n := func(v int) string { return forecast.Grouped(int64(v)) }
	return map[string]string{
		"state": o.StateText(), "pages": forecast.Grouped(o.Pages), "rate": rate(o.PagesNow), "bytes": stats.Bytes(o.Bytes),
		"bytes-rate": stats.Bytes(int64(o.BytesNow)) + "/s", "failed": forecast.Grouped(o.Failed),
		"failed-rate": rate(o.ErrorsNow),
		"waiting":     n(o.Waiting), "growth": growth(o.Growth), "known": n(o.Known), "hosts": n(o.Hosts),
		"active": n(o.Active),
		"idle":   n(o.Idle), "backing": n(o.Backing), "given-up": forecast.Grouped(o.HostsAbandoned), "for": span(o.Seconds),
		"retries": forecast.Grouped(o.Retries), "duplicates": forecast.Grouped(o.Duplicates),
		"links": forecast.Grouped(o.Links),
	}
}

func rate(v float64) string {
	if v >= 100 {
		return forecast.Grouped(int64(v+0.5)) + "/s"
	}
	return fmt.Sprintf("%.1f/s", v)
}

func growth(v float64) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf("%+.1f/s", v)
}

// isUnreachable reports whether a crawl must be opened again.
func isUnreachable(err error) bool { return errors.Is(err, inspect.ErrUnreachable) }

// curves returns the history of a crawl: of a running one from its counters, otherwise from its files.
func (c *crawl) curves(r *http.Request) (x *stats.Curves, err error) {
	ctx := r.Context()
	o, err := c.status.overview(ctx)
	if err != nil {
		return nil, err
	}
	x = &stats.Curves{}
	if o.runs() {
		err = c.view.use(ctx, func(v *inspect.View) (err error) {
			if src, can := v.Source.(inspect.CurveReader); can {
				x, err = src.Curves(ctx)
			}
			return err
		})
	} else {
		x.All, err = c.archive.Curve(o.Pages + o.Failed)
	}
	if err != nil {
		return nil, err
	}
	x.Hour, x.All = orEmpty(x.Hour), orEmpty(x.All)
	return x, nil
}

func orEmpty[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}
