// Package outage tells an outage of the crawl's own line from hosts that are down.
//
// When hosts that have worked fail together, it is the crawl that is cut off: its router, its name server, its proxy.
// A Detector is a state machine that tells this from hosts that are down. It is told how visits end, and asks for
// checks: attempts to reach hosts that have worked lately, a few at a time. While it waits for them no host is visited,
// and nothing that fails is held against a host.
//
//	up      → doubted  when three hosts that had worked have failed in a row, and nothing has worked in between;
//	                   when a host is to be given up, and nothing has worked since it failed first; or when the
//	                   proxy cannot be reached
//	doubted → up       when a host is reached: the others are down by themselves, however many they are
//	doubted → down     when none is of all that worked lately, and no answer has come meanwhile; checks go on, at
//	                   growing intervals
//	down    → up       when one is reached
//	down    → the end  when it lasts too long: a few seconds where the proxy could never be reached, which is then told
//	                   as that and not as an outage. Where all that has worked belongs to one or two sites, these may just
//	                   be gone: then they are no longer believed to work, the crawl goes on, and they are judged
//	                   like any host
//
// It knows no clock and no network.
package outage

import (
	"slices"
	"strings"
	"time"

	"kumo/internal/page"
	"kumo/internal/weburl"
)

// A Detector tells an outage of the crawl's own line from hosts that are down; see the package comment.
type Detector struct {
	Wait time.Duration // how long to be cut off at most; 0: without end

	State   Phase
	Way     Way
	Own     bool      // the proxy cannot be reached
	suspect string    // an origin that failed: to be tried where nothing has worked yet
	Since   time.Time // when it began to be in doubt
	Why     string
	next    time.Time     // of the next check
	pause   time.Duration // between the last check and the next
	passed  time.Time     // when a doubt was last put to rest by a check

	ways   [ways]wayRecord
	hosts  []workedHost // that have worked lately
	ever   bool         // one has worked
	places map[uint64]int
	turn   int // whose it is to be checked
}

// A Phase is what is believed of the line.
type Phase uint8

// The phases.
const (
	Up Phase = iota
	Doubted
	Down
)

// A Way is what all hosts are reached by. One may be cut off while others are not.
type Way uint8

// The ways.
const (
	ByName Way = iota // name servers
	byTLS
	ByConnection
	ways
)

// WayOf is the way that a failure casts doubt on.
func WayOf(f page.Failure) (Way, bool) {
	switch f {
	case page.DNS:
		return ByName, true
	case page.TLS:
		return byTLS, true
	case page.Connect, page.Refused, page.Proxy, page.Reset, page.Timeout:
		return ByConnection, true
	}
	return 0, false
}

// A wayRecord is what is known of a way.
type wayRecord struct {
	worked  time.Time // last
	failed  time.Time // last
	failing []uint64  // hosts that had worked and have failed, each once, since it worked
	// hosts that had failed when the way was found to work: the next failure of each is its own, so that a page that
	// hangs ends, and does not raise the same doubt for ever
	cleared []uint64
}

type workedHost struct {
	origin string
	hash   uint64
	at     time.Time
}

// MaxWorked is how many hosts that have worked lately are kept in mind.
const MaxWorked = 64

const (
	enoughFail  = 3 // hosts fail together
	maxCleared  = 16
	enoughSites = 3 // do not all go at once
	checkHosts  = 3 // at a time, once the crawl is cut off; before that is said, all that have worked lately

	firstPause = time.Second // between checks; it grows by a half with each
	lastPause  = 30 * time.Second
	passTime   = 5 * time.Second // from a check that was passed to the next doubt

	siteWait  = 5 * time.Minute // for one or two sites that may be gone
	neverWait = 3 * time.Second // for a proxy through which nothing has come yet: it is mistyped, or just beginning
)

// An Event is what a change of state means for the crawl.
type Event uint8

// What a change of state may mean.
const (
	nothing   Event = iota
	CutOffNow       // say so
	StillOff        // and again, now and then
	BackAgain       // after being cut off
	Resigned        // one or two sites do not come back: go on without them
	TooLong         // end the run
	NoProxy         // end it: the proxy cannot be reached, and never could
	notCut          // a doubt was put to rest
)

