package crawl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"kumo/internal/entry"

	"kumo/internal/member"
)

// arrivals are the transfers to this node that are not settled: those under way, and those that came whole. A
// checkpoint's note has them, and the journal what came after it.
type arrivals struct {
	Coming []arrival         `json:",omitempty"`
	Whole  []member.Transfer `json:",omitempty"`
	Went   []member.Transfer `json:",omitempty"` // from here, whole, and their hosts are forgotten
}

// An arrival is a transfer under way.
type arrival struct {
	Transfer member.Transfer
	Next     uint64 // number of the chunk that comes next
	Hosts    []byte // names of those that came with it, each with its length before it; some more than once
	// Kept are names, sorted, of others that came with it and stay if it is dropped: this node had them, or another
	// transfer under way had brought them, when they came.
	Kept []string `json:",omitempty"`
}

// errOrder is a chunk that cannot be the next one.
var errOrder = errors.New("a chunk comes out of order")

func (a *arrivals) find(t member.Transfer) int {
	return slices.IndexFunc(a.Coming, func(c arrival) bool { return c.Transfer == t })
}

// expects reports whether a chunk is the next one of its transfer; if not, and there is no error, it was taken before.
func (a *arrivals) expects(t member.Transfer, seq uint64) (bool, error) {
	if slices.Contains(a.Whole, t) {
		return false, nil
	}
	next := uint64(0)
	if i := a.find(t); i >= 0 {
		next = a.Coming[i].Next
	} else if slices.ContainsFunc(a.Coming, func(c arrival) bool { return c.Transfer.From == t.From }) {
		return false, fmt.Errorf("%w: another transfer from %s is under way", errOrder, t.From)
	}
	if seq > next {
		return false, fmt.Errorf("%w: %d from %s, not %d", errOrder, seq, t.From, next)
	}
	return seq == next, nil
}

