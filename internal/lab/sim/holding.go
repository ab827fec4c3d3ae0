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
	kind     byte
	page     url   // done
	links    []url // that were taken in: they are the node's own
	out      []sent
	gone     []uint64 // numbers of the outbox
	transfer member.Transfer
	seq      uint64
	last     bool
	data     []byte
	hosts    []int32           // forgotten
	handed   []uint64          // pages of these that were handed over: what judges them remembers, and not the disk
	whole    []member.Transfer // that are done with
	epoch    uint64            // settled
}

// The kinds of entries.
const (
	entryEnter   = 'j'
	entryDone    = 'd' // a page, with its links
	entryLinks   = 't' // from another node, or seeds
	entryGone    = 'k' // others have taken links of the outbox
	entryChunk   = 'h'
	entryDrop    = 'x'
	entryForget  = 'f'
	entrySettled = 'e'
)

// A sent is a link in the outbox.
type sent struct {
	number uint64
	url    url
}

// A holding is what a node has of the crawl: the sum of its journal's entries.
type holding struct {
	web     *web
	hosts   map[int32]*hold
	seen    map[int32]uint64 // pages known, also of hosts that went elsewhere
	out     map[uint64]url
	number  uint64                      // the last of out
	arrived []member.Transfer           // that came whole, since the last settled epoch
	forgot  []member.Transfer           // that went whole
	coming  map[member.Transfer][]int32 // hosts of transfers that are not whole, but for those that were held before
	came    map[member.Transfer][]int32 // all of them, and those of transfers that came whole since the last settled epoch
	joined  bool
}

// A hold is one host that is held.
type hold struct {
	host     int32
	waiting  uint64 // pages
	due      moment // of the next request
	visiting bool
	armed    bool // it has its place in the process's order of requests
}

// replay is what a journal's entries sum up to. Hosts owe their full delay.
func replay(w *web, entries []*entry, now moment) *holding {
	s := &holding{web: w, hosts: map[int32]*hold{}, seen: map[int32]uint64{}, out: map[uint64]url{},
		coming: map[member.Transfer][]int32{}, came: map[member.Transfer][]int32{}}
	for _, e := range entries {
		s.apply(e, now)
	}
	for _, h := range s.hosts {
		h.due = now + w.hosts[h.host].delay
	}
	return s
}

// apply adds an entry. It is the one place where a holding changes, so that a process that begins anew has what the
// last one had.
func (s *holding) apply(e *entry, now moment) {
	switch e.kind {
	case entryEnter:
		s.joined = true
	case entryDone:
		if h := s.hosts[e.page.host()]; h != nil {
			h.waiting &^= e.page.bit()
		}
		s.offer(e.links)
	case entryLinks:
		s.offer(e.links)
	case entryGone:
		for _, n := range e.gone {
			delete(s.out, n)
		}
	case entryChunk:
		s.take(e, now)
	case entryDrop:
		s.drop(e.transfer)
	case entryForget:
		for _, h := range e.hosts {
			delete(s.hosts, h)
		}
		s.forgot = append(s.forgot, e.whole...)
	case entrySettled:
		settled := func(t member.Transfer) bool { return t.Epoch <= e.epoch }
		s.arrived, s.forgot = slices.DeleteFunc(s.arrived, settled), slices.DeleteFunc(s.forgot, settled)
		maps.DeleteFunc(s.came, func(t member.Transfer, _ []int32) bool { return settled(t) && !s.begun(t) })
	}
	for _, o := range e.out {
		s.out[o.number] = o.url
		s.number = max(s.number, o.number)
	}
}

// offer takes URLs in that are not known.
func (s *holding) offer(links []url) {
	for _, u := range links {
		h := u.host()
		if s.seen[h]&u.bit() != 0 {
			continue
		}
		s.seen[h] |= u.bit()
		s.host(h).waiting |= u.bit()
	}
}

func (s *holding) host(n int32) *hold {
	h := s.hosts[n]
	if h == nil {
		h = &hold{host: n}
		s.hosts[n] = h
	}
	return h
}

