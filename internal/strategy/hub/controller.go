package hub

import (
	"slices"
	"time"

	"kumo/internal/strategy"
	"kumo/internal/strategy/hub/hosttable"
)

// A controller is the control unit, or one that would take its place: it reads what the control unit writes.
type controller struct {
	*Hub
	rank  int // among those who would be
	table *hosttable.Table
	last  uint64 // number of the last entry read or written
	wrote header // of it
	heard time.Time

	reading bool
	readAt  time.Time // when it is looked for more
	readTo  bool      // all has been read at least once
	sureAt  time.Time // when nobody else had written anything

	leading    bool
	leadAt     time.Time     // since when
	behind     int           // readings that an earlier part of this node's has asked for
	mute       strategy.Node // who led before, and was not heard since
	before     strategy.Node // who has led before that
	led        uint64        // the term that it leads, or tries to
	campaign   bool          // to be the control unit is what was written last
	persisting bool          // what was written is not known to be durable
	doubt      bool          // nobody knows
	id         uint64        // of the last Persist
	batches    []*batch
	beatAt     time.Time
	lookAt     time.Time // for trials that have waited too long

	notes    map[int]map[string]note // by part
	searches map[string]*placementSearch
	deciding []*placementSearch    // that have a claim, in the order of their time
	promised map[strategy.Node]int // hosts that are granted and not in the table yet
	asking   map[strategy.Node]int // hosts that a node is being asked for
	near     latencyHints
	level    level
	offers   map[string]*offer // hosts that may move for load
	gatherBy time.Time         // until then, at most, the first hosts of a crawl wait for more members; zero: they do not
	part     int               // the next to be written
	written  [hosttable.Parts]uint64
	trimmed  uint64
}

// States of a row.
const (
	rowReached  uint8 = iota // its owner reaches the host, or has been left alone with it
	rowParked                // its owner is not known to
	rowPromised              // its owner reaches it, and gets it from another that holds it
)

// roundMoved in a row's Round, where that is reached or promised, says that the host has moved, or moves, to a node
// that had less to do.
const roundMoved uint8 = 1 << 7

func newController(h *Hub, rank int) *controller {
	return &controller{Hub: h, rank: rank, table: hosttable.New(h.cfg.Key), heard: h.now, readAt: h.now,
		notes: map[int]map[string]note{}, searches: map[string]*placementSearch{},
		promised: map[strategy.Node]int{}, asking: map[strategy.Node]int{}, near: newLatencyHints(), behind: h.reads,
		level: newLevel(), offers: map[string]*offer{}}
}

// told is told what came of reading and writing.
func (u *controller) told(e strategy.Event) {
	if u.behind > 0 {
		if _, end := e.(strategy.AtEnd); end {
			u.behind--
		}
		return
	}
	switch e := e.(type) {
	case strategy.Logged:
		if e.Number > u.last {
			u.logged(e)
		}
	case strategy.AtEnd:
		u.atEnd()
	case strategy.Persisted:
		u.persisted(e)
	}
}

func (u *controller) logged(e strategy.Logged) {
	w, err := u.apply(e.Number, e.Data)
	if err != nil {
		return // of another version: nobody who cannot read it becomes the control unit
	}
	u.last, u.wrote = e.Number, w
	if u.leading && (w.by != u.cfg.Self || w.term != u.led) {
		u.depose()
	}
	if w.by == u.cfg.Self && u.persisting && u.doubt { // what was in doubt was written after all
		u.durable()
	}
}

func (u *controller) atEnd() {
	u.reading, u.readTo = false, true
	u.readAt = u.now.Add(u.cfg.Beat)
	if u.leading { // who has nothing to write would not learn that another one leads
		u.readAt, u.sureAt = u.now.Add(u.cfg.Silence/2), u.now
	}
	if u.persisting && u.doubt { // it was not, and if it comes yet, what is written next will not: then it is read
		u.persisting, u.doubt, u.campaign = false, false, u.campaign && u.leading
	}
}

func (u *controller) persisted(e strategy.Persisted) {
	if !u.persisting || e.ID != u.id {
		return
	}
	if e.State != strategy.Durable {
		u.doubt = true
		u.readAt = u.now
		if e.State == strategy.Doubt {
			u.readAt = u.now.Add(u.cfg.Retry)
		}
		return
	}
	u.last, u.sureAt = e.Number, u.now
	u.durable()
}

// durable goes on when what was written is.
func (u *controller) durable() {
	u.persisting, u.doubt = false, false
	if u.campaign {
		u.campaign = false
		u.lead()
		return
	}
	if !u.leading || len(u.batches) == 0 {
		return
	}
	b := u.batches[0]
	u.batches = u.batches[1:]
	for _, part := range b.parts {
		u.written[part] = u.last
	}
	for _, host := range b.order {
		n, noted := b.notes[host]
		if u.enter(host, b.rows[host], &n); !noted {
			u.note(host, nil)
		}
	}
	if len(u.batches) == 0 {
		clear(u.promised)
	}
	for _, a := range b.answers {
		u.post(a.to, msgAnswer, a.it)
	}
	u.trim()
}

