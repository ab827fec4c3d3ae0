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
	Slowed func(host string, status int, ask, wait time.Duration)
	GaveUp func(host, why string) // a host is given up
	// the disk has less room than it should: nothing is fetched; told once a minute
	Paused  func(free uint64)
	Resumed func(free uint64)    // it has room again
	Idle    func(next time.Time) // nothing waits; something is to be visited again then
	// nothing is reached any more: the crawl waits. Told again every minute
	CutOff func(since time.Time, why string)
	// it goes on: a host was reached, or it does not wait for those any longer
	Back func(after time.Duration, reached bool)
	// this machine has no socket for a connection; told once a minute at most
	Scarce func(why string)
	// as many URLs are ranked as can be; told once
	Unranked func(why error)
	// nothing was answered for so long though URLs wait: why, and what to do; told once
	Stalled func(after time.Duration, why, do string)
	Moving  func(after time.Duration) // it was answered again
}

// Tee returns a listener that tells all of them, in order.
func Tee(ls ...Listener) Listener {
	return Listener{
		Visited: func(r *page.Record) {
			for _, l := range ls {
				l.visited(r)
			}
		},
		Retried: func(r *page.Record, wait time.Duration) {
			for _, l := range ls {
				l.retried(r, wait)
			}
		},
		Skipped: func(s *page.Skip) {
			for _, l := range ls {
				l.skipped(s)
			}
		},
		Slowed: func(host string, status int, ask, wait time.Duration) {
			for _, l := range ls {
				l.slowed(host, status, ask, wait)
			}
		},
		GaveUp: func(host, why string) {
			for _, l := range ls {
				l.gaveUp(host, why)
			}
		},
		Paused: func(free uint64) {
			for _, l := range ls {
				l.paused(free)
			}
		},
		Resumed: func(free uint64) {
			for _, l := range ls {
				l.resumed(free)
			}
		},
		Idle: func(next time.Time) {
			for _, l := range ls {
				l.idle(next)
			}
		},
		CutOff: func(since time.Time, why string) {
			for _, l := range ls {
				l.cutOff(since, why)
			}
		},
		Back: func(after time.Duration, reached bool) {
			for _, l := range ls {
				l.back(after, reached)
			}
		},
		Scarce: func(why string) {
			for _, l := range ls {
				l.scarce(why)
			}
		},
		Unranked: func(why error) {
			for _, l := range ls {
				l.unranked(why)
			}
		},
		Stalled: func(after time.Duration, why, do string) {
			for _, l := range ls {
				if l.Stalled != nil {
					l.Stalled(after, why, do)
				}
			}
		},
		Moving: func(after time.Duration) {
			for _, l := range ls {
				if l.Moving != nil {
					l.Moving(after)
				}
			}
		},
	}
}

func (l Listener) visited(r *page.Record) {
	if l.Visited != nil {
		l.Visited(r)
	}
}

func (l Listener) retried(r *page.Record, wait time.Duration) {
	if l.Retried != nil {
		l.Retried(r, wait)
	}
}

func (l Listener) skipped(s *page.Skip) {
	if l.Skipped != nil {
		l.Skipped(s)
	}
}

func (l Listener) slowed(host string, status int, ask, wait time.Duration) {
	if l.Slowed != nil {
		l.Slowed(host, status, ask, wait)
	}
}

func (l Listener) gaveUp(host, why string) {
	if l.GaveUp != nil {
		l.GaveUp(host, why)
	}
}

func (l Listener) paused(free uint64) {
	if l.Paused != nil {
		l.Paused(free)
	}
}

func (l Listener) resumed(free uint64) {
	if l.Resumed != nil {
		l.Resumed(free)
	}
}

func (l Listener) cutOff(since time.Time, why string) {
	if l.CutOff != nil {
		l.CutOff(since, why)
	}
}

func (l Listener) back(after time.Duration, reached bool) {
	if l.Back != nil {
		l.Back(after, reached)
	}
}

func (l Listener) scarce(why string) {
	if l.Scarce != nil {
		l.Scarce(why)
	}
}

func (l Listener) unranked(why error) {
	if l.Unranked != nil {
		l.Unranked(why)
	}
}

func (l Listener) idle(next time.Time) {
	if l.Idle != nil {
		l.Idle(next)
	}
}
