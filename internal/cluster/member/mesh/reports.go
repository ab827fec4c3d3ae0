package mesh

import (
	"time"

	"kumo/internal/cluster/strategy"
)

// A contact is the first backup of a host, as the host's target knows it.
type contact struct {
	host  string
	node  strategy.Node // the backup that has last dispatched links, or sent a query; "": unknown
	heard time.Time     // time of that
	again bool          // the last lookup is outdated: the node has refused an item, or not answered
}

// reports deliver a target's items to the current first backup of a host.
//
// Invariant: an item is repeated until a backup has accepted it. accepted is called once.
type reports struct {
	core     *core
	place    *place
	mail     poster
	lookups  finder
	mayLearn func(strategy.Node) bool // whether a node may learn that URLs are done
}

// send delivers an item.
func (s *reports) send(c *contact, it item, accepted func()) { s.sendTo(c, it, 0, accepted) }

// sendTo delivers an item to the backup with an index, if the contact is unknown. Any backup accepts fetched URLs: if
// the first does not answer, the next one receives them.
func (s *reports) sendTo(c *contact, it item, index int, accepted func()) {
	if c.node != "" {
		s.post(c, c.node, it, index, accepted)
		return
	}
	s.lookups.find(s.place.backupID(c.host), c.again, func(nodes []strategy.Node) {
		c.again = false
		if index >= len(nodes) {
			s.core.after(pause, func() { s.sendTo(c, it, 0, accepted) })
			return
		}
		s.post(c, nodes[index], it, index, accepted)
	})
}

func (s *reports) post(c *contact, to strategy.Node, it item, index int, accepted func()) {
	retry := func() {
		c.node, c.again = "", true
		s.core.after(pause, func() { s.sendTo(c, it, 0, accepted) })
	}
	if it.kind == itemMarks && !s.mayLearn(to) {
		retry()
		return
	}
	s.mail.post(to, it, func(_ strategy.Node, r *reply) {
		switch {
		case r != nil && r.code == replyYes:
			accepted()
		case r == nil && it.kind == itemMarks:
			c.node, c.again = "", true
			s.sendTo(c, it, index+1, accepted)
		default:
			retry()
		}
	})
}
