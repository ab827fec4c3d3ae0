package transfer

import (
	"slices"
	"sync"

	"kumo/internal/base/item"
	"kumo/internal/cluster/member"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/seen"
)

// A chunk's hosts that this node holds are merged. Which of their URLs it holds is looked up, partly on disk, before
// the ledger's gate is entered. Within it only memory is asked: whether more of the hosts are held by now, so that the
// look-up is repeated; what was put meanwhile, the plan was told.

// A mergePlan is what is known here of a chunk's URLs at hosts that this node holds.
type mergePlan struct {
	kept []string // those hosts, sorted

	mu   sync.Mutex // guards urls
	urls map[string]held
}

type held uint8

const (
	heldPending  held = 1 << iota // it is among the 10,000 of its host that go first, or has come since
	heldVisited                   // whatever that has brought
	heldAnswered                  // and counts as a page
)

// planMerge looks up what this node holds of a chunk's URLs at the hosts that are kept. Until the plan is withdrawn it
// is told what is put. What cannot be found out is not held: rather twice than never.
func (r *Endpoint) planMerge(p *Chunk, kept []string) *mergePlan {
	m := &mergePlan{kept: kept}
	if len(kept) == 0 {
		return m
	}
	counts := r.Quota != nil
	m.urls = p.urlsAt(kept, counts)
	r.plan.Store(m) // before it is looked up: what is put meanwhile is seen, or told
	last := ""
	for i := range p.Pending {
		a := &p.Pending[i]
		if !isIn(kept, a.Host) {
			continue
		}
		if a.Host != last {
			queue, _ := r.Frontier.Inspector().Queue(a.Host, maxMerge)
			for n := range queue {
				if queue[n].Robots == "" {
					m.record(queue[n].URL, heldPending)
				}
			}
			last = a.Host
		}
		for k := range a.Items {
			if it := &a.Items[k]; !it.Recrawl && !it.Refetch && m.get(it.URL)&heldPending == 0 {
				r.lookUp(m, it.URL)
			}
		}
	}
	for i := range p.Known {
		l := &p.Known[i]
		for k := range l.Entries {
			if counts && isIn(kept, l.Host) && l.Entries[k].Answered() {
				r.lookUp(m, l.Entries[k].URL)
			}
		}
	}
	return m
}

// urlsAt are a chunk's URLs that wait at some hosts; with pages, those too that gave a page elsewhere.
func (p *Chunk) urlsAt(hosts []string, pages bool) map[string]held {
	urls := map[string]held{}
	for i := range p.Pending {
		if a := &p.Pending[i]; isIn(hosts, a.Host) {
			for k := range a.Items {
				urls[a.Items[k].URL] = 0
			}
		}
	}
	for i := range p.Known {
		if l := &p.Known[i]; pages && isIn(hosts, l.Host) {
			for k := range l.Entries {
				if l.Entries[k].Answered() {
					urls[l.Entries[k].URL] = 0
				}
			}
		}
	}
	return urls
}

func (r *Endpoint) lookUp(m *mergePlan, url string) {
	if entry, _, err := r.DB.Get(url); err == nil {
		m.record(url, heldBy(&entry.Meta))
	}
}

// heldBy is how a URL is held of which that much is known.
func heldBy(m *seen.Meta) (h held) {
	if m.Fetched.IsZero() {
		return 0
	}
	if m.Status > 0 {
		return heldVisited | heldAnswered
	}
	return heldVisited
}

func (m *mergePlan) get(url string) held {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.urls[url]
}

// record notes how this node holds a URL, if the chunk has it.
func (m *mergePlan) record(url string, h held) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if was, is := m.urls[url]; is {
		m.urls[url] = was | h
	}
}

