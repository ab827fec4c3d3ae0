package mesh

import (
	"cmp"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// The crawl's record is what all nodes are to know of the crawl: its settings, and whether it runs. Anybody may change
// it. The newest one wins: the one with the greatest version, a clock that counts changes (L. Lamport, Time, Clocks,
// and the Ordering of Events in a Distributed System, 1978). It goes over the tree that the buckets make as soon as it
// has changed, and each node asks another one from time to time: who was away hears of it then.

// A RecordVersion is one state of the crawl's record.
type RecordVersion struct {
	Version uint64
	By      strategy.Node
	Data    []byte
}

// follows reports whether a version can have come of changes since another one.
func (a *RecordVersion) follows(b *RecordVersion) bool {
	if b.Version == 0 {
		return a.Version <= maxVersion
	}
	return a.Version <= b.Version || a.Version-b.Version <= maxAhead
}

func (a *RecordVersion) newer(b *RecordVersion) bool {
	return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.By, b.By)) > 0
}

const (
	maxRecord   = 1 << 20          // bytes
	recordEvery = 10 * time.Second // as long as none is known
	recordAgain = 30 * time.Second
	agreeEvery  = time.Second // until this process and another one know the same
	// A version may be so far ahead of this node's own. Versions count changes, so an honest one never is; a member that
	// makes up a number near the greatest would else leave no room for any change after it.
	maxAhead   = 1 << 32
	maxVersion = 1 << 62 // that a node takes which knows no record
)

// change makes a new version of the record.
func (m *Machine) changeRecord(data []byte) {
	m.takeRecord(RecordVersion{m.crawl.Version + 1, m.cfg.Self, data}, m.cfg.Width)
}

// takeRecord takes a version in, if it is newer, and hands it on to all nodes of the buckets below an index.
func (m *Machine) takeRecord(r RecordVersion, below int) {
	if !r.newer(&m.crawl) {
		return
	}
	m.crawl = r
	m.came++
	m.do(Changed{Record: r})
	for i := m.lowest(); i < m.lowest()+below; i++ {
		if nodes := m.cfg.Overlay.Bucket(i); len(nodes) > 0 {
			m.sendRecord(nodes[0], i-m.lowest())
		}
	}
	for _, n := range m.absent.died.list(m.now) {
		m.sendRecord(n, 0)
	}
}

func (m *Machine) sendRecord(to strategy.Node, below int) {
	w := varint.Writer{messageRecord}
	w.Uint(uint64(below))
	w.Uint(m.crawl.Version)
	w.String(string(m.crawl.By))
	w.Bytes(m.crawl.Data)
	m.do(Send{To: to, Data: w})
}

// sync tells another node which version this one has, and of its chunks, one node after the other.
func (m *Machine) sync() {
	switch {
	case !m.agreed:
		m.after(agreeEvery, m.sync)
	case m.crawl.Version == 0:
		m.after(recordEvery, m.sync)
	default:
		m.after(recordAgain, m.sync)
	}
	if m.occupied == (xor.ID{}) {
		return
	}
	for { // the next bucket that has somebody
		m.synced++
		i := m.lowest() + m.synced%m.cfg.Width
		if m.occupied.Bit(i) == 0 {
			continue
		}
		if nodes := m.cfg.Overlay.Bucket(i); len(nodes) > 0 {
			m.sendVersion(nodes[m.synced/m.cfg.Width%len(nodes)], !m.agreed)
		}
		return
	}
}

// sendVersion says which version this node has; asks: the other one is to say it, too, even if it has the same.
func (m *Machine) sendVersion(to strategy.Node, asks bool) {
	w := varint.Writer{messageVersion}
	w.Bool(asks)
	w.Uint(m.crawl.Version)
	w.String(string(m.crawl.By))
	w.Uint(uint64(len(m.chunks.all)))
	w = append(w, m.chunks.sum[:]...)
	m.do(Send{To: to, Data: w})
}

// heardVersion answers with what is newer here, or asks for what is newer there.
func (m *Machine) heardVersion(from strategy.Node, r *varint.Reader) error {
	asks := r.Bool()
	v := RecordVersion{Version: r.Uint(), By: strategy.Node(r.String())}
	n := r.Uint()
	sum, ok := readIDs(r.Rest)
	if r.Bad || !ok || len(sum) != 1 || len(v.By) > maxName {
		return errMessage
	}
	same := sum[0] == m.chunks.sum && n == uint64(len(m.chunks.all))
	if !same {
		m.sayChunks(from, true)
	}
	if m.crawl.newer(&v) {
		m.sendRecord(from, 0)
	}
	if asks || v.newer(&m.crawl) && v.follows(&m.crawl) {
		m.sendVersion(from, false)
	}
	if same && !v.newer(&m.crawl) && !m.agreed {
		m.agreed = true
		m.do(Agreed{})
	}
	return nil
}

func (m *Machine) heardRecord(r *varint.Reader) error {
	below := r.Uint()
	v := RecordVersion{Version: r.Uint(), By: strategy.Node(r.String()), Data: r.Bytes()}
	if !r.Whole() || below > uint64(m.cfg.Width) || len(v.By) > maxName || len(v.Data) > maxRecord ||
		!v.follows(&m.crawl) {
		return errMessage
	}
	m.takeRecord(v, int(below))
	return nil
}

// The crawl's end is found by the node closest to an id that follows from nothing but the space: two gatherings, one
// after the other, that find all nodes idle, and between which nothing has come to any of them (F. Mattern, Algorithms
// for distributed termination detection, 1987).

// endEvery is how often the node looks that is to find the end.
const endEvery = 2 * time.Second

// seekEnd has the end looked for if it is this node that is to find it.
func (m *Machine) seekEnd() {
	if !m.seeking && m.closest(m.theEnd) {
		m.seeking = true
		m.after(endEvery, m.lookForEnd)
	}
}

// lookForEnd begins a gathering, as long as it is this node that does.
func (m *Machine) lookForEnd() {
	if m.seeking = m.closest(m.theEnd); !m.seeking {
		return // until there are other neighbours, or what is known of them is fresh
	}
	m.after(endEvery, m.lookForEnd)
	// where no crawl is known, others may know one
	if m.ending || m.alone.waits(m.now) || m.crawl.Version == 0 || m.own().Idle == 0 {
		return
	}
	m.ending = true
	m.gather(false, func(first Tally) {
		if !first.rests() {
			m.ending = false
			return
		}
		version := m.crawl.Version
		m.gather(false, func(second Tally) {
			m.ending = false
			if second.rests() && second.Print == first.Print && second.Nodes == first.Nodes && version == m.crawl.Version {
				m.do(Ended{Nodes: second.Nodes, Version: version})
			}
		})
	})
}

// rests reports whether all nodes have answered, and none has anything to do.
func (t *Tally) rests() bool { return t.Missing == 0 && t.Idle == t.Nodes && !t.isPart() }

// isPart reports whether so many nodes wait for others who do not answer that all who have answered may be a part of
// the network: newcomers who know but each other, or what is left of it on one side of a cut. Of a single node only
// those know that it does not answer who are near to it, or have it in their tables. What it has to do others know,
// too.
func (t *Tally) isPart() bool { return partOf*t.Bereft > t.Nodes }

const partOf = 8
