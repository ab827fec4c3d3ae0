package mesh

import (
	"maps"
	"slices"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
)

// Where record files go to a place, a page is at risk from when it was fetched until its file is there: if its node and
// the disk are lost, it has to be fetched again, though all know that it is done. So a node has a list of such pages
// for each of its record files, and the nodes closest to it, its keepers, have copies. A page is not said to be done
// before they have it. A list is dropped when its file is in the place.
//
// A node that says nothing to its keepers, and is not found among the living, is missed: the crawl does not end
// meanwhile. When it was missed for Config.LostAfter it counts as lost with its disk. Each keeper then looks which of
// its files are in the place, and has the pages of the others fetched again: as URLs of another hash, so that nobody
// need take back that they are done, and several who offer them are as good as one.
//
// Who keeps lists of a node that is missed has those keep them, too, who are the closest to it now; so they are not
// lost with keepers that leave, or die one after the other.
//
// What a list has is the caller's. It grows only at its end, so that a copy is told by its length.

const (
	riskEvery   = time.Second      // keepers are told again what they have not answered, and missed nodes looked at
	riskBeat    = 5 * time.Second  // keepers hear from the node after so long at the latest
	missedAfter = 12 * time.Second // a node of which nothing was heard is looked for
	findMissed  = 10 * time.Second // between two look-ups of it, at most
	freedAfter  = 10 * time.Minute // a node that lives, and says nothing for so long, has other keepers
	riskPiece   = 64 << 10         // bytes of a list that are sent at once
	settledFor  = 10 * time.Minute // others may still keep lists of a node whose pages were offered
	maxRisks    = 1 << 10          // lists of a node
	maxWards    = 1 << 8           // nodes of which lists are kept
	maxNode     = 200              // bytes of a node's name
	maxRisk     = 128 << 20        // bytes of a list, of which each is read whole
	maxWard     = 256 << 20        // bytes of a node's lists
)

// DefaultLostAfter is a Config's LostAfter.
const DefaultLostAfter = 10 * time.Minute

// risks are lists of pages at risk: this node's, and those of others.
type risks struct {
	own     map[string]int64 // lengths, by record file
	keepers map[strategy.Node]*keeper
	waits   []riskWait
	wards   map[strategy.Node]*ward
	settled map[strategy.Node]time.Time // nodes that count as lost, and whose pages were offered, until that is forgotten
	armed   bool
	looked  time.Time // when missed nodes were looked at last
	reading map[uint64]func(RiskRead)
	writing map[uint64]func()
}

// A keeper is a node that has copies of this one's lists.
type keeper struct {
	has    map[string]int64 // as it has said; nil: it has not
	number uint64           // of what it was told, and has not answered; 0: it has answered all
	at     time.Time        // it was told last
	tries  int              // how often it was told that
	reads  bool             // a piece for it is being read
	news   bool             // a list was dropped since
	over   bool             // it has said that it need not have them, for now
}

// A riskWait is pages that wait until all keepers have them.
type riskWait struct {
	id    uint64
	lists []RiskList
}

// A ward is a node of which this one has copies.
type ward struct {
	lists  map[string]int64
	heard  time.Time
	found  time.Time     // a look-up has begun
	missed time.Duration // it was missed, while this node could have heard of it
	busy   bool          // something is being written
	lost   bool          // what is to be fetched again is being found out
	others map[strategy.Node]*keeper
}

func newRisks(cfg *Config) risks {
	r := risks{own: map[string]int64{}, keepers: map[strategy.Node]*keeper{}, wards: map[strategy.Node]*ward{},
		settled: map[strategy.Node]time.Time{}, reading: map[uint64]func(RiskRead){}, writing: map[uint64]func(){}}
	for node, lists := range cfg.Risks {
		if node == cfg.Self {
			r.own = maps.Clone(lists)
		} else if len(lists) > 0 {
			r.wards[node] = &ward{lists: maps.Clone(lists), others: map[strategy.Node]*keeper{}}
		}
	}
	return r
}

