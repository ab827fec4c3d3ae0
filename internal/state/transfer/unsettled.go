package transfer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"kumo/internal/cluster/member"
	"kumo/internal/state/entry"
)

// Unsettled contains the unsettled transfers: those in progress and those that are complete. A checkpoint's note
// contains it; the journal contains later changes.
type Unsettled struct {
	Coming []Incoming        `json:",omitempty"`
	Whole  []member.Transfer `json:",omitempty"`
	Came   []Incoming        `json:",omitempty"` // those of Whole with hosts, and their names
	Went   []member.Transfer `json:",omitempty"` // complete transfers from here, whose hosts were forgotten
}

// An Incoming is a transfer in progress to this node.
type Incoming struct {
	Transfer member.Transfer
	Next     uint64 // number of the next chunk
	Hosts    []byte // names of received hosts, length-prefixed; some may be repeated
	// Kept contains the other received hosts, sorted. They stay if the transfer is dropped, because this node held
	// them, or another incoming transfer contained them, when they arrived.
	Kept []string `json:",omitempty"`
}

// ErrOrder reports a chunk out of order.
var ErrOrder = errors.New("transfer chunk out of order")

func (a *Unsettled) find(t member.Transfer) int {
	return slices.IndexFunc(a.Coming, func(c Incoming) bool { return c.Transfer == t })
}

// expects reports whether a chunk is the next one of its transfer. If it returns false without an error, the chunk was
// received before.
func (a *Unsettled) expects(t member.Transfer, seq uint64) (bool, error) {
	if slices.Contains(a.Whole, t) {
		return false, nil
	}
	next := uint64(0)
	if i := a.find(t); i >= 0 {
		next = a.Coming[i].Next
	} else if slices.ContainsFunc(a.Coming, func(c Incoming) bool { return c.Transfer.From == t.From }) {
		return false, fmt.Errorf("%w: another transfer from %s is in progress", ErrOrder, t.From)
	}
	if seq > next {
		return false, fmt.Errorf("%w: got %d from %s, want %d", ErrOrder, seq, t.From, next)
	}
	return seq == next, nil
}

// KeptHosts returns the kept hosts of a transfer, and those in more.
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

// Add records the next chunk of a transfer and the kept hosts of the transfer. After the last chunk it returns the
// complete transfer.
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
	a.Keep(w.Kept) // the hosts are now this node's, whichever transfer they came with first
	return &w
}

// add appends names of hosts. It does not change existing bytes, because a checkpoint may use them.
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

// retain marks those of some hosts that were received with a transfer as kept.
func (a *Incoming) retain(hosts []string) {
	if len(hosts) == 0 {
		return
	}
	if kept, rest := a.split(hosts); len(kept) > 0 {
		a.Hosts, a.Kept = rest, union(a.Kept, kept)
	}
}

// split returns which of some hosts would be dropped with the transfer, and the names of its other hosts that would be.
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

// Keep marks hosts, sorted, as kept in all incoming transfers that contain them.
func (a *Unsettled) Keep(hosts []string) {
	for i := range a.Coming {
		a.Coming[i].retain(hosts)
	}
}

// notKept returns those of some hosts that no incoming transfer keeps.
func (a *Unsettled) notKept(hosts []string) []string {
	return slices.DeleteFunc(slices.Clone(hosts), a.isKept)
}

func (a *Unsettled) isKept(host string) bool {
	return slices.ContainsFunc(a.Coming, func(c Incoming) bool { return isIn(c.Kept, host) })
}

// takeOver makes those of some hosts that a transfer keeps belong to it, because the transfer that they came with first
// is dropped. It returns them; from now on they are dropped with this transfer.
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

// Drop removes an incomplete transfer, and returns the hosts that are dropped with it. Hosts that other transfers also
// contain are passed to those.
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

// DroppedHosts returns the hosts, sorted, that would be dropped with a transfer: those received with it that no other
// incoming transfer keeps.
func (a *Unsettled) DroppedHosts(t member.Transfer) []string {
	i := a.find(t)
	if i < 0 {
		return nil
	}
	return slices.DeleteFunc(a.Coming[i].names(), a.isKept)
}

// Without returns the incoming transfers as if some hosts, sorted, were not received with them.
func (a *Unsettled) Without(hosts []string) []Incoming {
	coming := slices.Clone(a.Coming)
	for i := range coming {
		_, coming[i].Hosts = a.Coming[i].split(hosts)
	}
	return coming
}

// each yields the names of hosts that would be dropped with the transfer. Some may be repeated.
func (a *Incoming) each(yield func(host string) bool) {
	d := entry.NewDecoder(a.Hosts)
	for len(d.Rest) > 0 && !d.Bad && yield(d.String()) {
	}
}

func (a *Incoming) names() []string { return slices.Compact(slices.Sorted(a.each)) }

func (a *Incoming) allHosts() []string { return union(a.names(), a.Kept) }

// Settle drops the records of complete transfers up to an epoch.
func (a *Unsettled) Settle(epoch uint64) {
	done := func(t member.Transfer) bool { return t.Epoch <= epoch }
	a.Whole, a.Went = slices.DeleteFunc(a.Whole, done), slices.DeleteFunc(a.Went, done)
	a.Came = slices.DeleteFunc(a.Came, func(c Incoming) bool { return done(c.Transfer) })
}

// Clone returns a copy that is independent of the original.
func (a *Unsettled) Clone() Unsettled {
	return Unsettled{Coming: slices.Clone(a.Coming), Whole: slices.Clone(a.Whole), Came: slices.Clone(a.Came),
		Went: slices.Clone(a.Went)}
}

// Partial returns the transfers that were received only in part.
func (a *Unsettled) Partial() (all []member.Transfer) {
	for i := range a.Coming {
		all = append(all, a.Coming[i].Transfer)
	}
	return all
}

// IncomingHosts returns the hosts of incoming transfers that this node does not hold yet.
func (a *Unsettled) IncomingHosts() map[string]bool {
	all := map[string]bool{}
	for i := range a.Coming {
		for host := range a.Coming[i].each {
			all[host] = true
		}
	}
	return all
}

// stayingHosts returns the hosts that gone would select, but that this node has received since, and therefore keeps.
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
