package synthweb

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A Score is what a server saw of its clients since it started or was last reset. Durations are nanoseconds in JSON.
type Score struct {
	Requests    int64 `json:"requests"`    // all, robots.txt included
	Connections int64 `json:"connections"` // all that were accepted
	Bytes       int64 `json:"bytes"`       // sent, heads included
	Robots      int64 `json:"robots"`      // requests for a robots.txt
	DNS         int64 `json:"dns"`         // DNS questions

	Statuses map[int]int64    `json:"statuses"` // answers by status; 0: none, from hanging hosts
	Kinds    map[string]int64 `json:"kinds"`    // requests by kind of resource
	Agents   map[string]int64 `json:"agents"`   // requests by User-Agent; at most 16 of them are told apart

	Distinct int `json:"distinct"` // resources that got a final answer: 2xx, 3xx, 404, 410
	Truth    int `json:"truth"`    // resources that a right crawler fetches
	Covered  int `json:"covered"`  // of those, fetched
	Missing  int `json:"missing"`  // of those, not fetched
	Beyond   int `json:"beyond"`   // fetched, but none of those; calendars and addresses unknown apart

	Repeats      int64 `json:"repeats"`       // 200 for what had been served whole before
	RepeatsOther int64 `json:"repeats_other"` // 3xx, 404 and 410 given before
	Traps        int64 `json:"traps"`         // requests into calendars
	Unknown      int64 `json:"unknown"`       // requests for addresses that no page names

	Forbidden    int64 `json:"forbidden"`     // requests for what the host's robots.txt forbids
	BeforeRobots int64 `json:"before_robots"` // requests to a host before its robots.txt had been answered
	Hasty        int64 `json:"hasty"`         // requests that began sooner after the one before than Crawl-delay says
	Throttled    int64 `json:"throttled"`     // 429s sent
	Impatient    int64 `json:"impatient"`     // requests before the Retry-After of a 429 had passed

	MostInFlight Extreme[int] `json:"most_in_flight"` // requests of one host that overlap
	MostOpen     Extreme[int] `json:"most_open"`      // connections to one host, open together for 10 ms or more
	// from the end of an answer to the next request, 0 if they overlap
	LeastGap   Extreme[time.Duration] `json:"least_gap"`
	LeastStart Extreme[time.Duration] `json:"least_start"` // from one request to the next

	Examples map[string][]string `json:"examples"` // a few URLs for missing, beyond, repeats, forbidden, unknown
}

// An Extreme is the greatest or least value over all hosts, and the host that has it; "" if there is no value.
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

// Perfect reports whether every resource of the truth was fetched, none twice, nothing beyond it, and no rule broken.
func (s Score) Perfect() bool {
	return s.Missing == 0 && s.Beyond == 0 && s.Repeats == 0 && s.RepeatsOther == 0 && s.Unknown == 0 &&
		s.Forbidden == 0 && s.BeforeRobots == 0 && s.Hasty == 0 && s.Impatient == 0
}

// String is the score for people.
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