// watchRisks looks after lists as long as there are some.
func (m *Machine) watchRisks() {
	r := &m.risks
	if r.armed || len(r.own)+len(r.keepers)+len(r.wards)+len(r.waits) == 0 {
		return
	}
	r.armed = true
	m.after(riskEvery, func() {
		r.armed = false
		m.tellKeepers()
		m.lookForWards()
		m.watchRisks()
	})
}

// grewRisks takes word that lists of this node have grown.
func (m *Machine) grewRisks(e AtRisk) {
	r := &m.risks
	for _, l := range e.Lists {
		r.own[l.Name] = l.Size
	}
	r.waits = append(r.waits, riskWait{e.ID, e.Lists})
	m.tellKeepers()
	m.watchRisks()
}

// placed drops lists whose record files are in the place.
func (m *Machine) placed(names []string) {
	for _, name := range names {
		delete(m.risks.own, name)
		m.do(DropRisk{Node: m.cfg.Self, Name: name})
	}
	for _, k := range m.risks.keepers {
		k.news = true
	}
	m.tellKeepers()
}

// tellKeepers tells each keeper what it has not got. Who is none any more is told that there is nothing.
func (m *Machine) tellKeepers() {
	r := &m.risks
	now := m.keepersOf(m.cfg.Self, m.id)
	for _, n := range slices.Sorted(maps.Keys(r.keepers)) {
		if !slices.Contains(now, n) || m.leaving {
			m.last++
			m.tellRisks(n, risksMessage{number: m.last})
			delete(r.keepers, n)
		}
	}
	for _, n := range now {
		k := r.keepers[n]
		switch {
		case m.leaving:
		case k == nil && len(r.own) > 0:
			r.keepers[n] = &keeper{news: true}
			m.tellKeeper(n, r.keepers[n], m.cfg.Self, r.own, 0)
		case k != nil && k.has != nil && k.number == 0 && len(r.own)+len(k.has) == 0: // it knows that there is nothing
			delete(r.keepers, n)
		case k != nil:
			m.tellKeeper(n, k, m.cfg.Self, r.own, 0)
		}
	}
	m.answerWaits()
}

// hasAll reports whether a keeper has all of some lists.
func (k *keeper) hasAll(lists map[string]int64) bool {
	for name, size := range lists {
		if k.has[name] < size {
			return false
		}
	}
	return k.has != nil
}

// tellKeeper tells a keeper of the lists of a node, this one or one that was missed for so long, what it has not got.
func (m *Machine) tellKeeper(n strategy.Node, k *keeper, of strategy.Node, lists map[string]int64,
	missed time.Duration) {
	since := m.now.Sub(k.at)
	if k.reads || k.over && since < riskBeat || k.number > 0 && since < min(riskEvery<<min(k.tries-1, 3), riskBeat) {
		return
	}
	if k.over { // it may have to have them now
		k.over, k.has, k.news = false, nil, true
	}
	msg := risksMessage{of: of, missed: missed, names: sortedKeys(lists)}
	for i, name := range msg.names {
		from := k.has[name]
		if k.has == nil || from == lists[name] || from > lists[name] && of != m.cfg.Self {
			continue
		}
		if from > lists[name] { // of a list that this node has lost the end of
			from, msg.anew = 0, true
		}
		k.reads = true
		m.last++
		m.risks.reading[m.last] = func(e RiskRead) {
			if k.reads = false; len(e.Data) == 0 {
				return // it was dropped meanwhile
			}
			msg.piece, msg.at, msg.data = i, from, e.Data
			m.sayTo(n, k, msg)
		}
		m.do(ReadRisk{ID: m.last, Node: of, Name: name, From: from, Most: riskPiece})
		return
	}
	if k.news || k.number > 0 || of == m.cfg.Self && since >= riskBeat {
		m.sayTo(n, k, msg)
	}
}

// sayTo tells a keeper something. What is told again, because it was not answered, has the number that it had: so who
// takes long to answer is understood, too.
func (m *Machine) sayTo(n strategy.Node, k *keeper, msg risksMessage) {
	if k.number == 0 {
		m.last++
		k.number, k.tries = m.last, 0
	}
	k.at, k.news = m.now, false
	k.tries++
	msg.number = k.number
	m.tellRisks(n, msg)
}

