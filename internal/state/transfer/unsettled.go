package transfer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"kumo/internal/cluster/member"
	"kumo/internal/state/entry"
)

// Unsettled are the transfers to this node that are not settled: those under way, and those that came whole. A
// checkpoint's note has them, and the journal what came after it.
type Unsettled struct {
	Coming []Incoming        `json:",omitempty"`
	Whole  []member.Transfer `json:",omitempty"`
	Came   []Incoming        `json:",omitempty"` // those of Whole that have brought hosts, with their names
	Went   []member.Transfer `json:",omitempty"` // from here, whole, and their hosts are forgotten
}

// An Incoming is a transfer that has begun to come.
type Incoming struct {
	Transfer member.Transfer
	Next     uint64 // number of the chunk that comes next
	Hosts    []byte // names of those that came with it, each with its length before it; some more than once
	// Kept are names, sorted, of others that came with it and stay if it is dropped: this node had them, or another
	// transfer under way had brought them, when they came.
	Kept []string `json:",omitempty"`
}

// ErrOrder is a chunk that cannot be the next one.
var ErrOrder = errors.New("a chunk comes out of order")

func (a *Unsettled) find(t member.Transfer) int {
	return slices.IndexFunc(a.Coming, func(c Incoming) bool { return c.Transfer == t })
}

// expects reports whether a chunk is the next one of its transfer; if not, and there is no error, it was taken before.
func (a *Unsettled) expects(t member.Transfer, seq uint64) (bool, error) {
	if slices.Contains(a.Whole, t) {
		return false, nil
	}
	next := uint64(0)
	if i := a.find(t); i >= 0 {
		next = a.Coming[i].Next
	} else if slices.ContainsFunc(a.Coming, func(c Incoming) bool { return c.Transfer.From == t.From }) {
		return false, fmt.Errorf("%w: another transfer from %s is under way", ErrOrder, t.From)
	}
	if seq > next {
		return false, fmt.Errorf("%w: %d from %s, not %d", ErrOrder, seq, t.From, next)
	}
	return seq == next, nil
}

// KeptHosts are the hosts of a transfer that stay if it is dropped, with some that are added.
func (a *Unsettled) KeptHosts(t member.Transfer, more []string) []string {
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
	_, is := slices.BinarySearch(sorted, host)
	return is
}

