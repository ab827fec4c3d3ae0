package member

import "time"

// Timing is how long things take between the nodes of a cluster.
type Timing struct {
	Beat time.Duration // between two renewals of a lease
	TTL  time.Duration // how long a lease holds, from before its renewal was asked for
	// how much longer others wait: 2 % of TTL and what a process may stand still between a look at its clock and a request
	Margin time.Duration
	Retry  time.Duration // until a message without an answer is sent again, doubled with each up to eight times as long
	Window int           // chunks that one transfer has read and not seen taken
}

// LAN is for nodes that reach each other within a few milliseconds. A registry that elects a new leader is away for up
// to nine seconds; leases outlive that.
func LAN() Timing {
	return Timing{Beat: 2 * time.Second, TTL: 14 * time.Second, Margin: 2 * time.Second, Retry: 500 * time.Millisecond,
		Window: 16}
}

// WAN is for nodes that are far from each other: LAN but for longer times, and more on its way at once.
func WAN() Timing {
	return Timing{Beat: 5 * time.Second, TTL: 45 * time.Second, Margin: 5 * time.Second, Retry: 3 * time.Second,
		Window: 32}
}