// A risksMessage says which lists there are of a node, and has a piece of one of them.
type risksMessage struct {
	number uint64
	of     strategy.Node // "": the sender
	missed time.Duration // for so long the sender has missed that node
	names  []string
	piece  int  // the index of the name
	anew   bool // what the keeper has of it is not what its node has
	at     int64
	data   []byte
}

func (m *Machine) tellRisks(to strategy.Node, msg risksMessage) {
	if msg.of == m.cfg.Self {
		msg.of = ""
	}
	w := varint.Writer{messageRisks}
	w.Uint(msg.number)
	w.String(string(msg.of))
	w.Uint(uint64(msg.missed / time.Millisecond))
	w.Uint(uint64(len(msg.names)))
	for _, name := range msg.names {
		w.String(name)
	}
	w.Uint(uint64(msg.piece))
	w.Bool(msg.anew)
	w.Uint(uint64(msg.at))
	w.Bytes(msg.data)
	m.do(Send{To: to, Data: w})
}

func readRisks(r *varint.Reader) (msg risksMessage, err error) {
	msg.number, msg.of, msg.missed = r.Uint(), strategy.Node(r.String()), time.Duration(r.Uint()%(1<<40))*time.Millisecond
	n := r.Uint()
	if n > maxRisks || msg.of != "" && !isNode(msg.of) {
		return msg, errMessage
	}
	for range n {
		name := r.String()
		if r.Bad || name == "" || len(name) > maxName {
			return msg, errMessage
		}
		msg.names = append(msg.names, name)
	}
	piece := r.Uint()
	msg.anew = r.Bool()
	at := r.Uint()
	msg.data = r.Bytes()
	if !r.Whole() || at > 1<<50 || len(msg.data) > riskPiece || len(msg.data) > 0 && piece >= n {
		return msg, errMessage
	}
	msg.piece, msg.at = int(piece), int64(at)
	return msg, nil
}

// isNode reports whether a name can be a node's, as [kumo/internal/cluster/bus.CheckNode] has it: the copies of its lists are
// files that are called after it.
func isNode(name strategy.Node) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '~':
		default:
			return false
		}
	}
	return name != "" && len(name) <= maxNode
}

// heardHave takes a keeper's word of what it has.
func (m *Machine) heardHave(from strategy.Node, r *varint.Reader) error {
	number, of, over, n := r.Uint(), strategy.Node(r.String()), r.Bool(), r.Uint()
	if n > maxRisks {
		return errMessage
	}
	has := map[string]int64{}
	for range n {
		name, size := r.String(), r.Uint()
		if r.Bad || size > 1<<50 {
			return errMessage
		}
		has[name] = int64(size)
	}
	if !r.Whole() {
		return errMessage
	}
	if of == "" {
		if k := m.risks.keepers[from]; k != nil && k.number == number {
			k.has, k.number, k.over = has, 0, over
			m.tellKeepers()
		}
		return nil
	}
	w := m.risks.wards[of]
	if w == nil {
		return nil
	}
	if k := w.others[from]; k != nil && k.number == number {
		if k.has, k.number, k.over = has, 0, over; w.missed > 0 {
			m.shareWard(of, w)
		}
	}
	return nil
}

// answerWaits says of pages that all keepers have them. Where there are no other nodes nobody need have them.
func (m *Machine) answerWaits() {
	r := &m.risks
	r.waits = slices.DeleteFunc(r.waits, func(w riskWait) bool {
		for _, n := range m.keepersOf(m.cfg.Self, m.id) {
			k := r.keepers[n]
			for _, l := range w.lists {
				if _, is := r.own[l.Name]; !is || m.leaving || k != nil && k.over {
					continue
				}
				if k == nil || k.has == nil || k.has[l.Name] < l.Size {
					return false
				}
			}
		}
		m.do(Safe{ID: w.id})
		return true
	})
}

