package mesh

import (
	"time"

	"kumo/internal/base/splitmix"
	"kumo/internal/base/xor"
)

// A status provides a node's tally.
type status struct {
	core    *core
	cfg     StatusConfig
	process uint64
	idle    func() bool
	partial func() bool    // whether missing nodes are waited for
	addGone func(t *Tally) // adds the pages of departed nodes
}

// own returns this node's tally.
func (s *status) own() Tally {
	t := Tally{Nodes: 1}
	if s.cfg.Figures != nil {
		t.Figures, t.Max = s.cfg.Figures()
	}
	s.addGone(&t)
	idle, activity := s.engine()
	if idle && s.idle() {
		t.Idle = 1
	}
	if s.partial() {
		t.AwaitingPeers = 1
	}
	t.Fingerprint = splitmix.Next(s.process ^ splitmix.Next(activity))
	return t
}

// engine reports whether the engine is idle, and how often this node has received anything.
func (s *status) engine() (idle bool, activity uint64) {
	if s.cfg.Engine == nil {
		return true, s.core.activity
	}
	idle, activity = s.cfg.Engine()
	return idle, activity + s.core.activity
}

// A termination detects the end of the crawl, at the node closest to an id that is the same in every mesh. It gathers
// twice: if all nodes are idle both times, and none has received anything in between, the crawl has ended (F. Mattern,
// Algorithms for distributed termination detection, 1987). Ended reports that.
type termination struct {
	core    *core
	place   *place
	gather  func(reports bool, f func(Tally))
	own     func() Tally
	version func() uint64 // of the crawl's record; 0: no crawl is known

	id        xor.ID
	scheduled bool // a timer is set
	running   bool // gatherings are running
}

// endEvery is the interval between two attempts to detect the end.
const endEvery = 2 * time.Second

// isHere reports whether this node is responsible for detecting the end.
func (e *termination) isHere() bool { return e.place.closest(e.id) }

// schedule schedules gatherings if this node is responsible for detecting the end.
func (e *termination) schedule() {
	if !e.scheduled && e.isHere() {
		e.scheduled = true
		e.core.after(endEvery, e.gatherTwice)
	}
}

// gatherTwice starts the gatherings, as long as this node is responsible for detecting the end.
func (e *termination) gatherTwice() {
	if e.scheduled = e.isHere(); !e.scheduled {
		return // until the neighbors change, or the knowledge of them is fresh
	}
	e.core.after(endEvery, e.gatherTwice)
	// if this node has no record, other nodes may have one
	if e.running || e.place.alone.waits() || e.version() == 0 || e.own().Idle == 0 {
		return
	}
	e.running = true
	e.gather(false, func(first Tally) {
		if !first.allIdle() {
			e.running = false
			return
		}
		version := e.version()
		e.gather(false, func(second Tally) {
			e.running = false
			same := second.Fingerprint == first.Fingerprint && second.Nodes == first.Nodes && version == e.version()
			if second.allIdle() && same {
				e.core.do(Ended{Nodes: second.Nodes, Version: version})
			}
		})
	})
}

// allIdle reports whether all nodes have answered, and are idle.
func (t *Tally) allIdle() bool { return t.Missing == 0 && t.Idle == t.Nodes && !t.isPartial() }

// isPartial reports whether the nodes of a tally may be only a part of the network, because so many of them wait for
// others that do not answer: newcomers that have only met each other, or one side of a partition. Only nodes near a
// missing one, or with it in their tables, notice that it does not answer. The tasks of a single missing node are known
// to other nodes.
func (t *Tally) isPartial() bool { return partOf*t.AwaitingPeers > t.Nodes }

const partOf = 8
