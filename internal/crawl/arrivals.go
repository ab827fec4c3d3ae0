package crawl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"kumo/internal/member"
	"kumo/internal/strategy"
)

// arrivals are the transfers to this node that are not settled: those under way, and those that came whole. A checkpoint's note has
// them, and the journal what came after it.
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

// take notes that the next chunk of a transfer has come.
func (a *arrivals) take(t member.Transfer, p *parcel, last bool) {
	i := a.find(t)
	if i < 0 {
		i = len(a.Coming)
		a.Coming = append(a.Coming, arrival{Transfer: t})
	}
	a.Coming[i].Next++
	a.Coming[i].add(p)
	if last {
		a.Coming = slices.Delete(a.Coming, i, i+1)
		a.Whole = append(a.Whole, t)
	}
}

// add adds the names of hosts. What is there does not change, so that a checkpoint may have it as it is.
func (a *arrival) add(p *parcel) {
	last := ""
	add := func(host string) {
		if host != last {
			a.Hosts = append(binary.AppendUvarint(a.Hosts, uint64(len(host))), host...)
			last = host
		}
	}
	for i := range p.waiting {
		add(p.waiting[i].host)
	}
	for i := range p.known {
		add(p.known[i].host)
	}
}

// drop ends a transfer that did not come whole, and returns the hosts that came with it.
func (a *arrivals) drop(t member.Transfer) []string {
	i := a.find(t)
	if i < 0 {
		return nil
	}
	hosts := a.Coming[i].names()
	a.Coming = slices.Delete(a.Coming, i, i+1)
	return hosts
}

func (a *arrival) names() []string {
	d := decoder{b: a.Hosts}
	var all []string
	for len(d.b) > 0 && d.err == nil {
		all = append(all, d.string())
	}
	slices.Sort(all)
	return slices.Compact(all)
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

// hosts are those of transfers under way; nil if there are none.
func (a *arrivals) hosts() map[string]bool {
	var all map[string]bool
	for i := range a.Coming {
		for _, host := range a.Coming[i].names() {
			if all == nil {
				all = map[string]bool{}
			}
			all[host] = true
		}
	}
	return all
}

// came is a chunk as the journal has it.
type came struct {
	transfer member.Transfer
	seq      uint64
	last     bool
	data     string
}

func (e *encoder) transfer(t member.Transfer) {
	e.string(string(t.From))
	e.string(string(t.To))
	e.int(int64(t.Epoch))
	e.int(int64(t.Attempt))
}

func (d *decoder) transfer() member.Transfer {
	return member.Transfer{From: strategy.Node(d.string()), To: strategy.Node(d.string()), Epoch: uint64(d.int()), Attempt: uint64(d.int())}
}

func (e *encoder) came(c came) {
	e.kind(entryCame)
	e.transfer(c.transfer)
	e.int(int64(c.seq))
	e.bool(c.last)
	e.string(c.data)
}

func (d *decoder) came() came {
	return came{transfer: d.transfer(), seq: uint64(d.int()), last: d.bool(), data: d.string()}
}

func (e *encoder) dropped(t member.Transfer) {
	e.kind(entryDropped)
	e.transfer(t)
}

func (e *encoder) forgot(hosts []string) {
	e.kind(entryForgot)
	e.int(int64(len(hosts)))
	before := ""
	for _, host := range hosts {
		e.rest(host, before)
		before = host
	}
}

func (d *decoder) forgot() (hosts []string) {
	before := ""
	for n := d.int(); n > 0 && d.err == nil; n-- {
		before = d.rest(before)
		hosts = append(hosts, before)
	}
	return hosts
}

func (e *encoder) went(all []member.Transfer) {
	e.kind(entryWent)
	e.int(int64(len(all)))
	for _, t := range all {
		e.transfer(t)
	}
}

func (d *decoder) went() (all []member.Transfer) {
	for n := d.int(); n > 0 && d.err == nil; n-- {
		all = append(all, d.transfer())
	}
	return all
}

func (e *encoder) epoch(settled uint64) {
	e.kind(entryEpoch)
	e.int(int64(settled))
}
