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

// An Overview is how a crawl stands: its status, what it does now, and what is to be said of that.
type Overview struct {
	Name string `json:"name"` // of the crawl in URLs
	inspect.Status
	PagesNow  float64 `json:"pages_per_second_now"` // over the last seconds
	BytesNow  float64 `json:"bytes_per_second_now"`
	ErrorsNow float64 `json:"errors_per_second_now"`
	Words     []Word  `json:"words"`
}

// A Word is something to know of a crawl, with what to do.
type Word struct {
	Level string `json:"level"` // wrong: nothing goes on until it is dealt with; look: worth a look; info
	What  string `json:"what"`
	Do    string `json:"do,omitempty"`
}

const (
	levelProblem = "wrong"
	levelWarning = "look"
	levelInfo    = "info"
)

// A sample is what rates are made of.
type sample struct {
	time                 time.Time
	pages, bytes, failed int64
}

const (
	overviewAge = 900 * time.Millisecond // a look at the crawl is good for so long
	rateWindow  = 10 * time.Second
)

// A statusCache has the last overview of a crawl, and the samples from which the next one's rates are made. mu is held
// while the crawl is queried: one query runs at a time.
type statusCache struct {
	name string // the crawl's
	view *sharedView

	mu     sync.Mutex // guards below
	last   *Overview
	before []sample // of the last seconds
}

// overview returns how the crawl stands, at most a second old: concurrent requests share one query.
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

// invalidate makes the next request query the crawl anew.
func (s *statusCache) invalidate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = nil
}

func (o *Overview) runs() bool { return o.State == inspect.Running || o.State == inspect.Paused }

// rates are those of the last seconds in which somebody looked; of the whole run if nobody did before.
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

// notices say what is wrong, what is worth a look, and what is to be expected, the worst first.
func notices(o *Overview) (all []Word) {
	say := func(level, do, what string, args ...any) {
		all = append(all, Word{level, fmt.Sprintf(what, args...), do})
	}
	if o.CutOff > 0 {
		say(levelProblem, "See whether this machine reaches the web. The crawl tries a few hosts now and then, and goes on by "+
			"itself.",
			"Cut off from the web for %s: %s", span(o.CutOff), o.CutOffWhy)
	}
	if o.StalledBy != "" {
		say(levelProblem, o.StallDo, "Nothing was answered for %s: %s", span(o.Stalled), o.StallWhy)
	}
	if o.State == inspect.Paused && o.StalledBy == "" {
		say(levelWarning, "Resume it, or make room on the disk if that is what it waits for.", "The crawl is paused")
	}
	if o.State == inspect.BrokenOff {
		say(levelWarning, "The same kumo crawl command goes on.",
			"The last run was killed, or had no room on the disk to report")
	}
	if tried := o.Pages + o.Failed; o.Failed >= 20 && o.Failed*5 > tried {
		kind := most(o.Errors)
		say(levelWarning, adviceOn[kind], "%d %% of all URLs that were tried got no answer, mostly for one reason: %s",
			100*o.Failed/tried, kind)
	}
	if busy := o.Statuses[429] + o.Statuses[503]; busy >= 20 && busy*10 > o.Pages {
		say(levelWarning, "Raise --delay, or the delay of the hosts that answer so.",
			"%d %% of answers ask the crawl to slow down (429, 503)",
			100*busy/o.Pages)
	}
	if o.AbandonedMany() && o.HostsAbandoned > 0 {
		say(levelWarning, "The next run tries them again.", "%d hosts were given up, with %s that wait there", o.HostsAbandoned,
			stats.Count(o.Abandoned, "URLs"))
	}
	if o.OutOfSockets > 0 {
		say(levelWarning, "Raise ulimit -n, or lower --concurrency.",
			"This machine had no file descriptor, port or buffer for %d connections", o.OutOfSockets)
	}
	switch {
	case o.Forecast != "" && o.runs() && o.StalledBy == "":
		say(levelInfo, "", "Ends: %s", o.Forecast)
	case o.State == inspect.Stopped && o.Waiting > 0:
		say(levelInfo, "The same kumo crawl command goes on.", "%s when it ended", stats.Count(o.Waiting, "URLs")+" "+
			stats.Either(o.Waiting, "waits", "wait"))
	}
	if all == nil {
		all = []Word{}
	}
	return all
}

// adviceOn says what to do about attempts that fail.
var adviceOn = map[string]string{
	"dns":     "See whether this machine's resolver answers: kumo doctor. --dns-server names another.",
	"connect": "See whether this machine reaches the web: kumo doctor.",
	"refused": "The servers are down, or refuse this address.",
	"tls":     "Certificates are wrong, or this machine's clock is: date.",
	"timeout": "The servers are slow, or this line is full: raise --timeout, or lower --concurrency.",
	"reset":   "The servers, or something before them, cut connections: raise --delay.",
	"private": "--allow-private lets the crawl visit private addresses.",
	"robots":  "The hosts' robots.txt cannot be had, which forbids everything: the crawl tries again.",
	"local":   "This machine has no file descriptors or ports left: raise ulimit -n, or lower --concurrency.",
}

func most(m map[string]int64) string {
	return slices.MaxFunc(append(slices.Sorted(maps.Keys(m)), ""), func(a, b string) int {
		return cmp.Compare(m[a], m[b])
	})
}

func span(seconds float64) string { return stats.Span(time.Duration(seconds * float64(time.Second))) }

// liveValues is what of an overview changes while a page is open, as it is shown.
func liveValues(o *Overview) map[string]string {
	n := func(v int) string { return forecast.Grouped(int64(v)) }
	return map[string]string{
		"state": string(o.State), "pages": forecast.Grouped(o.Pages), "rate": rate(o.PagesNow), "bytes": stats.Bytes(o.Bytes),
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

// isUnreachable reports whether a crawl has to be opened anew.
func isUnreachable(err error) bool { return errors.Is(err, inspect.ErrUnreachable) }

// curves are how the crawl went: of one that runs as it has counted, of another what its files give.
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
