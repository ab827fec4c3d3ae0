package mesh

import (
	"maps"
	"slices"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
)

const (
	missedAfter = 12 * time.Second // a node that has sent nothing for so long is looked up
	findMissed  = 10 * time.Second // minimum interval between two lookups of a node
	freedAfter  = 10 * time.Minute // a live node that has sent nothing for so long has other keepers
)

// A ward is a node whose lists of pages at risk this node has copies of.
type ward struct {
	sizes  map[string]int64
	heard  time.Time
	found  time.Time     // start of the last lookup
	missed time.Duration // how long it has been missing while this node could have heard from it; 0: not missing
	busy   bool          // a piece is being written
	lost   bool          // its files are being checked: see Lost
	others map[strategy.Node]*keeper
}

// wards keep copies of other nodes' lists of pages at risk (messageRisks, messageHaveRisks), and notice when such a
// node is lost.
//
// A node that sends nothing to its keepers, and is not found among the live nodes, is missing: the crawl does not end
// while a node is missing. When it has been missing for Config.LostAfter, it counts as lost with its disk. Each keeper
// then checks which of its files are uploaded, and has the pages of the others fetched again (Lost, Refetched). The
// pages are offered as URLs with another hash. So no node need take back that they are done, and offers by several
// keepers have the effect of a single one.
//
// A keeper of a missing node has the nodes that are closest to it now keep its lists, too. So they are not lost with
// keepers that leave, or die one after the other.
//
// Invariants: a copy has the same data as the node's list, in order. All copies of a node are bounded by maxWard bytes.
type wards struct {
	core      *core
	place     *place
	lookups   finder
	sender    *riskSender
	lostAfter time.Duration
	watch     func() // called when this node has become a keeper

	byNode  map[strategy.Node]*ward
	offered map[strategy.Node]time.Time // lost nodes whose pages were offered, for a while
	checked time.Time                   // time of the last check for missing nodes
	writing map[uint64]func(RiskWritten)
}

// receive processes a messageRisks about the lists of its sender, or of a missing node.
func (s *wards) receive(from strategy.Node, r *varint.Reader) error {
	msg, err := readRisks(r)
	if err != nil {
		return err
	}
	of, own := msg.of, msg.of == ""
	if own {
		if bus.CheckNode(from) != nil {
			return errMessage
		}
		of = from
		delete(s.offered, of)
	}
	w := s.byNode[of]
	if w == nil {
		if w = s.add(from, of, msg); w == nil {
			return nil
		}
	}
	switch {
	case own:
		w.heard, w.missed = s.core.now, 0
		clear(w.others)
	case w.missed > 0 || w.heard.IsZero():
		w.missed = max(w.missed, msg.missed, 1)
	default:
		if s.core.now.Sub(w.heard) < missedAfter { // it lives, and sends its lists itself
			s.answer(from, of, msg, w, true)
		}
		return nil // the sender repeats it
	}
	switch {
	case w.busy:
	case w.lost && own: // it is back, and need not wait until its storage location could be read
		s.answer(from, of, msg, w, true)
	case w.lost: // the pages in the copies are being offered
		if len(msg.data) == 0 {
			s.answer(from, of, msg, w, false)
		}
	default:
		s.apply(from, of, msg, w)
	}
	return nil
}

// add adds a ward for a node, unless its lists are not needed here or there is no room.
func (s *wards) add(from, of strategy.Node, msg risksMessage) *ward {
	_, over := s.offered[of]
	full := len(s.byNode) >= maxWards
	if over || of == s.core.self || msg.of == "" && full {
		s.answer(from, of, msg, nil, true)
		return nil
	}
	if s.place.leaving || full {
		return nil
	}
	w := &ward{sizes: map[string]int64{}, others: map[strategy.Node]*keeper{}}
	s.byNode[of] = w
	s.watch()
	return w
}

// apply applies a message to the copies.
func (s *wards) apply(from, of strategy.Node, msg risksMessage, w *ward) {
	own := msg.of == ""
	if own {
		for _, name := range sortedKeys(w.sizes) {
			if !slices.Contains(msg.names, name) {
				delete(w.sizes, name)
				s.core.do(DropRisk{Node: of, Name: name})
			}
		}
	}
	if len(msg.data) > 0 {
		name := msg.names[msg.piece]
		if own && msg.rewrite && msg.at == 0 && w.sizes[name] > 0 {
			w.sizes[name] = 0
			s.core.do(DropRisk{Node: of, Name: name})
		}
		switch {
		case msg.at != w.sizes[name]:
		case !w.hasRoom(msg.at, len(msg.data)):
			s.answer(from, of, msg, w, true)
			return
		default:
			s.write(from, of, w, msg)
			return
		}
	}
	s.answer(from, of, msg, w, false)
}

// hasRoom reports whether a list of a size may grow. A node that needs more than its share has fewer keepers.
func (w *ward) hasRoom(size int64, more int) bool {
	all := int64(more)
	for _, n := range w.sizes {
		all += n
	}
	return size+int64(more) <= maxRisk && all <= maxWard
}

// write writes a piece to a copy, and then acknowledges it.
func (s *wards) write(from, of strategy.Node, w *ward, msg risksMessage) {
	w.busy = true
	id, name := s.core.number(), msg.names[msg.piece]
	s.writing[id] = func(RiskWritten) {
		w.busy = false
		w.sizes[name] += int64(len(msg.data))
		s.answer(from, of, msg, w, false)
	}
	s.core.do(WriteRisk{ID: id, Node: of, Name: name, At: w.sizes[name], Data: msg.data})
}

