package frontier

import (
	"net/netip"
	"time"

	"kumo/internal/base/item"
)

// addresses lets the hosts at one server address take turns. The frontier's lock guards it.
type addresses struct {
	byAddr    map[netip.Addr]*address
	delay     time.Duration // Config.AddrDelay
	interval  time.Duration // between two turns: delay times sharers
	sharers   int           // frontiers that may have hosts at the same addresses; 0 is 1
	sliced    bool          // hosts are divided into slices
	busiest   *address      // the one whose last turn is the latest
	crowdedAt netip.Addr
	swept     int // addresses that the last sweep left
}

// An address is a server's, with the clock that its hosts share.
type address struct {
	hosts    int       // in memory
	departed int       // hosts that left memory while the clock ran
	host     string    // if all are slices of one host: that one; else ""
	next     time.Time // of the next free turn
}

// An addressTurn is what a host has of addresses.
type addressTurn struct {
	addr netip.Addr
	turn time.Time // its turn at a shared address, zero if it has none
}

func newAddresses(delay time.Duration, sliced bool) *addresses {
	return &addresses{byAddr: map[netip.Addr]*address{}, delay: delay, interval: delay, sliced: sliced}
}

// nextSet sets Config.AddrDelay, and the number of frontiers that share addresses.
func (a *addresses) set(delay time.Duration, sharers int) {
	a.delay, a.sharers = delay, sharers
	a.interval = delay * time.Duration(max(sharers, 1))
}

// reserve asks for the turn of a host at an address. If it is later, it returns when; else zero.
func (a *addresses) reserve(h *addressTurn, host string, addr netip.Addr, now time.Time) (later time.Time) {
	if a.interval <= 0 {
		return time.Time{}
	}
	at := a.move(h, host, addr, now)
	turn := h.turn
	h.turn = time.Time{}
	switch {
	case !turn.IsZero() && !now.Before(turn) && now.Before(turn.Add(a.interval)):
		return time.Time{} // its own turn; one that was missed is gone
	case at.hosts+at.departed < 2 || at.host != "" || !now.Before(at.next):
		at.departed = 0
		at.next = now.Add(a.interval)
		return time.Time{}
	}
	h.turn = at.next
	at.next = at.next.Add(a.interval)
	if a.busiest == nil || at.next.After(a.busiest.next) {
		a.busiest, a.crowdedAt = at, addr
	}
	return h.turn
}

// move moves a host to an address.
func (a *addresses) move(h *addressTurn, host string, addr netip.Addr, now time.Time) *address {
	if h.addr == addr {
		return a.byAddr[addr]
	}
	a.leave(h, now)
	at := a.byAddr[addr]
	if at == nil {
		at = &address{}
		if a.sliced {
			at.host = item.HostOfSlice(host)
		}
		a.byAddr[addr] = at
	}
	if at.host != "" && at.host != item.HostOfSlice(host) {
		at.host = ""
	}
	at.hosts++
	if h.addr.IsValid() {
		h.turn = time.Time{}
	}
	h.addr = addr
	return at
}

// leave takes a host from its address.
func (a *addresses) leave(h *addressTurn, now time.Time) {
	at := a.byAddr[h.addr]
	if at == nil {
		return
	}
	at.hosts--
	switch {
	case now.Before(at.next):
		at.departed++
	case at.hosts == 0:
		delete(a.byAddr, h.addr)
	}
	if len(a.byAddr) > 2*a.swept+1000 {
		a.sweep(now)
	}
}

// sweep forgets the addresses without hosts whose clocks have run out.
func (a *addresses) sweep(now time.Time) {
	for addr, at := range a.byAddr {
		if at.hosts == 0 && !now.Before(at.next) {
			delete(a.byAddr, addr)
		}
	}
	a.swept = len(a.byAddr)
}

// A Crowd is the hosts that wait for their turn at an address.
type AddressQueue struct {
	Addr     netip.Addr
	Hosts    int
	Interval time.Duration // one turn
}

// Wait is the time until the last host's turn.
func (c AddressQueue) Wait() time.Duration { return time.Duration(c.Hosts) * c.Interval }

// longestQueue returns the largest crowd, the zero Crowd if there is none.
func (a *addresses) longestQueue(now time.Time) (c AddressQueue) {
	if a.busiest == nil || a.interval <= 0 {
		return c
	}
	if until := a.busiest.next.Sub(now); until > a.interval { // next is the turn of one host more
		c = AddressQueue{a.crowdedAt, int((until - 1) / a.interval), a.interval}
	}
	return c
}