// Worked is told of an answer.
func (o *Detector) Worked(now time.Time, origin string, hash uint64) {
	o.ever = true
	for i := range o.ways {
		if w := &o.ways[i]; len(w.cleared) > 0 {
			w.cleared = slices.DeleteFunc(w.cleared, func(h uint64) bool { return h == hash })
		}
	}
	o.ways[ByConnection].worked = now
	if isSecure(origin) {
		o.ways[byTLS].worked = now
	}
	if i, known := o.places[hash]; known {
		o.hosts[i].at = now
		return
	}
	if o.places == nil {
		o.places = make(map[uint64]int, MaxWorked)
	}
	h := workedHost{strings.Clone(origin), hash, now}
	if len(o.hosts) < MaxWorked {
		o.places[hash] = len(o.hosts)
		o.hosts = append(o.hosts, h)
		return
	}
	oldest := 0
	for i := range o.hosts {
		if o.hosts[i].at.Before(o.hosts[oldest].at) {
			oldest = i
		}
	}
	delete(o.places, o.hosts[oldest].hash)
	o.hosts[oldest], o.places[hash] = h, oldest
}

// Found is told when a name was last found that had to be asked for.
func (o *Detector) Found(at time.Time) {
	if w := &o.ways[ByName]; at.After(w.worked) {
		w.worked = at
	}
}

// Gone is told of an origin that is given up: it proves nothing any more.
func (o *Detector) Gone(hash uint64) {
	i, known := o.places[hash]
	if !known {
		return
	}
	last := len(o.hosts) - 1
	o.hosts[i] = o.hosts[last]
	o.places[o.hosts[i].hash] = i
	delete(o.places, hash)
	o.hosts = o.hosts[:last]
}

// Failed is told that an origin could not be reached. own says that it is the proxy that could not, had whether the
// origin had worked. It reports whether the crawl may be cut off, so that this is nobody's fault.
func (o *Detector) Failed(now time.Time, origin string, hash uint64, by Way, own, had bool, why string) bool {
	if o.State != Up {
		return true
	}
	if own {
		return o.doubt(now, origin, by, true, why)
	}
	w := &o.ways[by]
	if w.worked.After(w.failed) {
		w.failing = w.failing[:0]
	}
	w.failed = now
	if i := slices.Index(w.cleared, hash); i >= 0 {
		w.cleared = slices.Delete(w.cleared, i, i+1)
		return false
	}
	if had && len(w.failing) < enoughFail && !slices.Contains(w.failing, hash) {
		w.failing = append(w.failing, hash)
	}
	return len(w.failing) >= min(enoughFail, o.candidates(by)) && o.doubt(now, origin, by, false, why)
}

// Proven reports whether a way has worked since a time, so that a host which has failed since then is itself at fault.
// Otherwise it is in doubt.
func (o *Detector) Proven(now, since time.Time, origin string, by Way, why string) bool {
	if o.State == Up && (!o.ways[by].worked.Before(since) || o.candidates(by) == 0) {
		return true
	}
	o.doubt(now, origin, by, false, why)
	return false
}

// doubt begins to doubt, unless that has just been done.
func (o *Detector) doubt(now time.Time, origin string, by Way, own bool, why string) bool {
	if o.State != Up {
		return true
	}
	if !own && o.candidates(by) == 0 || now.Sub(o.passed) < passTime {
		return false
	}
	o.State, o.Way, o.Own, o.suspect, o.Since, o.Why = Doubted, by, own, strings.Clone(origin), now, why
	o.next, o.pause = now, 0
	return true
}

// candidates is the number of hosts that could tell whether a way works.
func (o *Detector) candidates(by Way) (n int) {
	for i := range o.hosts {
		if tells(o.hosts[i].origin, by) {
			n++
		}
	}
	return n
}

// tells reports whether a host can tell whether a way works.
func tells(origin string, by Way) bool {
	switch by {
	case byTLS:
		return isSecure(origin)
	case ByName:
		return !weburl.NamesAddress(HostnameOf(origin))
	}
	return true
}

func isSecure(origin string) bool { return strings.HasPrefix(origin, "https:") }

