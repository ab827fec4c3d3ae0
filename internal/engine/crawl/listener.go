package crawl

import (
	"time"

	"kumo/internal/base/page"
)

// A Listener receives events. Workers call its functions concurrently, so they must return quickly. Arguments are valid
// only until the call returns. A nil function is not called.
type Listener struct {
	Visited func(*page.Record)                         // a URL was answered, or has failed for good
	Retried func(rec *page.Record, wait time.Duration) // a URL will be retried after wait
	Skipped func(*page.Skip)                           // a URL was filtered
	// a host has asked for fewer requests (Retry-After: ask); it is left alone for wait
	Slowed    func(host string, status int, ask, wait time.Duration)
	Abandoned func(host, why string) // a host was abandoned
	// nothing is fetched, as the disk has too little space; repeated every minute
	Paused  func(free uint64)
	Resumed func(free uint64)    // there is enough space again
	Idle    func(next time.Time) // the queues are empty; the next recrawl is due then
	// the crawl waits, as no host is reachable; repeated every minute
	Offline func(since time.Time, why string)
	// the crawl continues: a host was reached, or it no longer waits for hosts
	Online func(after time.Duration, reached bool)
	// this machine has no socket for a connection; at most once a minute
	NoSockets func(why string)
	// no more URLs can be ranked; called once
	Unranked func(why error)
	// no answers for this time although URLs are pending: why, and what to do; called once
	Stalled   func(after time.Duration, why, do string)
	Recovered func(after time.Duration) // answers come again after Stalled
	// a page could not be rendered, and is used as it was received
	RenderFailed func(url string, why error)
	// the actions or the script on a rendered page did not end; the page is read nevertheless
	ActionFailed func(url string, why error)
	// a picture of a rendered page could not be taken
	ShotFailed func(url string, why error)
	// a document could not be read because its reader crashed or took too long; its record is stored nevertheless
	DocumentFailed func(url string, why error)
	// some pages of a host are no longer rendered, as that gained nothing
	RenderingStopped func(host, why string)
}

// Tee returns a listener that calls a and b, in this order. None of its functions is nil.
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

		RenderFailed:     both2(a.RenderFailed, b.RenderFailed),
		ActionFailed:     both2(a.ActionFailed, b.ActionFailed),
		ShotFailed:       both2(a.ShotFailed, b.ShotFailed),
		DocumentFailed:   both2(a.DocumentFailed, b.DocumentFailed),
		RenderingStopped: both2(a.RenderingStopped, b.RenderingStopped),
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
