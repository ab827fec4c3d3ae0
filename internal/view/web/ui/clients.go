package ui

import (
	"net/netip"
	"slices"
	"sync"
)

// Slots are held by clients, at most limit of them at a time and at most perClient by one address. A client that finds
// none free evicts another: newcomers always get one, and one address cannot keep others out.
type slots struct {
	limit, perClient int

	mu     sync.Mutex // guards below
	held   int
	serial uint64
	owners map[netip.Prefix][]*slot // the oldest first
}

// A slot is held from acquire until release, or until evict is called.
type slot struct {
	owner  netip.Prefix
	serial uint64
	evict  func() // called without the lock, at most once, when another client gets the slot
}

func newSlots(limit, perClient int) *slots {
	return &slots{limit: limit, perClient: perClient, owners: map[netip.Prefix][]*slot{}}
}

// acquire gives the client at an address a slot. It evicts the client's own oldest one if the client has as many as it
// may, or else the oldest one of the address that holds most.
func (s *slots) acquire(remote string, evict func()) *slot {
	owner := network(remote)
	s.mu.Lock()
	var victim *slot
	switch own := s.owners[owner]; {
	case len(own) >= s.perClient:
		victim = own[0]
	case s.held >= s.limit:
		victim = s.oldestOfLargest(owner)
	}
	s.remove(victim)
	s.serial++
	added := &slot{owner: owner, serial: s.serial, evict: evict}
	s.owners[owner] = append(s.owners[owner], added)
	s.held++
	s.mu.Unlock()
	if victim != nil {
		victim.evict()
	}
	return added
}

// oldestOfLargest is the oldest slot of the owner that holds most, the newcomer's request included. The lock is held.
func (s *slots) oldestOfLargest(newcomer netip.Prefix) (oldest *slot) {
	largest := 0
	for owner, all := range s.owners {
		n := len(all)
		if owner == newcomer {
			n++
		}
		if n > largest || n == largest && all[0].serial < oldest.serial {
			largest, oldest = n, all[0]
		}
	}
	return oldest
}

// release frees a slot, unless it was evicted.
func (s *slots) release(x *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(x)
}

// remove removes a slot if it is there. The lock is held.
func (s *slots) remove(x *slot) {
	if x == nil {
		return
	}
	all := s.owners[x.owner]
	i := slices.Index(all, x)
	if i < 0 {
		return
	}
	s.held--
	if all = slices.Delete(all, i, i+1); len(all) == 0 {
		delete(s.owners, x.owner)
		return
	}
	s.owners[x.owner] = all
}

// network is what counts as one client: an IPv4 address, or the /64 network of an IPv6 address, of which one machine may
// use any number. All that has no such address is one client.
func network(remote string) netip.Prefix {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	addr, bits := at.Addr().Unmap().WithZone(""), 64
	if addr.Is4() {
		bits = 32
	}
	p, _ := addr.Prefix(bits) // the bits are right
	return p
}