// Take notes that the next chunk of a transfer has come, and which hosts of the transfer are kept. If it is the last
// one, it returns all that came.
func (a *Unsettled) Add(t member.Transfer, p *Chunk, keeps []string, last bool) (whole *Incoming) {
	i := a.find(t)
	if i < 0 {
		i = len(a.Coming)
		a.Coming = append(a.Coming, Incoming{Transfer: t})
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
	if len(w.Hosts)+len(w.Kept) > 0 {
		a.Came = append(a.Came, w)
	}
	a.Keep(w.Kept) // what came is this node's now, whoever brought it first
	return &w
}

// add adds the names of hosts. What is there does not change, so that a checkpoint may have it as it is.
func (a *Incoming) add(p *Chunk) {
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

func (p *Chunk) hosts(f func(host string)) {
	for i := range p.Pending {
		f(p.Pending[i].Host)
	}
	for i := range p.Known {
		f(p.Known[i].Host)
	}
}

// keptHosts keeps those of some hosts that came with a transfer if that is dropped.
func (a *Incoming) keep(hosts []string) {
	if len(hosts) == 0 {
		return
	}
	if kept, rest := a.split(hosts); len(kept) > 0 {
		a.Hosts, a.Kept = rest, union(a.Kept, kept)
	}
}

// split is which of some hosts go if the transfer is dropped, and the names of the others that do.
func (a *Incoming) split(hosts []string) (in []string, rest []byte) {
	for host := range a.each {
		if isIn(hosts, host) {
			in = append(in, host)
		} else {
			rest = appendName(rest, host)
		}
	}
	return in, rest
}

// Keep keeps those of some hosts, sorted, that came with transfers under way, if these are dropped.
func (a *Unsettled) Keep(hosts []string) {
	for i := range a.Coming {
		a.Coming[i].keep(hosts)
	}
}

// notKept are those of some hosts that no transfer under way keeps.
func (a *Unsettled) notKept(hosts []string) []string {
	return slices.DeleteFunc(slices.Clone(hosts), a.isKept)
}

func (a *Unsettled) isKept(host string) bool {
	return slices.ContainsFunc(a.Coming, func(c Incoming) bool { return isIn(c.Kept, host) })
}

// takeOver takes upon a transfer those of some hosts that it keeps because another had brought them, and returns them: they
// go if it is dropped.
func (a *Incoming) takeOver(hosts []string) (owned []string) {
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

// Drop ends a transfer that did not come whole, and returns the hosts that go with it. Others that came with it go with
// transfers that have brought them, too.
func (a *Unsettled) Drop(t member.Transfer) (gone []string, passed map[member.Transfer][]string) {
	i := a.find(t)
	if i < 0 {
		return nil, nil
	}
	gone = a.Coming[i].names()
	a.Coming = slices.Delete(a.Coming, i, i+1)
	for i := range a.Coming {
		owned := a.Coming[i].takeOver(gone)
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

// DroppedHosts are the hosts, sorted, that go if a transfer is dropped: those that came with it, and that no other under way
// has brought.
func (a *Unsettled) DroppedHosts(t member.Transfer) []string {
	i := a.find(t)
	if i < 0 {
		return nil
	}
	return slices.DeleteFunc(a.Coming[i].names(), a.isKept)
}

// Without are the transfers under way as if some hosts, sorted, had not come with them.
func (a *Unsettled) Without(hosts []string) []Incoming {
	coming := slices.Clone(a.Coming)
	for i := range coming {
		_, coming[i].Hosts = a.Coming[i].split(hosts)
	}
	return coming
}

// each yields the names of hosts that go if the transfer is dropped, some more than once.
func (a *Incoming) each(yield func(host string) bool) {
	d := entry.NewDecoder(a.Hosts)
	for len(d.Rest) > 0 && !d.Bad && yield(d.String()) {
	}
}

func (a *Incoming) names() []string { return slices.Compact(slices.Sorted(a.each)) }

func (a *Incoming) allHosts() []string { return union(a.names(), a.Kept) }

// Settle forgets transfers that came or went whole, under epochs up to one.
func (a *Unsettled) Settle(epoch uint64) {
	done := func(t member.Transfer) bool { return t.Epoch <= epoch }
	a.Whole, a.Went = slices.DeleteFunc(a.Whole, done), slices.DeleteFunc(a.Went, done)
	a.Came = slices.DeleteFunc(a.Came, func(c Incoming) bool { return done(c.Transfer) })
}

// Clone is a copy that does not change with the original.
func (a *Unsettled) Clone() Unsettled {
	return Unsettled{Coming: slices.Clone(a.Coming), Whole: slices.Clone(a.Whole), Came: slices.Clone(a.Came),
		Went: slices.Clone(a.Went)}
}

// Partial are the transfers of which something has come, and that have not come whole.
func (a *Unsettled) Partial() (all []member.Transfer) {
	for i := range a.Coming {
		all = append(all, a.Coming[i].Transfer)
	}
	return all
}

// IncomingHosts are those of transfers under way that are not held yet.
func (a *Unsettled) IncomingHosts() map[string]bool {
	all := map[string]bool{}
	for i := range a.Coming {
		for host := range a.Coming[i].each {
			all[host] = true
		}
	}
	return all
}

// stayingHosts are the hosts that have come and do not go with what else is gone.
func (a *Unsettled) stayingHosts(gone member.Moved) map[string]bool {
	all := a.IncomingHosts()
	for _, came := range [][]Incoming{a.Coming, a.Came} {
		for i := range came {
			c := &came[i]
			note := func(host string) bool {
				if gone(host, 0) && !gone(host, c.Transfer.Epoch) {
					all[host] = true
				}
				return true
			}
			c.each(note)
			for _, host := range c.Kept {
				note(host)
			}
		}
	}
	return all
}