// heardRisks takes what another node says of its lists, or of those of one that is missed.
func (m *Machine) heardRisks(from strategy.Node, r *varint.Reader) error {
	msg, err := readRisks(r)
	if err != nil {
		return err
	}
	itself := msg.of == ""
	of := msg.of
	if itself {
		if !isNode(from) {
			return errMessage
		}
		of = from
		delete(m.risks.settled, of)
	}
	w := m.risks.wards[of]
	if w == nil {
		_, over := m.risks.settled[of]
		full := len(m.risks.wards) >= maxWards
		if over || of == m.cfg.Self || itself && full {
			m.tellHave(from, of, msg, nil, true)
			return nil
		}
		if m.leaving || full {
			return nil
		}
		w = &ward{lists: map[string]int64{}, others: map[strategy.Node]*keeper{}}
		m.risks.wards[of] = w
		m.watchRisks()
	}
	switch {
	case itself:
		w.heard, w.missed = m.now, 0
		clear(w.others)
	case w.missed > 0 || w.heard.IsZero():
		w.missed = max(w.missed, msg.missed, 1)
	default:
		if m.now.Sub(w.heard) < missedAfter { // it lives, and says itself what it has
			m.tellHave(from, of, msg, w, true)
		}
		return nil // it says so again
	}
	switch {
	case w.busy:
		return nil
	case w.lost && itself: // it has come back, and is not to wait until its place could be read
		m.tellHave(from, of, msg, w, true)
		return nil
	case w.lost: // what is on the disk is being offered
		if len(msg.data) == 0 {
			m.tellHave(from, of, msg, w, false)
		}
		return nil
	}
	if itself {
		for _, name := range sortedKeys(w.lists) {
			if !slices.Contains(msg.names, name) {
				delete(w.lists, name)
				m.do(DropRisk{Node: of, Name: name})
			}
		}
	}
	if len(msg.data) > 0 {
		name := msg.names[msg.piece]
		if itself && msg.anew && msg.at == 0 && w.lists[name] > 0 {
			w.lists[name] = 0
			m.do(DropRisk{Node: of, Name: name})
		}
		switch {
		case msg.at != w.lists[name]:
		case !w.hasRoom(msg.at, len(msg.data)):
			m.tellHave(from, of, msg, w, true)
			return nil
		default:
			m.writeRisk(from, of, w, msg)
			return nil
		}
	}
	m.tellHave(from, of, msg, w, false)
	return nil
}

// hasRoom reports whether a list of a length may grow by so many bytes. Who needs more than its share has fewer keepers.
func (w *ward) hasRoom(size int64, more int) bool {
	all := int64(more)
	for _, n := range w.lists {
		all += n
	}
	return size+int64(more) <= maxRisk && all <= maxWard
}

// writeRisk writes a piece of another node's list, and then says so.
func (m *Machine) writeRisk(from, of strategy.Node, w *ward, msg risksMessage) {
	w.busy = true
	m.last++
	name := msg.names[msg.piece]
	m.risks.writing[m.last] = func() {
		w.busy = false
		w.lists[name] += int64(len(msg.data))
		m.tellHave(from, of, msg, w, false)
	}
	m.do(WriteRisk{ID: m.last, Node: of, Name: name, At: w.lists[name], Data: msg.data})
}

// tellHave answers what a node has said of lists; over: nobody need keep them here for now, because what is in them was
// offered, or is being offered, or their node says itself what it has, or there is no room.
func (m *Machine) tellHave(to, of strategy.Node, msg risksMessage, w *ward, over bool) {
	have := varint.Writer{messageHaveRisks}
	have.Uint(msg.number)
	have.String(string(msg.of))
	have.Bool(over)
	var lists map[string]int64
	if w != nil {
		lists = w.lists
	}
	have.Uint(uint64(len(lists)))
	for _, name := range sortedKeys(lists) {
		have.String(name)
		have.Uint(uint64(lists[name]))
	}
	if w != nil && len(lists) == 0 && (msg.of == "" && len(msg.names) == 0) {
		delete(m.risks.wards, of)
	}
	m.do(Send{To: to, Data: have})
}

// shareWard has those keep the lists of a node that is missed who are the closest to it now.
func (m *Machine) shareWard(of strategy.Node, w *ward) {
	for _, n := range m.sharers(of) {
		k := w.others[n]
		if k == nil {
			k = &keeper{news: true}
			w.others[n] = k
		}
		m.tellKeeper(n, k, of, w.lists, w.missed)
	}
}

