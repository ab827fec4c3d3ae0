package member

import "time"

// Timing contains the intervals and limits of a cluster's protocols.
type Timing struct {
	Beat time.Duration // between two renewals of a lease
	TTL  time.Duration // validity of a lease, from before the request to renew it
	// extra time that other nodes wait before they revoke a lease: 2 % of TTL, and as long as a process may stall
	// between a look at its clock and a request
	Margin time.Duration
	Retry  time.Duration // until an unanswered message is sent again; doubles up to eight times this value
	Window int           // chunks of a transfer that are read and not yet acknowledged
}

// LAN is for nodes that reach each other within a few milliseconds. Leases outlive the election of a registry leader,
// which takes up to nine seconds.
func LAN() Timing {
	return Timing{Beat: 2 * time.Second, TTL: 14 * time.Second, Margin: 2 * time.Second, Retry: 500 * time.Millisecond,
		Window: 16}
}

// WAN is for distant nodes: like LAN, with longer intervals and a larger window.
func WAN() Timing {
	return Timing{Beat: 5 * time.Second, TTL: 45 * time.Second, Margin: 5 * time.Second, Retry: 3 * time.Second,
		Window: 32}
}
