package frontier

import (
	"net/netip"
	"time"

	"kumo/internal/base/item"
)

// An address is a server's, with the clock that the hosts there share.
type address struct {
	hosts  int       // in memory
	ghosts int       // hosts that left memory while the clock ran
	host   string    // whose slices all of these are, where hosts are cut into several; "" if they are several hosts'
	next   time.Time // of the next free turn
}

// ShareAddresses says that n frontiers have hosts that may be at the same addresses: turns are n times as far apart
// then, so that the servers see no more of all together.
func (f *Frontier) ShareAddresses(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sharers = n
	f.addrDelay = f.cfg.AddrDelay * time.Duration(max(n, 1))
}

// Reserve asks for the visit's turn at the address its host resolves to. Hosts that share an address take turns,
// Config.AddrDelay apart from start to start, or a multiple of it (ShareAddresses); a host alone at its address has no
// turns to take, nor have its slices. When it returns false, the turn is later: the visit is over, and its item is
// handed out again at its turn.
func (f *Frontier) Reserve(v *Visit, addr netip.Addr) bool {
	if !addr.IsValid() {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.addrDelay <= 0 {
		return true
	}
	h, now := v.host, f.cfg.Now()
	a := f.at(h, addr)
	slot := h.slot
	h.slot = time.Time{}
	switch {
	case !slot.IsZero() && !now.Before(slot) && now.Before(slot.Add(f.addrDelay)):
		return true // its own turn; one that was missed is gone
	case a.hosts+a.ghosts < 2 || a.host != "" || !now.Before(a.next):
		a.ghosts = 0
		a.next = now.Add(f.addrDelay)
		return true
	}
	h.slot = a.next
	a.next = a.next.Add(f.addrDelay)
	if f.crowded == nil || a.next.After(f.crowded.next) {
		f.crowded, f.crowdedAt = a, addr
	}
	f.postpone(v, h.slot)
	return false
}

// A Crowd is hosts that wait for their turn at an address that they share.
type Crowd struct {
	Addr  netip.Addr
	Hosts int
	Every time.Duration // a turn
}

// Wait is when the last of them has its turn.
func (c Crowd) Wait() time.Duration { return time.Duration(c.Hosts) * c.Every }

// crowd is the largest one; none if nobody waits.
func (f *Frontier) crowd() (c Crowd) {
	if f.crowded == nil || f.addrDelay <= 0 {
		return c
	}
	// it is when the next that comes would have its turn
	if until := f.crowded.next.Sub(f.cfg.Now()); until > f.addrDelay {
		c = Crowd{f.crowdedAt, int((until - 1) / f.addrDelay), f.addrDelay}
	}
	return c
}

// at moves the host to its address.
func (f *Frontier) at(h *host, addr netip.Addr) *address {
	if h.addr == addr {
		return f.addrs[addr]
	}
	f.leave(h)
	a := f.addrs[addr]
	if a == nil {
		a = &address{}
		if f.slices != nil {
			a.host = item.HostOfSlice(h.key)
		}
		f.addrs[addr] = a
	}
	if a.host != "" && a.host != item.HostOfSlice(h.key) {
		a.host = ""
	}
	a.hosts++
	if h.addr.IsValid() {
		h.slot = time.Time{}
	}
	h.addr = addr
	return a
}

// leave takes the host from its address.
func (f *Frontier) leave(h *host) {
	a := f.addrs[h.addr]
	if a == nil {
		return
	}
	a.hosts--
	switch {
	case f.cfg.Now().Before(a.next):
		a.ghosts++
	case a.hosts == 0:
		delete(f.addrs, h.addr)
	}
	if len(f.addrs) > 2*f.swept+1000 {
		f.sweepAddrs()
	}
}

// sweepAddrs forgets the addresses where nobody is and whose clocks have run out.
func (f *Frontier) sweepAddrs() {
	now := f.cfg.Now()
	for addr, a := range f.addrs {
		if a.hosts == 0 && !now.Before(a.next) {
			delete(f.addrs, addr)
		}
	}
	f.swept = len(f.addrs)
}