// answer acknowledges a message with the sizes of the copies. over: this node need not keep them for now, because their
// pages were offered or are being offered, or their node sends them itself, or there is no room.
func (s *wards) answer(to, of strategy.Node, msg risksMessage, w *ward, over bool) {
	have := varint.Writer{messageHaveRisks}
	have.Uint(msg.number)
	have.String(string(msg.of))
	have.Bool(over)
	var sizes map[string]int64
	if w != nil {
		sizes = w.sizes
	}
	have.Uint(uint64(len(sizes)))
	for _, name := range sortedKeys(sizes) {
		have.String(name)
		have.Uint(uint64(sizes[name]))
	}
	if w != nil && len(sizes) == 0 && (msg.of == "" && len(msg.names) == 0) {
		delete(s.byNode, of)
	}
	s.core.do(Send{To: to, Data: have})
}

// acknowledged processes an answer of another keeper of a missing node.
func (s *wards) acknowledged(from, of strategy.Node, number uint64, has map[string]int64, over bool) {
	w := s.byNode[of]
	if w == nil {
		return
	}
	if k := w.others[from]; k != nil && k.acknowledged(number, has, over) && w.missed > 0 {
		s.share(of, w)
	}
}

// share sends the lists of a missing node to the nodes that are closest to it now.
func (s *wards) share(of strategy.Node, w *ward) {
	for _, n := range s.sharers(of) {
		k := w.others[n]
		if k == nil {
			k = &keeper{changed: true}
			w.others[n] = k
		}
		s.sender.send(n, k, of, w.sizes, w.missed)
	}
}

// sharers returns the other nodes that should keep the lists of a missing one.
func (s *wards) sharers(of strategy.Node) []strategy.Node {
	near, exact := s.place.near(s.place.nodeID(of), keepers)
	if !exact {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(near), func(n strategy.Node) bool { return n == s.core.self || n == of })
}

// areShared reports whether other nodes keep all lists of missing nodes.
func (s *wards) areShared() bool {
	for of, w := range s.byNode {
		if w.missed == 0 || len(w.sizes) == 0 {
			continue
		}
		for _, n := range s.sharers(of) {
			if k := w.others[n]; k == nil || !k.excused && !k.hasAll(w.sizes) {
				return false
			}
		}
	}
	return true
}

// check finds out which nodes are missing, and which are lost.
func (s *wards) check() {
	passed := min(s.core.now.Sub(s.checked), 2*riskEvery) // no node was missing while this machine slept
	s.checked = s.core.now
	if !s.place.isFresh() && !s.place.leaving {
		return
	}
	maps.DeleteFunc(s.offered, func(_ strategy.Node, at time.Time) bool { return s.core.now.Sub(at) > lostFor })
	for _, n := range slices.Sorted(maps.Keys(s.byNode)) {
		w := s.byNode[n]
		if w.missed > 0 && (!w.lost || s.place.leaving) {
			s.share(n, w)
		}
		if s.place.leaving {
			continue
		}
		if w.heard.IsZero() { // an earlier process has kept its lists
			w.heard = s.core.now
		}
		if s.isResolved(w) {
			continue
		}
		if w.missed > 0 {
			w.missed += passed
		}
		if s.core.now.Sub(w.found) >= min(findMissed, s.lostAfter/4) {
			w.found = s.core.now
			s.lookups.find(s.place.nodeID(n), true, func(near []strategy.Node) { s.lookedUp(n, w, near) })
		}
	}
}

// isResolved reports whether a ward need not be looked up now: it is known to be alive or lost, or its lists are being
// written.
func (s *wards) isResolved(w *ward) bool {
	return w.lost || w.busy || w.missed == 0 && s.core.now.Sub(w.heard) < missedAfter
}

// lookedUp processes the nodes closest to a ward: if it is alive, it is among them.
func (s *wards) lookedUp(n strategy.Node, w *ward, near []strategy.Node) {
	switch {
	case s.byNode[n] != w || s.isResolved(w):
	case slices.Contains(near, n):
		if w.missed = 0; s.core.now.Sub(w.heard) >= freedAfter {
			s.drop(n)
		}
	case len(near) == 0: // no node has answered
	case w.missed == 0:
		w.missed = 1
	case w.missed >= s.lostAfter:
		w.lost = true
		s.core.log.Info("node counts as lost with its disk: fetching its pages again unless their records "+
			"were uploaded", "node", n, "files", len(w.sizes), "missed_for", w.missed.Round(time.Second))
		s.core.do(Lost{Node: n})
	}
}

func (s *wards) drop(n strategy.Node) {
	if s.byNode[n] != nil {
		delete(s.byNode, n)
		s.core.do(DropRisk{Node: n})
	}
}

// missing returns a missing node whose pages may have to be fetched again; "" if there is none.
func (s *wards) missing() strategy.Node {
	for _, n := range slices.Sorted(maps.Keys(s.byNode)) {
		if w := s.byNode[n]; len(w.sizes) > 0 && (w.missed > 0 || w.lost) {
			return n
		}
	}
	return ""
}

// gone processes that a node has died or left. A node that leaves uploads its files itself.
func (s *wards) gone(e NodeGone) {
	w := s.byNode[e.Node]
	switch {
	case w == nil:
	case e.Left && !w.lost:
		s.drop(e.Node)
	case w.missed == 0:
		w.missed = 1
	}
}

// refetched processes that the pages of a lost node are offered.
func (s *wards) refetched(n strategy.Node) {
	s.drop(n)
	s.offered[n] = s.core.now
}