// keeps are the hosts of a transfer that stay if it is dropped, with some that are added.
func (a *arrivals) keeps(t member.Transfer, more []string) []string {
	i := a.find(t)
	if i < 0 {
		return more
	}
	if len(more) == 0 {
		return a.Coming[i].Kept
	}
	return union(a.Coming[i].Kept, more)
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

func isIn(sorted []string, host string) bool {
	if len(sorted) == 0 {
		return false
	}
	_, is := slices.BinarySearch(sorted, host)
	return is
}

// take notes that the next chunk of a transfer has come, and which hosts of the transfer are kept. If it is the last
// one, it returns all that came.
func (a *arrivals) take(t member.Transfer, p *decodedChunk, keeps []string, last bool) (whole *arrival) {
	i := a.find(t)
	if i < 0 {
		i = len(a.Coming)
		a.Coming = append(a.Coming, arrival{Transfer: t})
	}
	c := &a.Coming[i]
	c.Next++
	c.Kept = keeps
	c.add(p)
	if !last {
		return nil
	}
	w := *c
	a.Coming = slices.Delete(a.Coming, i, i+1)
	a.Whole = append(a.Whole, t)
	for i := range a.Coming { // what came is this node's now, whoever brought it first
		a.Coming[i].keep(w.Kept)
	}
	return &w
}

// add adds the names of hosts. What is there does not change, so that a checkpoint may have it as it is.
func (a *arrival) add(p *decodedChunk) {
	last := ""
	p.hosts(func(host string) {
		if host != last && !isIn(a.Kept, host) {
			a.Hosts = appendName(a.Hosts, host)
		}
		last = host
	})
}

func appendName(names []byte, name string) []byte {
	return append(binary.AppendUvarint(names, uint64(len(name))), name...)
}

// hosts calls f with the host of each group.
func (p *decodedChunk) hosts(f func(host string)) {
	for i := range p.waiting {
		f(p.waiting[i].host)
	}
	for i := range p.known {
		f(p.known[i].host)
	}
}

// keep keeps those of some hosts that came with a transfer if that is dropped.
func (a *arrival) keep(hosts []string) {
	if len(hosts) == 0 {
		return
	}
	var rest []byte
	var kept []string
	for host := range a.each {
		if isIn(hosts, host) {
			kept = append(kept, host)
		} else {
			rest = appendName(rest, host)
		}
	}
	if len(kept) > 0 {
		a.Hosts, a.Kept = rest, union(a.Kept, kept)
	}
}

// own takes upon a transfer those of some hosts that it keeps because another had brought them, and returns them: they
// go if it is dropped.
func (a *arrival) own(hosts []string) (owned []string) {
	var kept []string
	for _, host := range a.Kept {
		if isIn(hosts, host) {
			owned = append(owned, host)
			a.Hosts = appendName(a.Hosts, host)
		} else {
			kept = append(kept, host)
		}
	}
	if len(owned) > 0 {
		a.Kept = kept
	}
	return owned
}

// drop ends a transfer that did not come whole, and returns the hosts that go with it. Others that came with it go with
// transfers that have brought them, too.
func (a *arrivals) drop(t member.Transfer) (gone []string, passed map[member.Transfer][]string) {
	i := a.find(t)
	if i < 0 {
		return nil, nil
	}
	gone = a.Coming[i].names()
	a.Coming = slices.Delete(a.Coming, i, i+1)
	for i := range a.Coming {
		owned := a.Coming[i].own(gone)
		if len(owned) == 0 {
			continue
		}
		if passed == nil {
			passed = map[member.Transfer][]string{}
		}
		passed[a.Coming[i].Transfer] = owned
		gone = slices.DeleteFunc(gone, func(host string) bool { return isIn(owned, host) })
	}
	return gone, passed
}

// leaving are the hosts, sorted, that go if a transfer is dropped: those that came with it, and that no other under way
// has brought.
func (a *arrivals) leaving(t member.Transfer) []string {
	i := a.find(t)
	if i < 0 {
		return nil
	}
	return slices.DeleteFunc(a.Coming[i].names(), func(host string) bool {
		return slices.ContainsFunc(a.Coming, func(c arrival) bool { return c.Transfer != t && isIn(c.Kept, host) })
	})
}

// without are the transfers under way as if some hosts, sorted, had not come with them.
func (a *arrivals) without(hosts []string) []arrival {
	coming := slices.Clone(a.Coming)
	for i := range coming {
		var rest []byte
		for host := range a.Coming[i].each {
			if !isIn(hosts, host) {
				rest = appendName(rest, host)
			}
		}
		coming[i].Hosts = rest
	}
	return coming
}

// each yields the names of hosts that go if the transfer is dropped, some more than once.
func (a *arrival) each(yield func(host string) bool) {
	d := entry.NewDecoder(a.Hosts)
	for len(d.Rest) > 0 && !d.Bad && yield(d.String()) {
	}
}

// names are those hosts, sorted, each once.
func (a *arrival) names() []string {
	all := slices.Sorted(a.each)
	return slices.Compact(all)
}

// all are the hosts that came with the transfer, sorted, each once.
func (a *arrival) all() []string {
	if len(a.Kept) == 0 {
		return a.names()
	}
	return union(a.names(), a.Kept)
}

// settle forgets transfers that came or went whole, under epochs up to one.
func (a *arrivals) settle(epoch uint64) {
	done := func(t member.Transfer) bool { return t.Epoch <= epoch }
	a.Whole, a.Went = slices.DeleteFunc(a.Whole, done), slices.DeleteFunc(a.Went, done)
}

// copy is a copy that does not change with the original.
func (a *arrivals) copy() arrivals {
	return arrivals{Coming: slices.Clone(a.Coming), Whole: slices.Clone(a.Whole), Went: slices.Clone(a.Went)}
}

func (a *arrivals) partial() (all []member.Transfer) {
	for i := range a.Coming {
		all = append(all, a.Coming[i].Transfer)
	}
	return all
}

// hosts are those of transfers under way that are not held yet; nil if there are none.
func (a *arrivals) hosts() map[string]bool {
	var all map[string]bool
	for i := range a.Coming {
		for host := range a.Coming[i].each {
			if all == nil {
				all = map[string]bool{}
			}
			all[host] = true
		}
	}
	return all
}