// sharers are the other nodes that are to keep the lists of one that is missed.
func (m *Machine) sharers(of strategy.Node) []strategy.Node {
	near, exact := m.near(m.idOf("node", string(of)), keepers)
	if !exact {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(near), func(n strategy.Node) bool { return n == m.cfg.Self || n == of })
}

// wardsShared reports whether others keep all lists of nodes that are missed.
func (m *Machine) wardsShared() bool {
	for of, w := range m.risks.wards {
		if w.missed == 0 || len(w.lists) == 0 {
			continue
		}
		for _, n := range m.sharers(of) {
			if k := w.others[n]; k == nil || !k.over && !k.hasAll(w.lists) {
				return false
			}
		}
	}
	return true
}

// lookForWards finds out which nodes are missed, and which are lost.
func (m *Machine) lookForWards() {
	r := &m.risks
	passed := min(m.now.Sub(r.looked), 2*riskEvery) // a machine that has slept has missed nobody meanwhile
	r.looked = m.now
	if !m.now.Before(m.fresh) && !m.leaving {
		return
	}
	for n, at := range r.settled {
		if m.now.Sub(at) > settledFor {
			delete(r.settled, n)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(r.wards)) {
		w := r.wards[n]
		if w.missed > 0 && (!w.lost || m.leaving) {
			m.shareWard(n, w)
		}
		if m.leaving {
			continue
		}
		if w.heard.IsZero() { // an earlier process has kept it
			w.heard = m.now
		}
		if w.lost || w.busy || w.missed == 0 && m.now.Sub(w.heard) < missedAfter {
			continue
		}
		if w.missed > 0 {
			w.missed += passed
		}
		if m.now.Sub(w.found) >= min(findMissed, m.cfg.LostAfter/4) {
			w.found = m.now
			m.find(m.idOf("node", string(n)), true, func(near []strategy.Node) { m.lookedFor(n, w, near) })
		}
	}
}

// lookedFor takes it that a look-up has found the nodes that are closest to another one: if it lives it is one of them.
func (m *Machine) lookedFor(n strategy.Node, w *ward, near []strategy.Node) {
	r := &m.risks
	switch {
	case r.wards[n] != w || w.lost || w.busy || w.missed == 0 && m.now.Sub(w.heard) < missedAfter:
	case slices.Contains(near, n):
		if w.missed = 0; m.now.Sub(w.heard) >= freedAfter {
			m.dropWard(n)
		}
	case len(near) == 0: // nobody has answered
	case w.missed == 0:
		w.missed = 1
	case w.missed >= m.cfg.LostAfter:
		w.lost = true
		m.log.Info("a node counts as lost with its disk: what it has fetched is fetched again where its records have not "+
			"reached its place", "node", n, "files", len(w.lists), "missed_for", w.missed.Round(time.Second))
		m.do(Lost{Node: n})
	}
}

// dropWard drops all copies of a node's lists.
func (m *Machine) dropWard(n strategy.Node) {
	if m.risks.wards[n] != nil {
		delete(m.risks.wards, n)
		m.do(DropRisk{Node: n})
	}
}

// missing is a node that is missed, and that may have to be done again what it has fetched; "" if there is none.
func (m *Machine) missing() strategy.Node {
	for _, n := range slices.Sorted(maps.Keys(m.risks.wards)) {
		if w := m.risks.wards[n]; len(w.lists) > 0 && (w.missed > 0 || w.lost) {
			return n
		}
	}
	return ""
}

// goneWard takes it that a node is gone. One that leaves brings its files to its place itself.
func (m *Machine) goneWard(e Gone) {
	w := m.risks.wards[e.Node]
	switch {
	case w == nil:
	case e.Left && !w.lost:
		m.dropWard(e.Node)
	case w.missed == 0:
		w.missed = 1
	}
}

// refetched takes it that what a lost node had is offered.
func (m *Machine) refetched(n strategy.Node) {
	m.dropWard(n)
	m.risks.settled[n] = m.now
}
