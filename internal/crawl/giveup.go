package crawl

import (
	"fmt"
	"hash/maphash"
	"strings"

	"kumo/internal/frontier"
	"kumo/internal/page"
	"kumo/internal/stats"
	"kumo/internal/weburl"
)

// How much in a row an origin may do before it is given up. It is the origin and not the host that is given up: where nothing
// answers at https, http may be well.
const (
	maxRefusals  = 3  // could not be connected to, or not by TLS; where it had answered, also for as long as Config.Patience
	maxSilences  = 10 // connected, but gave no answer: one URL, or a few, may be at fault
	maxThrottles = 10 // answered that it wants to be left alone
)

// What is kept by origin is bounded; forgetting costs this:
const (
	maxStandings = 1 << 14 // a few requests more, until an origin is given up
	maxWanted    = 1 << 15 // a robots.txt that is asked for twice
	maxListed    = 1 << 15 // sitemaps that are offered again, though seen knows them
)

// hash is a name as the maps of what was met lately have it.
func (e *Engine) hash(name string) uint64 { return maphash.String(e.salt, name) }

// A standing is what an origin did in a row.
type standing struct {
	refusals, silences, throttles uint16
	answered                      bool  // before
	since, last                   int64 // of the first event and the last, in Unix nanoseconds
}

func (e *Engine) standingOf(origin string) standing {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, _ := e.standings.Get(e.hash(origin))
	return s
}

// answered notes that an origin has answered. The engine's lock is held.
func (e *Engine) answered(origin string) {
	h := e.hash(origin)
	was, known := e.standings.Get(h)
	if fresh := (standing{answered: true}); !known || was != fresh {
		e.standings.Put(h, fresh)
	}
	if !was.answered {
		e.reach.Answered++
	}
	e.line.worked(e.cfg.Now(), origin, h)
}

// A Reach is how many origins, a scheme and a host each, a run has reached, and not.
type Reach struct {
	Answered int64
	GaveUp   int64 // given up
	Fell     int64 // of these, had answered before
}

// Reach is what this run has reached so far.
func (e *Engine) Reach() Reach {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.reach
}

// judgeOrigin counts how a visit went for its origin and says whether that is too much. What was under way at the last event is
// part of it.
func (e *Engine) judgeOrigin(origin string, v *frontier.Visit, f fate) (lost, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f.outcome == frontier.NoRequest {
		return lost{}, false
	}
	if f.outcome == frontier.Answered {
		e.answered(origin)
		return lost{}, false
	}
	s, _ := e.standings.Get(e.hash(origin))
	if v.Started.UnixNano() > s.last {
		s.count(f)
		s.last = e.cfg.Now().UnixNano()
		if s.since == 0 {
			s.since = s.last
		}
		e.standings.Put(e.hash(origin), s)
	}
	switch {
	case f.excused:
	case s.refusals >= maxRefusals, s.silences >= maxSilences:
		return lost{f.failure, f.detail}, true
	case s.throttles >= maxThrottles:
		return lost{page.Unreachable, "its host asked to be left alone too often"}, true
	}
	return lost{}, false
}

func (s *standing) count(f fate) {
	switch {
	case f.outcome == frontier.Throttled:
		s.throttles++
	case f.failure.OfHost():
		s.refusals++
	default:
		s.silences++
	}
}

// giveUp ends what waits at an origin: its URLs share the failure, and wait for another run. It may be called again for what has
// come back to the queue meanwhile.
func (e *Engine) giveUp(origin string, l lost) error {
	host := hostOf(origin)
	if e.setLost(origin, l) {
		e.listener.gaveUp(origin, fmt.Sprintf("%s: %s", l.failure, l.why))
	}
	e.forget(origin)
	all, err := e.takeAll(host, origin)
	if err != nil {
		return err
	}
	for _, it := range all {
		switch {
		case it.Robots == "":
			if err := e.forsake(host, it, l, ""); err != nil {
				return err
			}
		case it.Robots != origin: // another's rules were to be had here
			if err := e.giveUp(it.Robots, lostRules(l)); err != nil {
				return err
			}
		}
	}
	e.frontier.Unpark(host, origin)
	return nil
}

