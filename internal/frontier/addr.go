package frontier

import (
	"net/netip"
	"time"
)

// An address is a server's, with the clock that the hosts there share.
type address struct {
	hosts int
	next  time.Time // of the next free turn
}

// Reserve asks for the visit's turn at the address its host resolves to. Hosts that share an address take turns,
// Config.AddrDelay apart from start to start; a host alone at its address has no turns to take. When it returns false, the turn
// is later: the visit is over, and its item is handed out again at its turn.
func (f *Frontier) Reserve(v *Visit, addr netip.Addr) bool {
	if f.cfg.AddrDelay <= 0 || !addr.IsValid() {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	h, now := v.host, f.cfg.Now()
	a := f.at(h, addr)
	slot := h.slot
	h.slot = time.Time{}
	switch {
	case !slot.IsZero() && !now.Before(slot) && now.Before(slot.Add(f.cfg.AddrDelay)):
		return true // its own turn; one that was missed is gone
	case a.hosts < 2 || !now.Before(a.next):
		a.next = now.Add(f.cfg.AddrDelay)
		return true
	}
	h.slot = a.next
	a.next = a.next.Add(f.cfg.AddrDelay)
	f.postpone(v, h.slot)
	return false
}

// at moves the host to its address.
func (f *Frontier) at(h *host, addr netip.Addr) *address {
	if h.addr == addr {
		return f.addrs[addr]
	}
	if old := f.addrs[h.addr]; old != nil {
		old.hosts--
	}
	a := f.addrs[addr]
	if a == nil {
		a = &address{}
		f.addrs[addr] = a
	}
	a.hosts++
	h.addr, h.slot = addr, time.Time{}
	return a
}
