package p2p

import "sync/atomic"

type counts struct {
	sent, received, overflow, unreachable, broken, slowed, garbage, refused, evicted atomic.Int64

	refusal atomic.Int64 // time of the last logged refusal, in Unix nanoseconds
}

// Stats are counters since Open, and the current numbers of nodes.
type Stats struct {
	Peers   int // connected nodes
	Relayed int // connected nodes that are reached by relays only

	Sent        int64 // messages passed to Send
	Received    int64 // messages passed to Receive's function
	Overflow    int64 // messages dropped because the receiver's queue was full
	Unreachable int64 // messages dropped because the receiver could not be reached
	Broken      int64 // messages being written when a connection broke

	Slowed  int64 // times that a node was not read for a while because it sent too much
	Garbage int64 // nodes disconnected for protocol violations
	Refused int64 // connections of peers that did not prove their membership
	Evicted int64 // nodes disconnected as unused, in favor of others
}

// Stats returns the messenger's counters.
func (m *Messenger) Stats() Stats {
	c := &m.counts
	s := Stats{Sent: c.sent.Load(), Received: c.received.Load(), Overflow: c.overflow.Load(),
		Unreachable: c.unreachable.Load(), Broken: c.broken.Load(), Slowed: c.slowed.Load(), Garbage: c.garbage.Load(),
		Refused: c.refused.Load(), Evicted: c.evicted.Load()}
	for _, p := range m.connected() {
		s.Peers++
		if l := p.link(); l != nil && l.relayed {
			s.Relayed++
		}
	}
	return s
}
