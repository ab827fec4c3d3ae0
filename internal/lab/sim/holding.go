package sim

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"kumo/internal/cluster/member"
)

// An entry is one line of a node's journal: what the node has learnt or done, as far as it outlives the process.
type entry struct {
	kind          byte
	page          url   // done
	links         []url // that were taken in: they are the node's own
	out           []outboxLink
	acked         []uint64 // numbers of the outbox
	transfer      member.Transfer
	seq           uint64
	last          bool
	data          []byte
	hosts         []int32           // forgotten
	handedOver    []uint64          // pages of these that were handed over: what judges them remembers, and not the disk
	sentTransfers []member.Transfer // that are done with
	epoch         uint64            // settled
}

// The kinds of entries.
const (
	entryJoined    = 'j'
	entryDone      = 'd' // a page, with its links
	entryLinks     = 't' // from another node, or seeds
	entryAcked     = 'k' // others have taken links of the outbox
	entryChunk     = 'h'
	entryDrop      = 'x'
	entryForget    = 'f'
	entryFinalized = 'e'
)

// A sent is a link in the outbox.
type outboxLink struct {
	number uint64
	url    url
}

// A holding is what a node has of the crawl: the sum of its journal's entries.
type nodeState struct {
	web           *web
	hosts         map[int32]*heldHost
	seen          map[int32]uint64 // pages known, also of hosts that went elsewhere
	out           map[uint64]url
	lastNumber    uint64                      // the last of out
	received      []member.Transfer           // that came whole, since the last settled epoch
	sentTransfers []member.Transfer           // that went whole
	incoming      map[member.Transfer][]int32 // hosts of transfers that are not whole, but for those that were held before
	transferHosts map[member.Transfer][]int32 // all of them, and those of transfers that came whole since the last settled epoch
	joined        bool
}

// A hold is one host that is held.
type heldHost struct {
	host        int32
	waiting     uint64 // pages
	nextRequest moment // of the next request
	visiting    bool
	scheduled   bool // it has its place in the process's order of requests
}

// replay is what a journal's entries sum up to. Hosts owe their full delay.
func replay(w *web, entries []*entry, now moment) *nodeState {
	s := &nodeState{web: w, hosts: map[int32]*heldHost{}, seen: map[int32]uint64{}, out: map[uint64]url{},
		incoming: map[member.Transfer][]int32{}, transferHosts: map[member.Transfer][]int32{}}
	for _, e := range entries {
		s.apply(e, now)
	}
	for _, h := range s.hosts {
		h.nextRequest = now + w.hosts[h.host].delay
	}
	return s
}

// apply adds an entry. It is the one place where a holding changes, so that a process that begins anew has what the
// last one had.
func (s *nodeState) apply(e *entry, now moment) {
	switch e.kind {
	case entryJoined:
		s.joined = true
	case entryDone:
		if h := s.hosts[e.page.host()]; h != nil {
			h.waiting &^= e.page.bit()
		}
		s.addLinks(e.links)
	case entryLinks:
		s.addLinks(e.links)
	case entryAcked:
		for _, n := range e.acked {
			delete(s.out, n)
		}
	case entryChunk:
		s.addChunk(e, now)
	case entryDrop:
		s.drop(e.transfer)
	case entryForget:
		for _, h := range e.hosts {
			delete(s.hosts, h)
		}
		s.sentTransfers = append(s.sentTransfers, e.sentTransfers...)
	case entryFinalized:
		settled := func(t member.Transfer) bool { return t.Epoch <= e.epoch }
		s.received, s.sentTransfers = slices.DeleteFunc(s.received, settled), slices.DeleteFunc(s.sentTransfers, settled)
		maps.DeleteFunc(s.transferHosts, func(t member.Transfer, _ []int32) bool { return settled(t) && !s.hasBegun(t) })
	}
	for _, o := range e.out {
		s.out[o.number] = o.url
		s.lastNumber = max(s.lastNumber, o.number)
	}
}

// offer takes URLs in that are not known.
func (s *nodeState) addLinks(links []url) {
	for _, u := range links {
		h := u.host()
		if s.seen[h]&u.bit() != 0 {
			continue
		}
		s.seen[h] |= u.bit()
		s.host(h).waiting |= u.bit()
	}
}

func (s *nodeState) host(n int32) *heldHost {
	h := s.hosts[n]
	if h == nil {
		h = &heldHost{host: n}
		s.hosts[n] = h
	}
	return h
}

