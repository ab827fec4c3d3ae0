package job

import (
	"math"
	"slices"
	"strconv"
)

// Widening are the settings of a crawl that may only grow once it has begun: what they left out is let in then.
var Widening = []string{"depth", "max-pages-per-host", "embeds", "text", FieldsKey, NoTrapsKey, ReleaseTrapKey}

// The settings of the guard against traps: that there is none, and the patterns of URLs that are fetched all the same.
// Both may also be taken back.
const (
	NoTrapsKey     = "no-traps"
	ReleaseTrapKey = "release-trap"
)

// FieldsKey is the setting that names the rules for records. Other rules may take their place, for pages that come
// then; there is no way back to none.
const FieldsKey = "fields"

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
	case value == NoLimit, err == nil && n == 0 && key == "max-pages-per-host":
		return math.MaxInt64
	case err != nil:
		return -1
	}
	return n
}

// NoLimit is how a depth is written that has none.
const NoLimit = "unlimited"
