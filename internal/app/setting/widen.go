package setting

import (
	"math"
	"slices"

	"kumo/internal/app/job"
)

// Widens reports whether the crawl admits URLs, or writes things, with a setting's new values that it did not with the
// old ones.
func Widens(key string, was, now []string) bool {
	s := Find(key)
	return s != nil && s.Widens != nil && s.Widens(was, now)
}

func turnedOn(was, now []string) bool {
	return len(was) == 1 && len(now) == 1 && was[0] != now[0] && now[0] == "true"
}

func anotherFile(was, now []string) bool {
	return len(now) == 1 && now[0] != "" && !slices.Equal(was, now)
}

func more(was, now []string) bool {
	return slices.ContainsFunc(now, func(pattern string) bool { return !slices.Contains(was, pattern) })
}

func higherLimit(was, now []string) bool {
	return len(was) == 1 && len(now) == 1 && limitOf(was[0], true) < limitOf(now[0], true)
}

func higherDepth(was, now []string) bool {
	return len(was) == 1 && len(now) == 1 && limitOf(was[0], false) < limitOf(now[0], false)
}

// limitOf is a limit as a number: the largest where there is none, -1 where the text is no limit.
func limitOf(text string, zeroIsNone bool) int64 {
	if text == job.NoLimit {
		return math.MaxInt64
	}
	n := int64(0)
	if err := Size(&n).Set(text); err != nil {
		return -1
	}
	if n == 0 && zeroIsNone {
		return math.MaxInt64
	}
	return n
}
