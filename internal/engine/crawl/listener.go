package crawl

import (
	"time"

	"kumo/internal/base/page"
)

// A Listener is told what happens. Its functions are called by the workers, many at once, and must be quick; what they
// are given is theirs only until they return. A nil function is not called.
type Listener struct {
	Visited func(*page.Record)                         // a URL is done: answered, or failed for good
	Retried func(rec *page.Record, wait time.Duration) // it will be tried again
	Skipped func(*page.Skip)                           // it was left out
	// a host asked to be left alone, as its Retry-After says; it is, for so long
	Slowed    func(host string, status int, ask, wait time.Duration)
	Abandoned func(host, why string) // a host is given up
	// the disk has less room than it should: nothing is fetched; told once a minute
	Paused  func(free uint64)
	Resumed func(free uint64)    // it has room again
	Idle    func(next time.Time) // nothing waits; something is to be visited again then
	// nothing is reached any more: the crawl waits. Told again every minute
	Offline func(since time.Time, why string)
	// it goes on: a host was reached, or it does not wait for those any longer
	Online func(after time.Duration, reached bool)
	// this machine has no socket for a connection; told once a minute at most
	NoSockets func(why string)
	// as many URLs are ranked as can be; told once
	Unranked func(why error)
	// nothing was answered for so long though URLs wait: why, and what to do; told once
	Stalled   func(after time.Duration, why, do string)
	Recovered func(after time.Duration) // it was answered again
}

// Tee returns a listener that calls two, in order. All its functions can be called.
func Tee(a, b Listener) Listener {
	return Listener{
		Visited:   both(a.Visited, b.Visited),
		Retried:   both2(a.Retried, b.Retried),
		Skipped:   both(a.Skipped, b.Skipped),
		Abandoned: both2(a.Abandoned, b.Abandoned),
		Paused:    both(a.Paused, b.Paused),
		Resumed:   both(a.Resumed, b.Resumed),
		Idle:      both(a.Idle, b.Idle),
		Offline:   both2(a.Offline, b.Offline),
		Online:    both2(a.Online, b.Online),
		NoSockets: both(a.NoSockets, b.NoSockets),
		Unranked:  both(a.Unranked, b.Unranked),
		Recovered: both(a.Recovered, b.Recovered),
		Slowed: func(host string, status int, ask, wait time.Duration) {
			for _, f := range [...]func(string, int, time.Duration, time.Duration){a.Slowed, b.Slowed} {
				if f != nil {
					f(host, status, ask, wait)
				}
			}
		},
		Stalled: func(after time.Duration, why, do string) {
			for _, f := range [...]func(time.Duration, string, string){a.Stalled, b.Stalled} {
				if f != nil {
					f(after, why, do)
				}
			}
		},
	}
}

func both[A any](f, g func(A)) func(A) {
	return func(a A) {
		if f != nil {
			f(a)
		}
		if g != nil {
			g(a)
		}
	}
}

func both2[A, B any](f, g func(A, B)) func(A, B) {
	return func(a A, b B) {
		if f != nil {
			f(a, b)
		}
		if g != nil {
			g(a, b)
		}
	}
}
