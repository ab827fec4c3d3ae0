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

// Recrawl says when URLs are visited again.
type Recrawl struct {
	Intervals []Interval // the first that matches a URL is its own; one that matches all counts last. None: no recrawl
	// when nothing waits, sleep until something is due; otherwise what is due at the start is taken, and no more
	Continuous bool

	Overrides *Overrides // whose intervals go before these; nil: there are none
}

// An Interval is how often what it matches is visited again. After each visit the time to the next is adapted: two
// thirds of the last where the page had changed, half as much again where it had not, so that it settles where every
// second visit finds a change.
type Interval struct {
	Match    *regexp.Regexp // nil: any URL
	Every    time.Duration  // after the first visit; 0: never
	Min, Max time.Duration  // what it stays within
}

// DefaultInterval is that of a crawl for which none was given, when it is asked for what is due.
func DefaultInterval() Interval { return every(7 * 24 * time.Hour) }

func every(d time.Duration) Interval {
	return Interval{Every: d, Min: max(d/boundsFactor, time.Second), Max: d * boundsFactor}
}

// boundsFactor is how many times shorter and longer than at first an interval becomes, unless it says otherwise.
const boundsFactor = 8

// ParseInterval reads "EVERY", "EVERY,MIN,MAX" or "never", each with "REGEX=" before it or not. Times are those of Go,
// and days (7d) and weeks (2w).
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
		return i, fmt.Errorf("%q: a time, or three as in 24h,1h,30d (at first, least, most), or never is wanted", times)
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
		return i, fmt.Errorf("%q: the interval is to be between its least and its most", times)
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

// IntervalFor is the interval of a URL.
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

// ShortestWait is the shortest time after which a visit can be followed by another.
func (r *Recrawl) ShortestWait() time.Duration {
	return r.shortest(func(i Interval) time.Duration { return i.Min })
}

// LeastMax is the least of the intervals' upper bounds.
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

// Enabled reports whether there are recrawls at all.
func (r *Recrawl) Enabled() bool { return len(r.Intervals) > 0 }

// Never is when a URL is due that is not visited again.
var Never = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// maxMissing is how many visits in a row may find nothing before a URL is retired. The time between them doubles.
const maxMissing = 5

// Visits are what is known of the visits to a URL, as far as they say when the next one is.
type Visits struct {
	Last, Due time.Time     // Due is when the next is, or Never; zero where none was planned
	Every     time.Duration // from the last to the next
	Missing   int           // in a row that found nothing there
}

// Plan says when a URL is visited again, after a visit that has found what; was is what was known before.
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

// Due is when a URL is due that was visited. A shorter interval than the one it was planned by holds at once.
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