// takeAll takes what waits at an origin out of the frontier and onto the shelf, so that a checkpoint has it in one or the other.
func (e *Engine) takeAll(host, origin string) (items []frontier.Item, err error) {
	return e.takeMatching(host, func(it *frontier.Item) bool { return originOf(it.URL) == origin })
}

func (e *Engine) takeMatching(host string, match func(*frontier.Item) bool) (items []frontier.Item, err error) {
	err = e.committer.within(func() error {
		items = e.frontier.Take(host, match)
		for i := range items {
			it := &items[i]
			it.Told = it.Told || e.endTold(it.URL)
			if err := e.shelve(host, *it); err != nil {
				return err
			}
		}
		return nil
	})
	return items, err
}

// shelve keeps an item that waits for the next run.
func (e *Engine) shelve(host string, it frontier.Item) error {
	if it.Robots != "" {
		return nil
	}
	it.Told = true
	return e.shelf.put(host, &it)
}

// lostRules is why an origin is given up whose robots.txt cannot be had.
func lostRules(l lost) lost { return lost{l.failure, "robots.txt: " + l.why} }

// setLost notes that an origin is given up, and reports whether that is news.
func (e *Engine) setLost(origin string, l lost) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.lost.add(strings.Clone(origin), l) {
		return false
	}
	if l.failure != page.Private { // that is the crawl's own rule, and no host's doing
		e.reach.GaveUp++
	}
	if s, _ := e.standings.Get(e.hash(origin)); s.answered {
		e.reach.Fell++
	}
	e.standings.Drop(e.hash(origin))
	e.line.gone(e.hash(origin))
	e.anyLost.Store(true)
	return true
}

func hostOf(url string) string {
	u, err := weburl.Parse(url)
	if err != nil {
		return ""
	}
	return u.Host()
}

func originOf(url string) string {
	u, err := weburl.Parse(url)
	if err != nil {
		return ""
	}
	return u.Origin()
}

// isLost says whether an origin was given up, and why.
func (e *Engine) isLost(origin string) (lost, bool) {
	if !e.anyLost.Load() {
		return lost{}, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lost.of(origin)
}

// forsake records a URL as failed whose origin was given up; settles is the URL if its visit is under way, "" if it is on the shelf. For the journal it still waits: the next run tries it again.
func (e *Engine) forsake(host string, it frontier.Item, l lost, settles string) error {
	rec := &page.Record{URL: it.URL, Final: it.URL, From: it.From, Seed: it.Seed, Path: it.Path, Depth: int(it.Depth),
		Time: e.cfg.Now(), Tries: int(it.Tries), Failure: l.failure, Detail: l.why}
	var b batch
	if !it.Told {
		b.skips = []page.Skip{{URL: it.URL, Host: host, From: it.From, Depth: int(it.Depth), Time: rec.Time,
			Rule: ruleFailed, Why: string(l.failure) + ": " + l.why}}
	}
	b.entries.told(it.URL)
	b.settles = settles
	err := e.committer.within(func() error {
		if settles != "" { // as its visit ends: a checkpoint has one or the other
			if err := e.shelve(host, it); err != nil {
				return err
			}
		}
		return e.put(&b, rec, nil)
	})
	if err != nil {
		return err
	}
	e.tellSkips(&b)
	e.stats.Forsaken(stats.Visit{Host: host, Failure: string(l.failure)})
	e.listener.visited(rec)
	return nil
}

// wasTold reports whether an earlier run has said of a URL that its host could not be had.
func (e *Engine) wasTold(url string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.told[url]
}

// endTold is wasTold for a URL that leaves the frontier, or keeps it in mind itself.
func (e *Engine) endTold(url string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	told := e.told[url]
	delete(e.told, url)
	return told
}
