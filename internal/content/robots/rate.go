package robots

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// A Rate is a Request-rate line: a number of requests per time, and the hours of the day in which it applies.
type Rate struct {
	Requests    float64       // positive
	Per         time.Duration // at most a year
	From, Until time.Duration // since midnight, UTC; both 0: all day. The span may include midnight
}

// Delay returns the time between two requests at this rate, at most a year.
func (r Rate) Delay() time.Duration { return inSeconds(r.Per.Seconds() / r.Requests) }

// Hours returns the hours of the day as written in a file, "0800-1700"; "" for all day.
func (r Rate) Hours() string {
	if r.From == r.Until {
		return ""
	}
	return hhmm(r.From) + "-" + hhmm(r.Until)
}

func hhmm(d time.Duration) string {
	return fmt.Sprintf("%02d%02d", d/time.Hour, d%time.Hour/time.Minute)
}

// parseRate parses a Request-rate: requests/time with the unit s, m or h, optionally followed by hours of the day:
// "1/5", "30/1m 0900-1700". Invalid hours are ignored: the rate applies all day.
func parseRate(value string) (r Rate, ok bool) {
	before, after, _ := strings.Cut(value, "/")
	requests, _, ok := leadingNumber(before)
	span, rest, ok2 := leadingNumber(strings.TrimSpace(after))
	if !ok || !ok2 || requests <= 0 {
		return Rate{}, false
	}
	unit := strings.ToLower(strings.TrimSpace(rest))
	switch {
	case strings.HasPrefix(unit, "m"):
		span *= 60
	case strings.HasPrefix(unit, "h"):
		span *= 3600
	}
	r = Rate{Requests: requests, Per: inSeconds(span)}
	r.From, r.Until = parseHours(strings.TrimLeftFunc(unit, unicode.IsLetter))
	return r, true
}

// parseHours parses "0800-1700"; it returns 0, 0 for an invalid text.
func parseHours(s string) (from, until time.Duration) {
	first, last, _ := strings.Cut(s, "-")
	from, ok := timeOfDay(first)
	until, ok2 := timeOfDay(last)
	if !ok || !ok2 || from == until {
		return 0, 0
	}
	return from, until
}

// timeOfDay parses "0800" or "08:00".
func timeOfDay(s string) (time.Duration, bool) {
	s = strings.TrimSpace(s)
	if len(s) == 5 && s[2] == ':' {
		s = s[:2] + s[3:]
	}
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || len(s) != 4 || n > 2400 || n%100 > 59 {
		return 0, false
	}
	return time.Duration(n/100)*time.Hour + time.Duration(n%100)*time.Minute, true
}
