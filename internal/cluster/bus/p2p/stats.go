package p2p

import "sync/atomic"

type counts struct {
	sent, received, overflow, unreachable, broken, slowed, garbage, refused, evicted atomic.Int64

	refusal atomic.Int64 // when one was last logged, in nanoseconds
}

// Stats are what has happened since Open, and what is.
type Stats struct {
	Peers   int // nodes that are connected
	Relayed int // of these, those that are reached by relay alone

	Sent        int64 // messages that were given to Send
	Received    int64 // that were given to Receive's function
	Overflow    int64 // that were dropped because too many waited for their receiver
	Unreachable int64 // because it could not be reached
	Broken      int64 // that were being written when a connection broke

	Slowed  int64 // how often a node was not read for a while because it sent too much
	Garbage int64 // nodes that were disconnected for what they sent
	Refused int64 // connections whose peers did not prove to be members
	Evicted int64 // nodes that were disconnected for others, unused
}

// Stats are the messenger's.
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
