package crawl

import (
	"slices"

	"kumo/internal/base/bounded"
	"kumo/internal/base/page"
)

// abandonment is why an origin was given up.
type abandonment struct {
	failure page.Failure
	why     string
}

// abandonedOrigins are the origins that this run has given up: all of them, as none is to be asked again. Why, in the
// words of the failure, is known of those that were asked for lately.
type abandonedOrigins struct {
	origins  *bounded.Counts // place in failures, from 1
	failures []page.Failure
	whys     *bounded.Recent[string, string]
}

const maxWhys = 1 << 12

func newAbandonedOrigins() *abandonedOrigins {
	return &abandonedOrigins{origins: bounded.NewCounts(), whys: bounded.NewRecent[string, string](maxWhys)}
}

// add notes that an origin is given up, and reports whether that is news.
func (ls *abandonedOrigins) add(origin string, l abandonment) bool {
	if ls.origins.Get(origin) != 0 {
		return false
	}
	i := slices.Index(ls.failures, l.failure)
	if i < 0 {
		i = len(ls.failures)
		ls.failures = append(ls.failures, l.failure)
	}
	ls.origins.Set(origin, uint32(i+1))
	ls.whys.Put(origin, l.why)
	return true
}

// of says whether an origin was given up, and why.
func (ls *abandonedOrigins) of(origin string) (abandonment, bool) {
	i := ls.origins.Get(origin)
	if i == 0 {
		return abandonment{}, false
	}
	l := abandonment{failure: ls.failures[i-1], why: "given up earlier in this run"}
	if why, known := ls.whys.Get(origin); known {
		l.why = why
	}
	return l, true
}
