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

// A Sample is a crawl at one time.
type Sample struct {
	Time    time.Time
	Pending int   // URLs in queues
	Done    int64 // URLs that were answered, or have failed
	// the hosts that are known to take longest, the longest first; there may be others that nobody has looked at yet
	SlowestHosts []Host
}

// A Host is what waits at one.
type Host struct {
	Name      string
	URLs      int
	Delay     time.Duration // between two of them
	Remaining time.Duration // until they are fetched, at the least
}

// CapURLs bounds how many URLs of a host count, as of a crawl that takes no more pages of it; 0: all do.
func (s *Sample) CapURLs(mostOf func(host string) int) {
	for i := range s.SlowestHosts {
		h := &s.SlowestHosts[i]
		if most := mostOf(h.Name); most > 0 && h.URLs > most {
			h.Remaining -= time.Duration(h.URLs-most) * h.Delay
			h.URLs = most
		}
	}
}

// A Trend is what becomes of the number of URLs that wait.
type Trend string

// The trends.
const (
	Unknown Trend = "unknown" // it was not seen for long enough
	Grows   Trend = "grows"
	Steady  Trend = "steady"
	Shrinks Trend = "shrinks"
)

// A Forecast is what is to be expected.
type Forecast struct {
	Trend Trend `json:"trend"`
	// URLs a second that wait more, negative: less, over the last minutes
	Growth  float64 `json:"growth"`
	Rate    float64 `json:"done_per_second"`             // URLs, over the last minutes
	AtLeast float64 `json:"at_least_seconds"`            // until what waits now is done; 0: nothing is known
	About   float64 `json:"about_seconds,omitempty"`     // until nothing waits, if it goes on so; 0: it does not shrink
	Host    string  `json:"slowest_host,omitempty"`      // that takes longest
	URLs    int     `json:"slowest_host_urls,omitempty"` // that wait there
	Words   string  `json:"words"`
}

const (
	window         = 5 * time.Minute
	sampleInterval = 5 * time.Second  // between two samples that are kept
	minSpan        = 20 * time.Second // of samples, for a trend: of the later half of them
)

// A Watch makes forecasts of samples. It is used by one goroutine.
type Forecaster struct {
	samples []Sample // without hosts, oldest first
}

// Update takes a sample in, no earlier than the one before, and says what is to be expected.
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

// baseline is the sample to compare with: the last one of the earlier half of what is kept. The first would have a crawl
// that begins with one URL grow for as long as that one is kept.
func (w *Forecaster) baseline(now time.Time) Sample {
	half := now.Sub(w.samples[0].Time) / 2
	at := 0
	for at+1 < len(w.samples) && now.Sub(w.samples[at+1].Time) >= half {
		at++
	}
	return w.samples[at]
}

// trend tells what the queue does from what chance does to it.
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

// minReported is a time that is worth a word.
const minReported = time.Minute

func (f *Forecast) describe(s *Sample) string {
	if s.Pending == 0 {
		return "nothing waits"
	}
	bound := ""
	if f.AtLeast >= minReported.Seconds() {
		h := &s.SlowestHosts[0]
		bound = fmt.Sprintf("at least %s: %s has %s at %s", span(f.AtLeast), h.Name, urls(h.URLs), Pace(h.Delay))
		if queue := time.Duration(h.URLs-1) * h.Delay; queue < h.Remaining/2 {
			bound = fmt.Sprintf("at least %s: %s has %s, and is left alone for %s", span(f.AtLeast), h.Name, urls(h.URLs),
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
			return join("unknown: nothing is done at present", bound)
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

// Pace is a delay as a pace: "one a second", "4 a second", "one every 30 s".
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

// Grouped is a number with its thousands apart: 32,400.
func Grouped(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
