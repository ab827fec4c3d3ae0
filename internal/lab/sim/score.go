package sim

import (
	"fmt"
	"math/bits"
	"time"
)

// A score is what the web's hosts see of the crawl, over all nodes, and what they may see.
type score struct {
	w          *world
	sites      demands
	last       []*visit  // whose request was the last, by host
	requests   [][]uint8 // by host and page
	excused    [][]uint8 // how often a page may be asked for again, because it is forgotten that it was done
	count      int       // requests
	duplicates int
	slips      int
	stall      time.Duration // the longest
}

// A demand is which pages of a host are known to exist and were fetched, over all nodes.
type demand struct {
	linked  uint64 // pages that have been linked to
	fetched uint64
	since   moment // when there was something to do
}

func (d *demand) found(u url, now moment) {
	if d.linked |= u.bit(); d.linked&^d.fetched == u.bit() {
		d.since = now
	}
}

// fetch adds a request for a page, and returns for how long the host could have been asked and was not. The host may
// be asked from a moment on, by its delay.
func (d *demand) fetch(u url, now, may moment) (stall time.Duration) {
	stall = now - max(d.since, may)
	if d.fetched |= u.bit(); d.fetched&d.linked == d.linked {
		d.since = forever
	}
	return stall
}

// demands are those of all hosts.
type demands []demand

func (d demands) found(links []url, now moment) {
	for _, u := range links {
		d[u.host()].found(u, now)
	}
}

// missing counts pages that can be reached and were not fetched, and names one.
func (d demands) missing(w *web) (n int, one url) {
	for h, reach := range w.reach {
		if m := reach &^ d[h].fetched; m != 0 {
			n += bits.OnesCount64(m)
			one = at(int32(h), lowest(m))
		}
	}
	return n, one
}

func newScore(w *world) *score {
	s := &score{w: w, sites: make(demands, len(w.web.hosts)), last: make([]*visit, len(w.web.hosts))}
	for _, h := range w.web.hosts {
		both := make([]uint8, 2*h.pages)
		s.requests, s.excused = append(s.requests, both[:h.pages]), append(s.excused, both[h.pages:])
	}
	return s
}

// excuse allows that a page is fetched once more.
func (s *score) excuse(u url) { s.excused[u.host()][u&63]++ }

func (s *score) request(v *visit) {
	w, n := s.w, v.page.host()
	last, now := s.last[n], w.k.now
	v.slipped = v.p.slept(v.checked, now)
	w.tellOf(n, "%s asks for %s", v.p.node, w.web.name(v.page))
	s.polite(v, last)
	s.leased(v)
	may := moment(0)
	if last != nil {
		may = last.ends + v.site().delay
	}
	s.stall = max(s.stall, s.sites[n].fetch(v.page, now, may))
	s.last[n] = v
	s.count++
	if s.requests[n][v.page&63]++; s.requests[n][v.page&63] > 1 {
		s.duplicates++
	}
}

// polite holds a request to the host's delay after the last one.
func (s *score) polite(v, last *visit) {
	now := s.w.k.now
	if last == nil || now >= last.ends+v.site().delay || s.w.cfg.Rude {
		return
	}
	last.slipped = last.slipped || last.p.slept(last.checked, last.ends)
	if v.p != last.p && (v.slipped || last.slipped) {
		s.slip(v, last)
		return
	}
	how := "is still under way"
	if ago := now - last.ends; ago >= 0 {
		how = fmt.Sprintf("ended %v ago", ago)
	}
	s.w.violateOf(v.page.host(), "%s asks %s, where a request of %s %s: the delay is %v", v.p.node, v.site().name,
		last.p.node, how, v.site().delay)
}

// slip counts a request that is due to a process that stood still: one a worker after each such time, at most.
func (s *score) slip(v, last *visit) {
	s.slips++
	p := v.p
	if !v.slipped {
		p = last.p
	}
	if p.slips++; p.slips > s.w.cfg.Workers {
		s.w.violateOf(v.page.host(), "%s slips %d times after it stood still, with %d workers", p.node, p.slips,
			s.w.cfg.Workers)
	}
}

// leased holds a node that cannot reach the registry to the end of the last lease it can have.
func (s *score) leased(v *visit) {
	m, t := v.p.m, s.w.cfg.Timing
	if over := s.w.k.now - m.cutAt; !v.slipped && over > t.TTL+t.TTL/50 {
		s.w.violateOf(v.page.host(), "%s asks %s though the registry is out of its reach for %v", v.p.node, v.site().name,
			over)
	}
}

// repeated reports pages that were asked for more often than is explained by what was forgotten.
func (s *score) repeated() {
	if s.w.cfg.Rude {
		return
	}
	for h, pages := range s.requests {
		for page, n := range pages {
			if excused := s.excused[h][page]; n > 1+excused {
				s.w.violateOf(int32(h), "%s is asked for %d times, and forgotten only %d times", s.w.web.name(at(int32(h), page)),
					n, excused)
			}
		}
	}
}
