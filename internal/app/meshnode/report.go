package meshnode

import (
	"encoding/json"
	"time"

	"kumo/internal/app/meshnode/control"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/member/peer"
	"kumo/internal/cluster/strategy"
)

// A reporter creates this node's reports, and has the events that it observed. It belongs to the loop.
type reporter struct {
	self                      strategy.Node
	version, address, browser string
	figures                   func() Figures // may be nil
	until                     func(time.Time) time.Duration
	engine                    *engineRef
	msgs                      *messages
	history                   *historyWorker
	watcher                   *recordWatcher
	peer                      *peer.Peer // set later: it calls the reporter
	chronicler                chronicler
}

// isIdle reports whether nothing is pending or in progress here, and returns the number of inputs received so far.
func (r *reporter) isIdle() (idle bool, came uint64) {
	e := r.engine.get()
	if e == nil {
		return false, uint64(r.watcher.received.Load())
	}
	return e.Idle() && r.history.idle() && r.watcher.idle(), uint64(e.Received() + r.watcher.received.Load())
}

// pageUse returns what the engine has used of the page limit; false if there is no engine.
func (r *reporter) pageUse() (u mesh.PageUse, ok bool) {
	e := r.engine.get()
	if e == nil {
		return u, false
	}
	f := r.figures()
	// Done is read first: a page that ends in between is only counted as in progress
	u.Done = e.CountedPages()
	u.Used, u.Busy = max(e.UsedPages(), u.Done), f.Waiting+f.InFlight > 0
	return u, true
}

func (r *reporter) make() control.Report {
	var f Figures
	if r.figures != nil {
		f = r.figures()
	}
	idle, _ := r.isIdle()
	b := r.peer.Machine().Balance()
	alone := time.Duration(0)
	if lost := r.peer.Machine().AloneSince(); !lost.IsZero() {
		alone = max(-r.until(lost), time.Millisecond)
	}
	return control.Report{Node: string(r.self), Version: r.version, Address: r.address,
		Browser: r.browser,
		State:   r.watcher.known.Load().record.State, Member: r.engine.get() != nil && r.peer.Machine().KnowsPlace(),
		Idle: idle, Work: f.Work, MessageBytes: r.msgs.sent.Load(), Peers: f.Peers,
		Backlog: b.Backlog.Seconds(), Level: b.Level, Delegated: b.Delegated, Guests: b.Guests,
		Alone: alone.Seconds(), Condition: f.Condition, Clock: time.Now().UTC(),
		Events: r.chronicler.recent(r.peer.Overlay().Size())}
}

func (r *reporter) json() []byte {
	x := r.make()
	data, err := json.Marshal(&x)
	if err != nil {
		return nil // cannot happen: plain fields only
	}
	return data
}

func (r *reporter) sums() (sums []int64, greatest []uint64) {
	x := r.make()
	sums = x.Figures()
	if r.figures != nil {
		sums[control.SumBytes] = r.figures().Bytes
	}
	return sums, []uint64{control.MaxRunSeconds: r.watcher.runSeconds()}
}