// take applies a chunk of hosts that come from another node: what waits is taken without asking what is known.
func (s *nodeState) addChunk(e *entry, now moment) {
	for _, it := range parseChunk(e.data) {
		if it.isQueue {
			if !s.isPermanent(it.host) {
				s.incoming[e.transfer] = append(s.incoming[e.transfer], it.host)
			}
			h := s.host(it.host)
			h.waiting |= it.pages
			h.nextRequest = max(h.nextRequest, now+it.wait)
			s.transferHosts[e.transfer] = append(s.transferHosts[e.transfer], it.host)
		}
		s.seen[it.host] |= it.pages
	}
	if !s.hasBegun(e.transfer) {
		s.incoming[e.transfer] = nil
	}
	if e.last { // what another transfer brings of its hosts is kept from now on
		for t, hosts := range s.incoming {
			s.incoming[t] = slices.DeleteFunc(hosts, func(h int32) bool {
				return t != e.transfer && slices.Contains(s.transferHosts[e.transfer], h)
			})
		}
		s.received = append(s.received, e.transfer)
		delete(s.incoming, e.transfer)
	}
}

func (s *nodeState) hasBegun(t member.Transfer) bool {
	_, begun := s.incoming[t]
	return begun
}

// gone are the hosts held that are to be forgotten.
func (s *nodeState) departed(is member.Moved) (hosts []int32) {
	if is == nil {
		return nil
	}
	came := map[int32]uint64{}
	for t, all := range s.transferHosts {
		for _, h := range all {
			came[h] = max(came[h], t.Epoch)
		}
	}
	for _, h := range s.sortedHosts() {
		if is(s.web.hosts[h].name, came[h]) {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// isPermanent reports whether a host is held whatever becomes of the transfers under way.
func (s *nodeState) isPermanent(n int32) bool {
	for _, hosts := range s.incoming {
		if slices.Contains(hosts, n) {
			return false
		}
	}
	return s.hosts[n] != nil
}

// hostNames are the names of the hosts of a transfer of which this is the last chunk.
func (s *nodeState) hostNames(t member.Transfer, data []byte) (names []string) {
	hosts := slices.Clone(s.transferHosts[t])
	for _, it := range parseChunk(data) {
		if it.isQueue {
			hosts = append(hosts, it.host)
		}
	}
	slices.Sort(hosts)
	for _, h := range slices.Compact(hosts) {
		names = append(names, s.web.hosts[h].name)
	}
	return names
}

func (s *nodeState) drop(t member.Transfer) {
	delete(s.transferHosts, t)
	hosts := s.incoming[t]
	delete(s.incoming, t)
	for _, h := range hosts {
		if !slices.ContainsFunc(slices.Collect(maps.Values(s.incoming)),
			func(others []int32) bool { return slices.Contains(others, h) }) {
			delete(s.hosts, h)
		}
	}
}

// sortedHosts gives the hosts held, in the order of their numbers.
func (s *nodeState) sortedHosts() []int32 { return slices.Sorted(maps.Keys(s.hosts)) }

func (s *nodeState) outbox() (out []outboxLink) {
	for _, n := range slices.Sorted(maps.Keys(s.out)) {
		out = append(out, outboxLink{n, s.out[n]})
	}
	return out
}

// An item is what a chunk says of a host: that it comes, with what waits and the time it owes, or what of it is known.
type chunkItem struct {
	isQueue bool
	host    int32
	wait    time.Duration
	pages   uint64
}

func (it chunkItem) append(b []byte) []byte {
	kind := byte('K')
	if it.isQueue {
		kind = 'W'
	}
	b = append(b, kind)
	b = binary.AppendUvarint(b, uint64(it.host))
	b = binary.AppendUvarint(b, uint64(it.wait))
	return binary.AppendUvarint(b, it.pages)
}

// parseChunk reads the items of a chunk. Chunks come whole or not at all.
func parseChunk(b []byte) []chunkItem {
	var items []chunkItem
	for len(b) > 0 {
		it := chunkItem{isQueue: b[0] == 'W'}
		b = b[1:]
		var v [3]uint64
		for i := range v {
			n := 0
			v[i], n = binary.Uvarint(b)
			b = b[n:]
		}
		it.host, it.wait, it.pages = int32(v[0]), time.Duration(v[1]), v[2]
		items = append(items, it)
	}
	return items
}

// unfinished are the transfers of which only a part came, in order.
func (s *nodeState) unfinished() []member.Transfer {
	return slices.SortedFunc(maps.Keys(s.incoming), func(a, b member.Transfer) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Attempt, b.Attempt))
	})
}