// HostnameOf is an origin's hostname.
func HostnameOf(origin string) string {
	u, err := weburl.Parse(origin)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// Due is when the next check is, if there is to be one.
func (o *Detector) Due() (time.Time, bool) { return o.next, o.State != Up }

// Targets are the origins to be checked now, those first that are most likely to work: at first all of them, and then a
// few, others each time, as far as there are others.
func (o *Detector) Targets() (all []string) {
	if o.State == Doubted {
		all = o.likeliest()
	}
	if len(all) > 0 {
		return all
	}
	for i := range o.hosts {
		h := &o.hosts[(o.turn+i)%len(o.hosts)]
		if tells(h.origin, o.Way) {
			all = append(all, h.origin)
		}
		if len(all) == checkHosts {
			o.turn += i + 1
			break
		}
	}
	if len(all) == 0 {
		all = append(all, o.suspect)
	}
	return all
}

// likeliest are all origins that can tell: those that worked last come first, and last those that are failing. Where
// many hosts die at once, the others go on to work, so that a few dozen visits later hardly any of the first is dead.
func (o *Detector) likeliest() (all []string) {
	failing := o.ways[o.Way].failing
	hosts := slices.DeleteFunc(slices.Clone(o.hosts), func(h workedHost) bool { return !tells(h.origin, o.Way) })
	slices.SortFunc(hosts, func(a, b workedHost) int {
		switch x, y := slices.Contains(failing, a.hash), slices.Contains(failing, b.hash); {
		case x == y:
			return b.at.Compare(a.at)
		case x:
			return 1
		}
		return -1
	})
	for i := range hosts {
		all = append(all, hosts[i].origin)
	}
	return all
}

// Checked is told what a check has come to: whether a host was reached, and otherwise why not.
func (o *Detector) Checked(now time.Time, reached bool, why string) Event {
	was := o.State
	if reached {
		o.State = Up
		o.passed = now
		w := &o.ways[o.Way]
		w.cleared = append(w.cleared[max(0, len(w.cleared)+len(w.failing)-maxCleared):], w.failing...)
		w.worked, w.failing = now, w.failing[:0]
		if was == Down {
			w.cleared = w.cleared[:0]
			o.passed = time.Time{} // what comes after may be the next outage
			if o.never() {
				return notCut // as nothing was said
			}
			return BackAgain
		}
		return notCut
	}
	o.pause = min(max(o.pause+o.pause/2, firstPause), lastPause)
	o.next = now.Add(o.pause)
	o.Why = why
	switch {
	case was == Doubted && o.ways[o.Way].worked.After(o.Since): // an answer has come: who gave it is asked, too
		o.Since, o.next, o.pause = now, now, 0
		return nothing
	case was == Doubted:
		if o.State = Down; o.never() {
			return nothing // it is soon told as what it is
		}
		return CutOffNow
	}
	switch limit, last := o.limit(); {
	case limit == 0 || now.Sub(o.Since) < limit:
		if o.never() {
			return nothing
		}
		return StillOff
	case o.never():
		return NoProxy
	case last:
		return TooLong
	}
	o.State, o.hosts, o.places = Up, nil, nil
	return Resigned
}

// never reports whether it is the proxy that cannot be reached, and nothing has come through it.
func (o *Detector) never() bool { return o.Own && !o.ever }

// limit is how long to be cut off, 0 for any time, and whether the run ends then.
func (o *Detector) limit() (limit time.Duration, last bool) {
	few := time.Duration(0)
	switch {
	case o.never():
		few, last = neverWait, true
	case o.Own || o.sites() >= enoughSites:
		return o.Wait, true
	default:
		few = siteWait
	}
	if o.Wait > 0 && o.Wait < few {
		return o.Wait, last
	}
	return few, last
}

// sites is the number of registered domains among the hosts that have worked, as far as it matters.
func (o *Detector) sites() int {
	var met []string
	for i := range o.hosts {
		if d := weburl.Domain(HostnameOf(o.hosts[i].origin)); !slices.Contains(met, d) {
			if met = append(met, d); len(met) == enoughSites {
				break
			}
		}
	}
	return len(met)
}
