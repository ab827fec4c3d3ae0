// Package forecast estimates the earliest end of a running crawl, and the trend of its queue.
//
// A forecast is a pure function of samples of the crawl's counters. Its text claims no more than the samples support.
package forecast

import (
	"fmt"
	"strings"
	"time"

	"kumo/internal/base/stats"
)

// A Sample is the state of a crawl at one time.
type Sample struct {
	Time    time.Time
	Pending int   // URLs in queues
	Done    int64 // URLs that got a response, or have failed
	// SlowestHosts are the known hosts that take longest, the longest first. There may be longer ones that were not
	// examined yet.
	SlowestHosts []Host
}

// A Host is a host with pending URLs.
type Host struct {
	Name      string
	URLs      int
	Delay     time.Duration // between two requests
	Remaining time.Duration // least time to fetch the URLs
}

// CapURLs limits the URLs that count for a host, for a crawl with a limit of pages per host; 0 means no limit.
func (s *Sample) CapURLs(mostOf func(host string) int) {
	for i := range s.SlowestHosts {
		h := &s.SlowestHosts[i]
		if most := mostOf(h.Name); most > 0 && h.URLs > most {
			h.Remaining -= time.Duration(h.URLs-most) * h.Delay
			h.URLs = most
		}
	}
}

// A Trend is the development of the number of pending URLs.
type Trend string

// Trends.
const (
	Unknown Trend = "unknown" // not observed for long enough
	Grows   Trend = "grows"
	Steady  Trend = "steady"
	Shrinks Trend = "shrinks"
)

// A Forecast is an estimate of the rest of a crawl.
type Forecast struct {
	Trend Trend `json:"trend"`
	// Growth is the growth of the number of pending URLs per second, over the last minutes.
	Growth  float64 `json:"growth"`
	Rate    float64 `json:"done_per_second"`  // URLs done, over the last minutes
	AtLeast float64 `json:"at_least_seconds"` // until the URLs now pending are done; 0 if unknown
	// until the queue is empty, if the trend continues; 0 if it does not shrink
	About float64 `json:"about_seconds,omitempty"`
	Host  string  `json:"slowest_host,omitempty"`      // host that takes longest
	URLs  int     `json:"slowest_host_urls,omitempty"` // its pending URLs
	Words string  `json:"words"`
}

const (
	window         = 5 * time.Minute
	sampleInterval = 5 * time.Second  // between retained samples
	minSpan        = 20 * time.Second // least age of the oldest sample for a trend
)

// A Forecaster makes forecasts from samples. It must be used by one goroutine.
type Forecaster struct {
	samples []Sample // without hosts, oldest first
}

// Update adds a sample, which must not be older than the previous one, and returns a forecast.
func (w *Forecaster) Update(s Sample) Forecast {
	f := Forecast{Trend: Unknown}
	if n := len(w.samples); n == 0 || s.Time.Sub(w.samples[n-1].Time) >= sampleInterval {
		old := s
		old.SlowestHosts = nil
		w.samples = append(w.samples, old)
	}
	for len(w.samples) > 1 && s.Time.Sub(w.samples[0].Time) > window {
		w.samples = w.samples[1:]
	}
	if s.Time.Sub(w.samples[0].Time) >= minSpan {
		first := w.baseline(s.Time)
		span := s.Time.Sub(first.Time)
		f.Rate = float64(s.Done-first.Done) / span.Seconds()
		f.Growth = float64(s.Pending-first.Pending) / span.Seconds()
		f.Trend = trend(f.Growth, f.Rate)
	}
	f.estimate(&s)
	f.Words = f.describe(&s)
	return f
}

// baseline returns the sample to compare with: the last one of the older half of the window. With the first sample, a
// crawl that starts with one URL would seem to grow for as long as that sample is retained.
func (w *Forecaster) baseline(now time.Time) Sample {
	half := now.Sub(w.samples[0].Time) / 2
	at := 0
	for at+1 < len(w.samples) && now.Sub(w.samples[at+1].Time) >= half {
		at++
	}
	return w.samples[at]
}

// trend distinguishes growth from random variation.
func trend(growth, rate float64) Trend {
	switch slack := max(0.05*rate, 0.02); {
	case growth > slack:
		return Grows
	case growth < -slack:
		return Shrinks
	}
	return Steady
}

func (f *Forecast) estimate(s *Sample) {
	if s.Pending == 0 {
		return
	}
	if len(s.SlowestHosts) > 0 {
		f.Host, f.URLs = s.SlowestHosts[0].Name, s.SlowestHosts[0].URLs
		f.AtLeast = s.SlowestHosts[0].Remaining.Seconds()
	}
	if f.Trend == Shrinks {
		f.About = max(float64(s.Pending)/-f.Growth, f.AtLeast)
	}
}

// minReported is the shortest time that is reported as a bound.
const minReported = time.Minute

func (f *Forecast) describe(s *Sample) string {
	if s.Pending == 0 {
		return "the queue is empty"
	}
	bound := ""
	if f.AtLeast >= minReported.Seconds() {
		h := &s.SlowestHosts[0]
		bound = fmt.Sprintf("at least %s: %s has %s at %s", span(f.AtLeast), h.Name, urls(h.URLs), Pace(h.Delay))
		if queue := time.Duration(h.URLs-1) * h.Delay; queue < h.Remaining/2 {
			bound = fmt.Sprintf("at least %s: %s has %s, and may not be visited for %s", span(f.AtLeast), h.Name, urls(h.URLs),
				stats.Span(h.Remaining-queue))
		}
	}
	switch f.Trend {
	case Grows:
		return join(fmt.Sprintf("unknown: the queue grows by %s a second", number(f.Growth)), bound)
	case Shrinks:
		about := fmt.Sprintf("about %s: %s, %s a second less", span(f.About), pendingURLs(s.Pending), number(-f.Growth))
		if bound != "" && f.About <= 1.2*f.AtLeast {
			return bound
		}
		return join(about, bound)
	case Steady:
		if f.Rate == 0 {
			return join("unknown: no URL was done recently", bound)
		}
		return join("unknown: as many URLs are found as are done", bound)
	}
	if bound != "" {
		return bound
	}
	return "too early to say"
}

func join(parts ...string) string {
	if parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	return strings.Join(parts, "; ")
}

func urls(n int) string { return Grouped(int64(n)) + " " + stats.Unit(n, "URLs") }

func pendingURLs(n int) string { return urls(n) + " " + stats.Either(n, "waits", "wait") }

func span(seconds float64) string {
	return stats.Span(time.Duration(min(seconds, 1e9) * float64(time.Second)))
}

// Pace formats a delay as a rate: "one a second", "4 a second", "one every 30 s".
func Pace(delay time.Duration) string {
	switch {
	case delay <= 0:
		return "any pace"
	case delay == time.Second:
		return "one a second"
	case delay < time.Second:
		return number(1/delay.Seconds()) + " a second"
	}
	return "one every " + stats.Span(delay)
}

func number(n float64) string {
	if n < 10 {
		return fmt.Sprintf("%.2g", n)
	}
	return Grouped(int64(n + 0.5))
}

// Grouped formats a number with separators of thousands: 32,400.
func Grouped(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
