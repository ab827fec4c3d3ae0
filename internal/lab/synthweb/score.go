package synthweb

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A Score has a server's measurements of its clients since it started or was last reset. Durations are nanoseconds in
// JSON.
type Score struct {
	Requests    int64 `json:"requests"`    // all, including robots.txt
	Connections int64 `json:"connections"` // accepted connections
	Bytes       int64 `json:"bytes"`       // bytes sent, including heads
	Robots      int64 `json:"robots"`      // requests for a robots.txt
	DNS         int64 `json:"dns"`         // DNS queries

	Statuses map[int]int64    `json:"statuses"` // answers by status; 0: none, from hanging hosts
	Kinds    map[string]int64 `json:"kinds"`    // requests by kind of resource
	Agents   map[string]int64 `json:"agents"`   // requests by User-Agent; at most 16 are distinguished

	Distinct int `json:"distinct"` // resources that got a final answer: 2xx, 3xx, 404, 410
	Truth    int `json:"truth"`    // resources that a correct crawler fetches
	Covered  int `json:"covered"`  // of Truth, those fetched
	Missing  int `json:"missing"`  // of Truth, those not fetched
	Beyond   int `json:"beyond"`   // fetched, but not in Truth; without calendars and unknown addresses

	Repeats      int64 `json:"repeats"`       // 200 for a resource already served completely
	RepeatsOther int64 `json:"repeats_other"` // 3xx, 404 and 410 sent before
	Traps        int64 `json:"traps"`         // requests for calendars
	Unknown      int64 `json:"unknown"`       // requests for addresses that no page contains

	Forbidden    int64 `json:"forbidden"`     // requests forbidden by the host's robots.txt
	BeforeRobots int64 `json:"before_robots"` // requests to a host before its robots.txt was answered
	Hasty        int64 `json:"hasty"`         // requests that started earlier than Crawl-delay allows
	Throttled    int64 `json:"throttled"`     // 429s sent
	Impatient    int64 `json:"impatient"`     // requests before the Retry-After of a 429 had passed

	MostInFlight Extreme[int] `json:"most_in_flight"` // overlapping requests to one host
	MostOpen     Extreme[int] `json:"most_open"`      // connections to one host, open together for 10 ms or more
	// from the end of an answer to the next request; 0 if they overlap
	LeastGap   Extreme[time.Duration] `json:"least_gap"`
	LeastStart Extreme[time.Duration] `json:"least_start"` // from one request to the next

	Examples map[string][]string `json:"examples"` // some URLs for missing, beyond, repeats, forbidden, unknown
}

// An Extreme is the greatest or least value of all hosts, and its host; "" if there is no value.
type Extreme[T int | time.Duration] struct {
	Value T      `json:"value"`
	Host  string `json:"host"`
}

func (e *Extreme[T]) greatest(v T, host func() string) {
	if v > e.Value {
		e.Value, e.Host = v, host()
	}
}

func (e *Extreme[T]) least(v T, host func() string) {
	if e.Host == "" || v < e.Value {
		e.Value, e.Host = v, host()
	}
}

// Perfect reports whether every resource in Truth was fetched exactly once, nothing else was, and no rule was broken.
func (s Score) Perfect() bool {
	return s.Missing == 0 && s.Beyond == 0 && s.Repeats == 0 && s.RepeatsOther == 0 && s.Unknown == 0 &&
		s.Forbidden == 0 && s.BeforeRobots == 0 && s.Hasty == 0 && s.Impatient == 0
}

// String returns the score as text.
func (s Score) String() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s "+format+"\n", append([]any{name}, args...)...)
	}
	line("requests", "%d on %d connections, %d bytes sent", s.Requests, s.Connections, s.Bytes)
	line("coverage", "%d of %d, %d missing, %d beyond, %d into traps, %d unknown",
		s.Covered, s.Truth, s.Missing, s.Beyond, s.Traps, s.Unknown)
	line("repeats", "%d pages, %d others", s.Repeats, s.RepeatsOther)
	line("robots", "%d forbidden, %d before robots.txt, %d sooner than Crawl-delay", s.Forbidden, s.BeforeRobots, s.Hasty)
	line("429", "%d sent, %d requests before Retry-After", s.Throttled, s.Impatient)
	line("in flight", "at most %d (%s)", s.MostInFlight.Value, s.MostInFlight.Host)
	line("connections", "at most %d at once (%s)", s.MostOpen.Value, s.MostOpen.Host)
	line("gap", "at least %v (%s), start to start %v (%s)", s.LeastGap.Value, s.LeastGap.Host, s.LeastStart.Value,
		s.LeastStart.Host)
	for _, what := range slices.Sorted(maps.Keys(s.Examples)) {
		line("e.g.", "%s: %s", what, strings.Join(s.Examples[what], " "))
	}
	return b.String()
}
