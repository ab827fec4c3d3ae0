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

// Hosts of a chunk that this node already holds are merged. The node looks up which of their URLs it holds, partly on
// disk, before it enters the ledger's gate. Inside the gate only memory is used. If the node holds more of the hosts by
// then, the look-up is repeated. The plan also records URLs that were put meanwhile.

// A mergePlan records how this node holds the URLs of a chunk, for the hosts that it already holds.
type mergePlan struct {
	kept []string // those hosts, sorted

	mu   sync.Mutex // guards urls
	urls map[string]held
}

type held uint8

const (
	heldPending  held = 1 << iota // among the first 10,000 of its host, or added since
	heldVisited                   // with any result
	heldAnswered                  // visited, and counts as a page
)

// planMerge looks up which of a chunk's URLs this node holds, for the kept hosts. Until the plan is withdrawn, it also
// records URLs as they are put. On a read error a URL counts as not held, because fetching twice is better than losing
// a URL.
func (r *Endpoint) planMerge(p *Chunk, kept []string) *mergePlan {
	m := &mergePlan{kept: kept}
	if len(kept) == 0 {
		return m
	}
	m.urls = p.urlsAt(kept)
	r.plan.Store(m) // before the look-up, so that nothing put meanwhile is missed
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
			if isIn(kept, l.Host) && l.Entries[k].Answered() {
				r.lookUp(m, l.Entries[k].URL)
			}
		}
	}
	return m
}

// urlsAt returns a chunk's pending URLs of some hosts, and those that returned a page at other nodes.
func (p *Chunk) urlsAt(hosts []string) map[string]held {
	urls := map[string]held{}
	for i := range p.Pending {
		if a := &p.Pending[i]; isIn(hosts, a.Host) {
			for k := range a.Items {
				urls[a.Items[k].URL] = 0
			}
		}
	}
	for i := range p.Known {
		if l := &p.Known[i]; isIn(hosts, l.Host) {
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

// heldBy returns how a URL with this metadata is held.
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

// record records how this node holds a URL, if the chunk contains it.
func (m *mergePlan) record(url string, h held) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if was, is := m.urls[url]; is {
		m.urls[url] = was | h
	}
}

// Committed records what a batch has put. Call it after the put, within the same hold of the ledger's gate.
func (r *Endpoint) Committed(found []entry.Candidate, done ...*entry.Done) {
	r.retainFoundHosts(found)
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

// retainFoundHosts keeps the hosts of incoming transfers at which URLs were found.
func (r *Endpoint) retainFoundHosts(found []entry.Candidate) {
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

// excluded returns the indexes in a chunk of the pending URLs that are not admitted. These are URLs of kept hosts that
// are already pending or visited here.
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

// newPages returns the number of pages of a host that other nodes have fetched and this one has not.
func (m *mergePlan) newPages(l *HostKnown) (n int64) {
	for i := range l.Entries {
		if v := &l.Entries[i]; v.Answered() && m.get(v.URL)&heldAnswered == 0 {
			n++
		}
	}
	return n
}

// keptHosts returns the hosts of a chunk, sorted, that stay if the transfer is dropped. This is decided when a host
// first arrives with the transfer: it is kept if this node holds it, even because of another incoming transfer.
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

// countDuplicates counts the pages of a host that both this node and others have fetched.
func (r *Endpoint) countDuplicates(l *HostKnown, m *mergePlan) {
	answered := int64(0)
	for i := range l.Entries {
		if l.Entries[i].Answered() {
			answered++
		}
	}
	r.duplicates.Add(answered - m.newPages(l))
}

// Duplicates returns how many pages this node had fetched when another node that had also fetched them handed their
// host over to it, since the start of the process.
func (r *Endpoint) Duplicates() int64 { return r.duplicates.Load() }

const maxMerge = 10_000 // items of a host's queue to examine

// Exclude removes pending URLs from a chunk by index.
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

// KnownURLs returns the URLs of items as known URLs for seen.
func KnownURLs(items []item.Item) []seen.URL {
	urls := make([]seen.URL, len(items))
	for i := range items {
		urls[i] = seen.URL{URL: items[i].URL, Depth: items[i].Depth, State: seen.Known}
	}
	return urls
}

// maxOf returns the longer delay and wait of two timings.
func (c HostTiming) maxOf(d HostTiming) HostTiming {
	return HostTiming{max(c.RequestedDelay, d.RequestedDelay), max(c.Wait, d.Wait)}
}

// Merge returns the timing for a host that is already held here, with the longer of the two requested delays.
func (c HostTiming) Merge(f *frontier.Frontier, host string) HostTiming {
	info, _ := f.Host(host)
	c.RequestedDelay = max(c.RequestedDelay, info.RequestedDelay)
	return c
}