// take applies a chunk of hosts that come from another node: what waits is taken without asking what is known.
func (s *holding) take(e *entry, now moment) {
	for _, it := range parseChunk(e.data) {
		if it.whole {
			if !s.kept(it.host) {
				s.coming[e.transfer] = append(s.coming[e.transfer], it.host)
			}
			h := s.host(it.host)
			h.waiting |= it.pages
			h.due = max(h.due, now+it.owes)
			s.came[e.transfer] = append(s.came[e.transfer], it.host)
		}
		s.seen[it.host] |= it.pages
	}
	if !s.begun(e.transfer) {
		s.coming[e.transfer] = nil
	}
	if e.last { // what another transfer brings of its hosts is kept from now on
		for t, hosts := range s.coming {
			s.coming[t] = slices.DeleteFunc(hosts, func(h int32) bool {
				return t != e.transfer && slices.Contains(s.came[e.transfer], h)
			})
		}
		s.arrived = append(s.arrived, e.transfer)
		delete(s.coming, e.transfer)
	}
}

func (s *holding) begun(t member.Transfer) bool {
	_, begun := s.coming[t]
	return begun
}

// gone are the hosts held that are to be forgotten.
func (s *holding) gone(is member.Moved) (hosts []int32) {
	if is == nil {
		return nil
	}
	came := map[int32]uint64{}
	for t, all := range s.came {
		for _, h := range all {
			came[h] = max(came[h], t.Epoch)
		}
	}
	for _, h := range s.order() {
		if is(s.web.hosts[h].name, came[h]) {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// kept reports whether a host is held whatever becomes of the transfers under way.
func (s *holding) kept(n int32) bool {
	for _, hosts := range s.coming {
		if slices.Contains(hosts, n) {
			return false
		}
	}
	return s.hosts[n] != nil
}

// known are the names of the hosts of a transfer of which this is the last chunk.
func (s *holding) known(t member.Transfer, data []byte) (names []string) {
	hosts := slices.Clone(s.came[t])
	for _, it := range parseChunk(data) {
		if it.whole {
			hosts = append(hosts, it.host)
		}
	}
	slices.Sort(hosts)
	for _, h := range slices.Compact(hosts) {
		names = append(names, s.web.hosts[h].name)
	}
	return names
}

func (s *holding) drop(t member.Transfer) {
	delete(s.came, t)
	hosts := s.coming[t]
	delete(s.coming, t)
	for _, h := range hosts {
		if !slices.ContainsFunc(slices.Collect(maps.Values(s.coming)),
			func(others []int32) bool { return slices.Contains(others, h) }) {
			delete(s.hosts, h)
		}
	}
}

// order gives the hosts held, in the order of their numbers.
func (s *holding) order() []int32 { return slices.Sorted(maps.Keys(s.hosts)) }

func (s *holding) outbox() (out []sent) {
	for _, n := range slices.Sorted(maps.Keys(s.out)) {
		out = append(out, sent{n, s.out[n]})
	}
	return out
}

// An item is what a chunk says of a host: that it comes, with what waits and the time it owes, or what of it is known.
type item struct {
	whole bool
	host  int32
	owes  time.Duration
	pages uint64
}

func (it item) append(b []byte) []byte {
	kind := byte('K')
	if it.whole {
		kind = 'W'
	}
	b = append(b, kind)
	b = binary.AppendUvarint(b, uint64(it.host))
	b = binary.AppendUvarint(b, uint64(it.owes))
	return binary.AppendUvarint(b, it.pages)
}

// parseChunk reads the items of a chunk. Chunks come whole or not at all.
func parseChunk(b []byte) []item {
	var items []item
	for len(b) > 0 {
		it := item{whole: b[0] == 'W'}
		b = b[1:]
		var v [3]uint64
		for i := range v {
			n := 0
			v[i], n = binary.Uvarint(b)
			b = b[n:]
		}
		it.host, it.owes, it.pages = int32(v[0]), time.Duration(v[1]), v[2]
		items = append(items, it)
	}
	return items
}

// unfinished are the transfers of which only a part came, in order.
func (s *holding) unfinished() []member.Transfer {
	return slices.SortedFunc(maps.Keys(s.coming), func(a, b member.Transfer) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Attempt, b.Attempt))
	})
}
