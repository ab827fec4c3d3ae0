package crawl

import (
	"slices"

	"kumo/internal/frontier"
	"kumo/internal/member"
	"kumo/internal/seen"
)

// keep decides, when a host comes with a transfer for the first time, whether it is kept if that is dropped: it is where this node has the
// host, be it from another transfer under way. It returns those of a chunk's hosts that are, sorted, and is called within the committer's gate.
func (e *Engine) keep(t member.Transfer, p *parcel) (kept []string) {
	came := e.peers.transfer.hostsOf(t, e.origins.hash)
	last := ""
	p.hosts(func(host string) {
		if host == last {
			return
		}
		last = host
		k := e.origins.hash(host)
		keeps, met := came[k]
		if !met {
			info, known := e.frontier.Host(host)
			keeps = known && !info.Away
			came[k] = keeps
		}
		if keeps {
			kept = append(kept, host)
		}
	})
	slices.Sort(kept)
	return slices.Compact(kept)
}

// nowKept says of hosts that came with transfers under way that they are kept from now on, or not any more.
func (h *handing) nowKept(hosts []string, keeps bool, hash func(string) uint64, all ...member.Transfer) {
	for _, t := range all {
		for _, host := range hosts {
			k := hash(host)
			if _, met := h.came[t][k]; met {
				h.came[t][k] = keeps
			}
		}
	}
}

// hostsOf are the hosts that have come with a transfer, which may have begun in an earlier life, and whether they are kept.
func (h *handing) hostsOf(t member.Transfer, hash func(string) uint64) map[uint64]bool {
	if all := h.came[t]; all != nil {
		return all
	}
	if h.came == nil {
		h.came = map[member.Transfer]map[uint64]bool{}
	}
	all := map[uint64]bool{}
	h.came[t] = all
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := h.arrivals.find(t); i >= 0 {
		for host := range h.arrivals.Coming[i].each {
			all[hash(host)] = false
		}
		for _, host := range h.arrivals.Coming[i].Kept {
			all[hash(host)] = true
		}
	}
	return all
}

// leftOut are those of a chunk's waiting URLs, by their place in it, that are not to be taken in: of hosts that are kept, those that were
// visited here, or wait here among the 10,000 that go first. What cannot be found out is taken in: rather twice than never.
func (e *Engine) leftOut(kept []string, p *parcel) (left []int) {
	if len(kept) == 0 {
		return nil
	}
	place := 0
	for i := range p.waiting {
		a := &p.waiting[i]
		if !isIn(kept, a.host) {
			place += len(a.items)
			continue
		}
		waits := map[string]bool{}
		queue, _ := e.frontier.Queue(a.host, maxMerge)
		for k := range queue {
			if queue[k].Robots == "" {
				waits[queue[k].URL] = true
			}
		}
		for k := range a.items {
			if it := &a.items[k]; waits[it.URL] || !it.Recrawl && e.wasVisited(it.URL) {
				left = append(left, place+k)
			}
		}
		place += len(a.items)
	}
	return left
}

const maxMerge = 10_000

func (e *Engine) wasVisited(url string) bool {
	entry, _, err := e.known.db.Get(url)
	return err == nil && !entry.Fetched.IsZero()
}

// leaveOut takes waiting URLs out of a chunk.
func (p *parcel) leaveOut(left []int) {
	place := 0
	for i := range p.waiting {
		a := &p.waiting[i]
		if len(left) == 0 {
			return
		}
		end := place + len(a.items)
		if left[0] < end {
			a.items = slices.DeleteFunc(a.items, func(frontier.Item) bool {
				out := len(left) > 0 && left[0] == place
				if out {
					left = left[1:]
				}
				place++
				return out
			})
		}
		place = end
	}
}

// asKnown are items as seen knows them.
func asKnown(items []frontier.Item) []seen.URL {
	urls := make([]seen.URL, len(items))
	for i := range items {
		urls[i] = seen.URL{URL: items[i].URL, Depth: items[i].Depth, State: seen.Known}
	}
	return urls
}

// beside is a clock that comes to a host which has one: who asks for more counts.
func (c clock) beside(f *frontier.Frontier, host string) clock {
	info, _ := f.Host(host)
	c.asked = max(c.asked, info.Asked)
	return c
}

// newPages is how many pages a host has given elsewhere and not here.
func (e *Engine) newPages(l *learnt) (n int64) {
	for i := range l.entries {
		if !answered(&l.entries[i]) {
			continue
		}
		if here, _, err := e.known.db.Get(l.entries[i].URL); err != nil || !answered(&here) {
			n++
		}
	}
	return n
}
