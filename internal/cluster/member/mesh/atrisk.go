package mesh

import (
	"maps"
	"slices"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
)

// DefaultLostAfter is the default of Config.LostAfter.
const DefaultLostAfter = 10 * time.Minute

const (
	riskEvery = time.Second      // unacknowledged lists are sent again; missing nodes are checked
	riskBeat  = 5 * time.Second  // maximum interval between messages to a keeper
	riskPiece = 64 << 10         // bytes of a list per message
	maxRisks  = 1 << 10          // lists of a node
	maxRisk   = 128 << 20        // bytes of a list, which is read as a whole
	maxWard   = 256 << 20        // bytes of a node's lists
	maxWards  = 1 << 8           // nodes whose lists are kept
	lostFor   = 10 * time.Minute // other nodes may still keep lists of a node whose pages were offered
)

// risks keep lists of pages at risk: this node's own, and copies of other nodes'.
//
// If record files are uploaded to a storage location, a page is at risk from when it was fetched until its file is
// uploaded. If its node and the disk are lost before, it must be fetched again, although all nodes have it as done. So
// a node has a list of such pages for each of its record files, and the nodes closest to it, its keepers, have copies.
// A page is not reported as done before they have it. A list is dropped when its file is uploaded.
//
// The caller stores the lists themselves. A list only grows at its end, so a copy is described by its length.
type risks struct {
	core  *core
	lists *riskLists
	wards *wards
	armed bool
}

// newRisks returns risks with the lists of earlier processes.
func newRisks(c *core, p *place, f finder, lostAfter time.Duration, earlier map[strategy.Node]map[string]int64) *risks {
	sender := &riskSender{core: c, reading: map[uint64]func(RiskRead){}}
	r := &risks{core: c}
	r.lists = &riskLists{core: c, place: p, sender: sender, sizes: map[string]int64{},
		keepers: map[strategy.Node]*keeper{}, watch: r.watch}
	r.wards = &wards{core: c, place: p, lookups: f, sender: sender, lostAfter: lostAfter, watch: r.watch,
		byNode: map[strategy.Node]*ward{}, offered: map[strategy.Node]time.Time{}, writing: map[uint64]func(RiskWritten){}}
	for node, sizes := range earlier {
		if node == c.self {
			r.lists.sizes = maps.Clone(sizes)
		} else if len(sizes) > 0 {
			r.wards.byNode[node] = &ward{sizes: maps.Clone(sizes), others: map[strategy.Node]*keeper{}}
		}
	}
	return r
}

// watch sends lists and checks for missing nodes every riskEvery, as long as there are lists.
func (r *risks) watch() {
	if r.armed || r.lists.isEmpty() && len(r.wards.byNode) == 0 {
		return
	}
	r.armed = true
	r.core.after(riskEvery, func() {
		r.armed = false
		r.lists.send()
		r.wards.check()
		r.watch()
	})
}

func (r *risks) acknowledged(from strategy.Node, m *varint.Reader) error {
	number, of, over, n := m.Uint(), strategy.Node(m.String()), m.Bool(), m.Uint()
	if n > maxRisks {
		return errMessage
	}
	has := map[string]int64{}
	for range n {
		name, size := m.String(), m.Uint()
		if m.Bad || size > 1<<50 {
			return errMessage
		}
		has[name] = int64(size)
	}
	switch {
	case !m.Complete():
		return errMessage
	case of == "":
		r.lists.acknowledged(from, number, has, over)
	default:
		r.wards.acknowledged(from, of, number, has, over)
	}
	return nil
}

// riskLists send this node's lists of pages at risk to its keepers (AtRisk, messageRisks), and report when all of them
// have acknowledged (messageHaveRisks, Safe).
//
// Invariant: Safe is reported once for each AtRisk, after all keepers have the pages, or need not have them. If there
// are no other nodes, there are no keepers.
type riskLists struct {
	core   *core
	place  *place
	sender *riskSender
	watch  func() // called when lists have grown

	sizes   map[string]int64 // by record file
	keepers map[strategy.Node]*keeper
	waits   []riskWait
}

// A riskWait is an AtRisk that waits until all keepers have its pages.
type riskWait struct {
	id    uint64
	lists []RiskList
}

func (s *riskLists) isEmpty() bool { return len(s.sizes)+len(s.keepers)+len(s.waits) == 0 }

func (s *riskLists) grown(e AtRisk) {
	for _, l := range e.Lists {
		s.sizes[l.Name] = l.Size
	}
	s.waits = append(s.waits, riskWait{e.ID, e.Lists})
	s.send()
	s.watch()
}

// uploaded drops lists whose record files are uploaded.
func (s *riskLists) uploaded(names []string) {
	for _, name := range names {
		delete(s.sizes, name)
		s.core.do(DropRisk{Node: s.core.self, Name: name})
	}
	for _, k := range s.keepers {
		k.changed = true
	}
	s.send()
}

// send sends each keeper the parts that it lacks. A node that is no longer a keeper receives an empty set of lists.
func (s *riskLists) send() {
	self := s.core.self
	now := s.place.keepers(self, s.place.id)
	for _, n := range slices.Sorted(maps.Keys(s.keepers)) {
		if !slices.Contains(now, n) || s.place.leaving {
			s.sender.post(n, risksMessage{number: s.core.number()})
			delete(s.keepers, n)
		}
	}
	for _, n := range now {
		k := s.keepers[n]
		switch {
		case s.place.leaving:
		case k == nil && len(s.sizes) > 0:
			s.keepers[n] = &keeper{changed: true}
			s.sender.send(n, s.keepers[n], self, s.sizes, 0)
		// the keeper has acknowledged that there are none
		case k != nil && k.has != nil && k.number == 0 && len(s.sizes)+len(k.has) == 0:
			delete(s.keepers, n)
		case k != nil:
			s.sender.send(n, k, self, s.sizes, 0)
		}
	}
	s.reportSafe()
}

func (s *riskLists) acknowledged(from strategy.Node, number uint64, has map[string]int64, over bool) {
	if k := s.keepers[from]; k != nil && k.acknowledged(number, has, over) {
		s.send()
	}
}

// reportSafe reports the pages that all keepers have.
func (s *riskLists) reportSafe() {
	s.waits = slices.DeleteFunc(s.waits, func(w riskWait) bool {
		for _, n := range s.place.keepers(s.core.self, s.place.id) {
			k := s.keepers[n]
			for _, l := range w.lists {
				if _, is := s.sizes[l.Name]; !is || s.place.leaving || k != nil && k.excused {
					continue
				}
				if k == nil || k.has == nil || k.has[l.Name] < l.Size {
					return false
				}
			}
		}
		s.core.do(Safe{ID: w.id})
		return true
	})
}