// lead begins a term.
func (u *controller) lead() {
	u.leading, u.leadAt = true, u.now
	if u.before != u.cfg.Self {
		u.mute = u.before
	}
	u.wrote = header{u.led, u.epoch, u.cfg.Self}
	u.follow(u.cfg.Self, u.led)
	u.beatAt, u.sureAt = u.now, u.now
	u.level, u.offers = newLevel(), map[string]*offer{}
	if u.gatherBy = (time.Time{}); u.table.Len() == 0 && u.cfg.Gather > 0 {
		u.gatherBy = u.now.Add(gathers * u.cfg.Gather)
	}
}

// depose ends a term that another node has ended.
func (u *controller) depose() {
	u.leading, u.campaign, u.persisting, u.doubt = false, false, false, false
	u.batches = nil
	u.searches, u.deciding = map[string]*placementSearch{}, nil
	clear(u.promised)
	clear(u.asking)
	u.level, u.offers = newLevel(), map[string]*offer{}
	u.heard = u.now
}

func (u *controller) advance() {
	if !u.reading && !u.readAt.After(u.now) {
		u.reading = true
		u.reads++
		u.do(strategy.Read{After: u.last})
	}
	if u.leading {
		u.beat()
		u.decide()
		u.judge()
		u.even()
		u.commit()
		return
	}
	if u.readTo && !u.persisting && !u.reading && u.epoch >= u.wrote.epoch && u.vacant() {
		u.campaign = true
		u.persist(nil)
	}
}

// sure reports whether this is the control unit, and was not long ago.
func (u *controller) sure() bool { return u.leading && u.now.Sub(u.sureAt) < 2*u.cfg.Silence }

// vacant reports whether nobody is the control unit, as far as this node knows.
func (u *controller) vacant() bool {
	if u.wrote.by == u.cfg.Self {
		return true
	}
	rank := u.rank
	if slices.Contains(u.members[:min(u.rank, len(u.members))], u.wrote.by) {
		rank-- // who is silent is not waited for
	}
	patience := u.cfg.Silence + time.Duration(rank)*u.cfg.Silence/2
	if !u.alive[u.wrote.by] { // gone, or there has been none
		patience = time.Duration(rank) * u.cfg.Silence / 4
	}
	return u.now.Sub(u.heard) >= patience
}

func (u *controller) beat() {
	if u.beatAt.After(u.now) {
		return
	}
	u.beatAt = u.now.Add(u.cfg.Beat)
	for _, n := range u.members[:min(len(u.members), standbys)] {
		if n != u.cfg.Self {
			u.post(n, msgBeat, item{})
		}
	}
}

// commit writes the first batch that waits.
func (u *controller) commit() {
	if !u.persisting && len(u.batches) > 0 {
		u.persist(u.batches[0])
	}
}

func (u *controller) persist(b *batch) {
	u.id++
	u.persisting = true
	if b == nil {
		u.before = u.wrote.by
		u.led = max(u.wrote.term+1, u.term)
	} else {
		b.sealed = true
	}
	u.do(strategy.Persist{ID: u.id, After: u.last, Data: u.entry(b, u.led)})
}

// due is when something is.
func (u *controller) due() (at time.Time) {
	if !u.reading {
		at = u.readAt
	}
	if u.leading {
		if at.IsZero() || u.beatAt.Before(at) {
			at = u.beatAt
		}
		if u.level.at.After(u.now) && u.level.at.Before(at) {
			at = u.level.at
		}
		if len(u.searches) > 0 && u.lookAt.Before(at) {
			at = u.lookAt
		}
		if len(u.deciding) > 0 && u.deciding[0].until.Before(at) {
			at = u.deciding[0].until
		}
	}
	return at
}

// row is what the table will say of a host when all is written.
func (u *controller) row(host string) hosttable.Row {
	for i := len(u.batches) - 1; i >= 0; i-- {
		if r, ok := u.batches[i].rows[host]; ok {
			return r
		}
	}
	r, _ := u.table.Get(host)
	return r
}

// set changes a host's row.
func (u *controller) set(host string, r hosttable.Row) {
	r.Since = uint32(u.now.Unix())
	u.put(host, r)
}

// put is set, but for the time.
func (u *controller) put(host string, r hosttable.Row) {
	var b *batch
	if n := len(u.batches); n > 0 {
		b = u.batches[n-1]
	}
	if b == nil || b.sealed || len(b.order) >= maxBatch {
		b = &batch{rows: map[string]hosttable.Row{}}
		u.batches = append(u.batches, b)
	}
	if _, there := b.rows[host]; !there {
		b.order = append(b.order, host)
	}
	b.rows[host] = r
	delete(b.notes, host)
}

// remark notes, with the row that was set last, why a host is parked.
func (u *controller) remark(host string, n note) {
	b := u.batches[len(u.batches)-1]
	if b.notes == nil {
		b.notes = map[string]note{}
	}
	n.failed = n.failed[:min(len(n.failed), maxFailed)]
	b.notes[host] = n
}

// maxFailed is how many nodes a note names.
const maxFailed = 8

// answer answers when all that is said of the host is durable: at once, mostly.
func (u *controller) answer(to strategy.Node, it item) {
	for i := len(u.batches) - 1; i >= 0; i-- {
		if _, there := u.batches[i].rows[it.host]; there {
			u.batches[i].answers = append(u.batches[i].answers, answer{to, it})
			return
		}
	}
	u.post(to, msgAnswer, it)
}
