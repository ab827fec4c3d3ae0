package sim

import (
	"fmt"
	"math/bits"
	"time"
)

// A score is what the web's hosts see of the crawl, over all nodes, and what they may see.
type requestChecker struct {
	w              *world
	coverage       coverage
	last           []*visit  // whose request was the last, by host
	requests       [][]uint8 // by host and page
	allowedRepeats [][]uint8 // how often a page may be asked for again, because it is forgotten that it was done
	count          int       // requests
	duplicates     int
	slips          int
	longestStall   time.Duration // the longest
}

// A demand is which pages of a host are known to exist and were fetched, over all nodes.
type hostCoverage struct {
	linked       uint64 // pages that have been linked to
	fetched      uint64
	pendingSince moment // when there was something to do
}

func (d *hostCoverage) addLink(u url, now moment) {
	if d.linked |= u.bit(); d.linked&^d.fetched == u.bit() {
		d.pendingSince = now
	}
}

// fetch adds a request for a page, and returns for how long the host could have been asked and was not. The host may
// be asked from a moment on, by its delay.
func (d *hostCoverage) addFetch(u url, now, may moment) (stall time.Duration) {
	stall = now - max(d.pendingSince, may)
	if d.fetched |= u.bit(); d.fetched&d.linked == d.linked {
		d.pendingSince = forever
	}
	return stall
}

// coverage are those of all hosts.
type coverage []hostCoverage

func (d coverage) addLinks(links []url, now moment) {
	for _, u := range links {
		d[u.host()].addLink(u, now)
	}
}

// missing counts pages that can be reached and were not fetched, and names one.
func (d coverage) missing(w *web) (n int, one url) {
	for h, reach := range w.reachable {
		if m := reach &^ d[h].fetched; m != 0 {
			n += bits.OnesCount64(m)
			one = at(int32(h), lowest(m))
		}
	}
	return n, one
}

func newRequestChecker(w *world) *requestChecker {
	s := &requestChecker{w: w, coverage: make(coverage, len(w.web.hosts)), last: make([]*visit, len(w.web.hosts))}
	for _, h := range w.web.hosts {
		both := make([]uint8, 2*h.pages)
		s.requests, s.allowedRepeats = append(s.requests, both[:h.pages]), append(s.allowedRepeats, both[h.pages:])
	}
	return s
}

// excuse allows that a page is fetched once more.
func (s *requestChecker) allowRepeat(u url) { s.allowedRepeats[u.host()][u&63]++ }

func (s *requestChecker) addRequest(v *visit) {
	w, n := s.w, v.page.host()
	last, now := s.last[n], w.k.now
	v.slipped = v.p.wasPaused(v.leaseChecked, now)
	w.logHost(n, "%s asks for %s", v.p.node, w.web.name(v.page))
	s.checkDelay(v, last)
	s.checkLease(v)
	may := moment(0)
	if last != nil {
		may = last.ends + v.site().delay
	}
	s.longestStall = max(s.longestStall, s.coverage[n].addFetch(v.page, now, may))
	s.last[n] = v
	s.count++
	if s.requests[n][v.page&63]++; s.requests[n][v.page&63] > 1 {
		s.duplicates++
	}
}

// checkDelay holds a request to the host's delay after the last one.
func (s *requestChecker) checkDelay(v, last *visit) {
	now := s.w.k.now
	if last == nil || now >= last.ends+v.site().delay || s.w.cfg.CountOnly {
		return
	}
	last.slipped = last.slipped || last.p.wasPaused(last.leaseChecked, last.ends)
	if v.p != last.p && (v.slipped || last.slipped) {
		s.countSlip(v, last)
		return
	}
	how := "is still under way"
	if ago := now - last.ends; ago >= 0 {
		how = fmt.Sprintf("ended %v ago", ago)
	}
	s.w.violateHost(v.page.host(), "%s asks %s, where a request of %s %s: the delay is %v", v.p.node, v.site().name,
		last.p.node, how, v.site().delay)
}

// countSlip counts a request that is due to a process that stood still: one a worker after each such time, at most.
func (s *requestChecker) countSlip(v, last *visit) {
	s.slips++
	p := v.p
	if !v.slipped {
		p = last.p
	}
	if p.slips++; p.slips > s.w.cfg.Workers {
		s.w.violateHost(v.page.host(), "%s slips %d times after it stood still, with %d workers", p.node, p.slips,
			s.w.cfg.Workers)
	}
}

// checkLease holds a node that cannot reach the registry to the end of the last lease it can have.
func (s *requestChecker) checkLease(v *visit) {
	m, t := v.p.m, s.w.cfg.Timing
	if over := s.w.k.now - m.cutSince; !v.slipped && over > t.TTL+t.TTL/50 {
		s.w.violateHost(v.page.host(), "%s asks %s though the registry is out of its reach for %v", v.p.node, v.site().name,
			over)
	}
}

// checkRepeats reports pages that were asked for more often than is explained by what was forgotten.
func (s *requestChecker) checkRepeats() {
	if s.w.cfg.CountOnly {
		return
	}
	for h, pages := range s.requests {
		for page, n := range pages {
			if excused := s.allowedRepeats[h][page]; n > 1+excused {
				s.w.violateHost(int32(h), "%s is asked for %d times, and forgotten only %d times", s.w.web.name(at(int32(h), page)),
					n, excused)
			}
		}
	}
}
