package sim

import (
	"fmt"
	"math/bits"
	"time"
)

// A requestChecker checks the requests that hosts receive from all nodes.
type requestChecker struct {
	w              *world
	coverage       coverage
	last           []*visit  // latest request, by host
	requests       [][]uint8 // by host and page
	allowedRepeats [][]uint8 // repeated requests allowed, because done marks were lost
	count          int       // requests
	duplicates     int
	slips          int
	longestStall   time.Duration // the longest time for which a host that could have been fetched from was not
}

// A hostCoverage records which pages of a host were linked to and fetched, by any node.
type hostCoverage struct {
	linked       uint64 // pages
	fetched      uint64
	pendingSince moment // since when a page is pending; forever if none is
}

func (d *hostCoverage) addLink(u url, now moment) {
	if d.linked |= u.bit(); d.linked&^d.fetched == u.bit() {
		d.pendingSince = now
	}
}

// addFetch records a request for a page. It returns how long the host was available before it: from may on, by its
// delay, and with a page pending.
func (d *hostCoverage) addFetch(u url, now, may moment) (stall time.Duration) {
	stall = now - max(d.pendingSince, may)
	if d.fetched |= u.bit(); d.fetched&d.linked == d.linked {
		d.pendingSince = forever
	}
	return stall
}

// coverage covers all hosts.
type coverage []hostCoverage

func (d coverage) addLinks(links []url, now moment) {
	for _, u := range links {
		d[u.host()].addLink(u, now)
	}
}

// missing returns the number of reachable pages that were not fetched, and one of them.
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

// allowRepeat allows one more request for a page.
func (s *requestChecker) allowRepeat(u url) { s.allowedRepeats[u.host()][u&63]++ }

func (s *requestChecker) addRequest(v *visit) {
	w, n := s.w, v.page.host()
	last, now := s.last[n], w.k.now
	v.slipped = v.p.wasPaused(v.leaseChecked, now)
	w.logHost(n, "%s requests %s", v.p.node, w.web.name(v.page))
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

// checkDelay checks that the host's delay has passed since the last request.
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
	how := "is in flight"
	if ago := now - last.ends; ago >= 0 {
		how = fmt.Sprintf("ended %v ago", ago)
	}
	s.w.violateHost(v.page.host(), "%s requests from %s, where a request of %s %s: the delay is %v", v.p.node,
		v.site().name, last.p.node, how, v.site().delay)
}

// countSlip counts a violation that a paused process caused: at most one per worker and pause is allowed.
func (s *requestChecker) countSlip(v, last *visit) {
	s.slips++
	p := v.p
	if !v.slipped {
		p = last.p
	}
	if p.slips++; p.slips > s.w.cfg.Workers {
		s.w.violateHost(v.page.host(), "%s violates the delay %d times after a pause, with %d workers", p.node, p.slips,
			s.w.cfg.Workers)
	}
}

// checkLease checks that a node which cannot reach the registry stops when its last lease expires.
func (s *requestChecker) checkLease(v *visit) {
	m, t := v.p.m, s.w.cfg.Timing
	if over := s.w.k.now - m.cutSince; !v.slipped && over > t.TTL+t.TTL/50 {
		s.w.violateHost(v.page.host(), "%s requests from %s, though it has been unable to reach the registry for %v",
			v.p.node, v.site().name, over)
	}
}

// checkRepeats reports pages that were requested more often than lost done marks explain.
func (s *requestChecker) checkRepeats() {
	if s.w.cfg.CountOnly {
		return
	}
	for h, pages := range s.requests {
		for page, n := range pages {
			if excused := s.allowedRepeats[h][page]; n > 1+excused {
				s.w.violateHost(int32(h), "%s is requested %d times, but its done mark was lost only %d times",
					s.w.web.name(at(int32(h), page)), n, excused)
			}
		}
	}
}
