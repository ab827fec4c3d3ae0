package job

import (
	"math"
	"slices"
	"strconv"

	"kumo/internal/engine/crawl"
)

// Widening are the settings of a crawl that may only grow once it has begun: what they left out is let in then.
var Widening = slices.Concat([]string{"depth", "embeds", "text", FieldsKey, NoTrapsKey, ReleaseTrapKey}, Limits)

// Limits are those of them that are a number, 0 for none. What they leave out has their names for a rule.
var Limits = []string{"max-pages-per-host", crawl.RulePagesPerDomain, crawl.RuleHostsPerDomain,
	crawl.RuleNamesPerDomain}

// The settings of the guard against traps: that there is none, and the patterns of URLs that are fetched all the same.
// Both may also be taken back.
const (
	NoTrapsKey     = "no-traps"
	ReleaseTrapKey = "release-trap"
)

// FieldsKey is the setting that names the rules for records. Other rules may take their place, for pages that come
// then; there is no way back to none.
const FieldsKey = "fields"

// Bound is a bound that a person gives, as a crawl's Config has it: negative where it is 0, without limit.
func Bound(n int64) int64 {
	if n == 0 {
		return -1
	}
	return n
}

// Widens reports whether a setting leaves out less than it did.
func Widens(key string, was, now []string) bool {
	if key == ReleaseTrapKey {
		return slices.ContainsFunc(now, func(pattern string) bool { return !slices.Contains(was, pattern) })
	}
	if key == FieldsKey {
		return len(now) == 1 && now[0] != "" && !slices.Equal(was, now)
	}
	if !slices.Contains(Widening, key) || len(was) != 1 || len(now) != 1 || was[0] == now[0] {
		return false
	}
	switch key {
	case "embeds", "text", NoTrapsKey:
		return now[0] == "true"
	}
	a, b := limit(key, was[0]), limit(key, now[0])
	return a < b
}

// limit is a limit as a number: the largest where there is none, -1 where it is no limit.
func limit(key, value string) int64 {
	n, err := strconv.ParseInt(value, 10, 64)
	switch {
	case value == NoLimit, err == nil && n == 0 && slices.Contains(Limits, key):
		return math.MaxInt64
	case err != nil:
		return -1
	}
	return n
}

// NoLimit is how a depth is written that has none.
const NoLimit = "unlimited"