// Committed is told what a batch has put: after it was put, and within the same hold of the ledger's gate.
func (r *Endpoint) Committed(found []entry.Candidate, done ...*entry.Done) {
	r.keepFoundHosts(found)
	m := r.plan.Load()
	if m == nil {
		return
	}
	for i := range found {
		m.record(found[i].Item.URL, heldPending)
	}
	for _, d := range done {
		m.record(d.URL, heldBy(&d.Meta))
	}
}

// keepFoundHosts keeps hosts of transfers under way at which something was found.
func (r *Endpoint) keepFoundHosts(found []entry.Candidate) {
	r.mu.Lock()
	var hosts []string
	for i := range found {
		if host := r.Frontier.Slices().Of(found[i].Item.URL); r.wouldBeDropped(host) {
			hosts = append(hosts, host)
		}
	}
	if len(hosts) > 0 {
		slices.Sort(hosts)
		hosts = slices.Compact(hosts)
		r.Unsettled.Keep(hosts)
		r.setKept(hosts, true, r.Unsettled.Partial()...)
		r.keptVersion++
	}
	r.mu.Unlock()
	for _, host := range hosts {
		r.Frontier.Unpark(host, ParkedFor)
	}
}

// excluded are those of a chunk's waiting URLs, by their place in it, that are not to be taken in: of hosts that are
// kept, those that wait here or were visited.
func (m *mergePlan) excluded(p *Chunk) (left []int) {
	place := 0
	for i := range p.Pending {
		a := &p.Pending[i]
		if isIn(m.kept, a.Host) {
			for k := range a.Items {
				it := &a.Items[k]
				if h := m.get(it.URL); h&heldPending != 0 || h&heldVisited != 0 && !it.Recrawl && !it.Refetch {
					left = append(left, place+k)
				}
			}
		}
		place += len(a.Items)
	}
	return left
}

// newPages is how many pages a host has given elsewhere and not here.
func (m *mergePlan) newPages(l *HostKnown) (n int64) {
	for i := range l.Entries {
		if v := &l.Entries[i]; v.Answered() && m.get(v.URL)&heldAnswered == 0 {
			n++
		}
	}
	return n
}

// keptHosts are those of a chunk's hosts, sorted, that are kept if its transfer is dropped. That is decided when a host
// comes with it for the first time: it is where this node has the host, be it from another transfer under way.
func (r *Endpoint) keptHosts(t member.Transfer, p *Chunk) (kept []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	came := r.hostsOf(t)
	last := ""
	p.hosts(func(host string) {
		if host == last {
			return
		}
		last = host
		keeps, met := came[r.Hash(host)]
		if !met {
			info, known := r.Frontier.Host(host)
			keeps = known && !info.Away
		}
		if keeps {
			kept = append(kept, host)
		}
	})
	slices.Sort(kept)
	return slices.Compact(kept)
}

const maxMerge = 10_000 // of a host's queue that are looked at

// Exclude takes waiting URLs out of a chunk.
func (p *Chunk) Exclude(left []int) {
	place := 0
	for i := range p.Pending {
		a := &p.Pending[i]
		if len(left) == 0 {
			return
		}
		end := place + len(a.Items)
		if left[0] < end {
			a.Items = slices.DeleteFunc(a.Items, func(item.Item) bool {
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

// KnownURLs are items as seen knows them.
func KnownURLs(items []item.Item) []seen.URL {
	urls := make([]seen.URL, len(items))
	for i := range items {
		urls[i] = seen.URL{URL: items[i].URL, Depth: items[i].Depth, State: seen.Known}
	}
	return urls
}

// maxOf is what two clocks owe at the most.
func (c HostTiming) maxOf(d HostTiming) HostTiming {
	return HostTiming{max(c.RequestedDelay, d.RequestedDelay), max(c.Wait, d.Wait)}
}

// Merge is a clock that comes to a host which has one: who asks for more counts.
func (c HostTiming) Merge(f *frontier.Frontier, host string) HostTiming {
	info, _ := f.Host(host)
	c.RequestedDelay = max(c.RequestedDelay, info.RequestedDelay)
	return c
}
