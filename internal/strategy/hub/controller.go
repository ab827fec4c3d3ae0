package hub

import (
	"time"

	"kumo/internal/strategy"
	"kumo/internal/strategy/hub/hosttable"
	"kumo/internal/strategy/leader"
)

// A controller is the control unit, or one that would take its place: it has what the control unit writes.
type controller struct {
	*Hub
	hosts
	leadAt  time.Time     // since when it is the control unit
	mute    strategy.Node // who led before, and was not heard since
	batches []*batch
	lookAt  time.Time // for searches that have waited too long

	searches map[string]*placementSearch
	deciding []*placementSearch    // that have a claim, in the order of their time
	promised map[strategy.Node]int // hosts that are granted and not in the table yet
	asking   map[strategy.Node]int // hosts that a node is being asked for
	near     latencyHints
	level    level
	offers   map[string]*offer // hosts that may move for load
	gatherBy time.Time         // until then, at most, the first hosts of a crawl wait for more members; zero: they do not
}

var _ leader.Replica = (*controller)(nil)

// States of a row.
const (
	rowReached  uint8 = iota // its owner reaches the host, or has been left alone with it
	rowParked                // its owner is not known to
	rowPromised              // its owner reaches it, and gets it from another that holds it
)

// roundMoved in a row's Round, where that is reached or promised, says that the host has moved, or moves, to a node
// that had less to do.
const roundMoved uint8 = 1 << 7

func newController(h *Hub) *controller {
	return &controller{Hub: h, hosts: newHosts(h.cfg.Key), searches: map[string]*placementSearch{},
		promised: map[strategy.Node]int{}, asking: map[strategy.Node]int{}, near: newLatencyHints(), level: newLevel(),
		offers: map[string]*offer{}}
}

// Elected begins a term.
func (u *controller) Elected(after strategy.Node) {
	u.leadAt = u.now
	if after != "" {
		u.mute = after
	}
	if u.gatherBy = (time.Time{}); u.table.Len() == 0 && u.cfg.Gather > 0 {
		u.gatherBy = u.now.Add(gathers * u.cfg.Gather)
	}
}

// Committed answers what waited for the first batch to be durable.
func (u *controller) Committed() {
	b := u.batches[0]
	u.batches = u.batches[1:]
	if len(u.batches) == 0 {
		clear(u.promised)
	}
	for _, a := range b.answers {
		u.post(a.to, leader.Answer, a.it)
	}
}

// Deposed forgets what the log does not keep.
func (u *controller) Deposed() {
	u.batches = nil
	u.searches, u.deciding = map[string]*placementSearch{}, nil
	clear(u.promised)
	clear(u.asking)
	u.level, u.offers = newLevel(), map[string]*offer{}
}

func (u *controller) advance() {
	u.decide()
	u.judge()
	u.even()
	if u.elector.Ready() && len(u.batches) > 0 {
		u.batches[0].sealed = true
		u.elector.Append(u.batches[0].changes())
	}
}

// due is when something is, if this is the control unit; zero: nothing is.
func (u *controller) due() (at time.Time) {
	if u.level.at.After(u.now) {
		at = u.level.at
	}
	if len(u.searches) > 0 {
		at = earliest(at, u.lookAt)
	}
	if len(u.deciding) > 0 {
		at = earliest(at, u.deciding[0].until)
	}
	return at
}

// earliest is the first of two times; zero is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
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
	u.post(to, leader.Answer, it)
}
