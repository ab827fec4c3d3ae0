package policy

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
)

// A Recrawl determines when URLs are visited again.
type Recrawl struct {
	Intervals []Interval // the first match applies; one without Match applies last. Empty: no revisits
	// wait for URLs to become due when the queue is empty; otherwise revisit only those due at the start
	Continuous bool

	Overrides *Overrides // intervals that take precedence; nil: none
}

// An Interval is the time between visits to matching URLs. It adapts after each visit: it shrinks to two thirds if the
// page has changed, and grows by half if not. So it converges to a length at which every second visit finds a change.
type Interval struct {
	Match    *regexp.Regexp // nil: any URL
	Every    time.Duration  // time after the first visit; 0: never
	Min, Max time.Duration  // limits of the adapted interval
}

// DefaultInterval returns the interval of a crawl without intervals when its due URLs are requested.
func DefaultInterval() Interval { return every(7 * 24 * time.Hour) }

func every(d time.Duration) Interval {
	return Interval{Every: d, Min: max(d/boundsFactor, time.Second), Max: d * boundsFactor}
}

// boundsFactor is the default ratio of Every to Min and of Max to Every.
const boundsFactor = 8

// ParseInterval parses "EVERY", "EVERY,MIN,MAX" or "never", optionally after "REGEX=". Times have Go's format, or are
// days (7d) or weeks (2w).
func ParseInterval(text string) (i Interval, err error) {
	times := text
	if at := strings.LastIndexByte(text, '='); at >= 0 {
		times = text[at+1:]
		if i.Match, err = regexp.Compile(text[:at]); err != nil {
			return i, err
		}
	}
	if times == "never" {
		return i, nil
	}
	parts := strings.Split(times, ",")
	if len(parts) != 1 && len(parts) != 3 {
		return i, fmt.Errorf("%q: want never, a duration, or three as in 24h,1h,30d (first, minimum, maximum)", times)
	}
	var all [3]time.Duration
	for n, p := range parts {
		if all[n], err = parseDays(strings.TrimSpace(p)); err != nil {
			return i, err
		}
	}
	match := i.Match
	if i = every(all[0]); len(parts) == 3 {
		i.Min, i.Max = all[1], all[2]
	}
	i.Match = match
	if i.Every < i.Min || i.Every > i.Max {
		return i, fmt.Errorf("%q: the interval must be between its minimum and maximum", times)
	}
	return i, nil
}

const longest = 100 * 365 * 24 * time.Hour / boundsFactor

func parseDays(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	for unit, length := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if number, ok := strings.CutSuffix(s, unit); ok {
			var n float64
			n, err = strconv.ParseFloat(number, 64)
			d = time.Duration(min(n, float64(longest/length)+1) * float64(length))
		}
	}
	if err != nil || d < time.Second || d > longest {
		return 0, fmt.Errorf("%q is no interval: write 90m, 24h, 7d or 2w, at least 1s and at most %d years", s,
			longest/(365*24*time.Hour))
	}
	return d, nil
}

// IntervalFor returns the interval of a URL.
func (r *Recrawl) IntervalFor(url string) Interval {
	if r.Overrides.current() != nil {
		if u, err := weburl.Parse(url); err == nil {
			if own := r.Overrides.ForURL(u).Recrawl; own != nil {
				return *own
			}
		}
	}
	var any Interval
	for _, i := range r.Intervals {
		switch {
		case i.Match == nil && any.Every == 0:
			any = i
		case i.Match != nil && i.Match.MatchString(url):
			return i
		}
	}
	return any
}

// ShortestWait returns the shortest possible time between two visits.
func (r *Recrawl) ShortestWait() time.Duration {
	return r.shortest(func(i Interval) time.Duration { return i.Min })
}

// LeastMax returns the lowest of the intervals' maximums.
func (r *Recrawl) LeastMax() time.Duration {
	return r.shortest(func(i Interval) time.Duration { return i.Max })
}

func (r *Recrawl) shortest(of func(Interval) time.Duration) time.Duration {
	d := longest
	for _, i := range r.Intervals {
		if i.Every > 0 {
			d = min(d, of(i))
		}
	}
	for _, o := range r.Overrides.All() {
		if o.Recrawl != nil && o.Recrawl.Every > 0 {
			d = min(d, of(*o.Recrawl))
		}
	}
	return d
}

// Enabled reports whether there are any intervals.
func (r *Recrawl) Enabled() bool { return len(r.Intervals) > 0 }

// Never is the due time of a URL that is not visited again.
var Never = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// maxMissing is the number of consecutive visits without a page after which a URL is retired. The time between them
// doubles.
const maxMissing = 5

// Visits is the state of a URL from which its next visit is computed.
type Visits struct {
	Last, Due time.Time     // Due: the next visit, or Never; zero if none was planned
	Every     time.Duration // from the last visit to the next
	Missing   int           // consecutive visits without a page
}

// Plan returns the state after a visit with the result found. was is the state before.
func (i Interval) Plan(was Visits, found page.Recrawl, now time.Time) (next Visits) {
	if i.Every == 0 {
		return Visits{Due: Never}
	}
	every := cmp.Or(was.Every, i.Every)
	switch found {
	case page.Unchanged:
		every += every / 2
	case page.Changed:
		every = every * 2 / 3
	case page.Gone:
		every *= 2
		next.Missing = was.Missing + 1
	case page.Trouble:
		next.Missing = was.Missing
	}
	next.Every = min(max(every, i.Min), i.Max).Truncate(time.Second)
	next.Due = now.Add(max(next.Every, time.Second))
	if next.Missing >= maxMissing {
		next.Due = Never
	}
	return next
}

// Due returns the due time of a visited URL. If the interval became shorter since the visit was planned, it applies at
// once.
func (i Interval) Due(v Visits) time.Time {
	switch {
	case i.Every == 0, v.Missing >= maxMissing:
		return Never
	case v.Due.IsZero():
		return v.Last.Add(i.Every)
	}
	if latest := v.Last.Add(i.Max); v.Due.After(latest) {
		return latest
	}
	return v.Due
}

// Retired reports whether a URL was missing too often to be visited again, whatever its interval.
func (v Visits) Retired() bool { return v.Due.Equal(Never) && v.Missing >= maxMissing }
