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
	sharers   int           // frontiers that may have hosts at the same addresses; 0 means 1
	sliced    bool          // hosts are divided into slices
	busiest   *address      // the address whose last turn is the latest
	crowdedAt netip.Addr
	swept     int // number of addresses that the last sweep retained
}

// An address is a server address with the clock that its hosts share.
type address struct {
	hosts    int       // hosts in memory
	departed int       // hosts that left memory while the clock ran
	host     string    // the host, if all hosts here are slices of it; else ""
	next     time.Time // time of the next free turn
}

// An addressTurn is the part of a host that addresses owns.
type addressTurn struct {
	addr netip.Addr
	turn time.Time // the host's turn at a shared address; zero if it has none
}

func newAddresses(delay time.Duration, sliced bool) *addresses {
	return &addresses{byAddr: map[netip.Addr]*address{}, delay: delay, interval: delay, sliced: sliced}
}

// set sets Config.AddrDelay and the number of frontiers that share addresses.
func (a *addresses) set(delay time.Duration, sharers int) {
	a.delay, a.sharers = delay, sharers
	a.interval = delay * time.Duration(max(sharers, 1))
}

// reserve reserves the turn of a host at an address. It returns the time of the turn if that is in the future, else
// zero.
func (a *addresses) reserve(h *addressTurn, host string, addr netip.Addr, now time.Time) (later time.Time) {
	if a.interval <= 0 {
		return time.Time{}
	}
	at := a.move(h, host, addr, now)
	turn := h.turn
	h.turn = time.Time{}
	switch {
	case !turn.IsZero() && !now.Before(turn) && now.Before(turn.Add(a.interval)):
		return time.Time{} // the host's own turn has come; a missed turn expires
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

// leave removes a host from its address.
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

// sweep removes the addresses without hosts whose clocks have run out.
func (a *addresses) sweep(now time.Time) {
	for addr, at := range a.byAddr {
		if at.hosts == 0 && !now.Before(at.next) {
			delete(a.byAddr, addr)
		}
	}
	a.swept = len(a.byAddr)
}

// An AddressQueue describes the hosts that wait for their turn at an address.
type AddressQueue struct {
	Addr     netip.Addr
	Hosts    int
	Interval time.Duration // time between two turns
}

// Wait is the time until the last host's turn.
func (c AddressQueue) Wait() time.Duration { return time.Duration(c.Hosts) * c.Interval }

// longestQueue returns the longest queue, or the zero AddressQueue if no host waits.
func (a *addresses) longestQueue(now time.Time) (c AddressQueue) {
	if a.busiest == nil || a.interval <= 0 {
		return c
	}
	if until := a.busiest.next.Sub(now); until > a.interval { // next is the turn of one more host
		c = AddressQueue{a.crowdedAt, int((until - 1) / a.interval), a.interval}
	}
	return c
}
