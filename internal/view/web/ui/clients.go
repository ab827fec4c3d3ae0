package ui

import (
	"net/netip"
	"slices"
	"sync"
)

// slots are held by clients, at most limit in total and at most perClient per address. If none is free, a new client
// evicts another: newcomers always get a slot, and one address cannot keep others out.
type slots struct {
	limit, perClient int

	mu     sync.Mutex // guards the fields below
	held   int
	serial uint64
	owners map[netip.Prefix][]*slot // oldest first
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

// acquire returns a slot for the client at an address. If the client has its maximum, it evicts the client's oldest
// slot. If all slots are taken, it evicts the oldest slot of the address with most.
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

// oldestOfLargest returns the oldest slot of the owner with most slots, including the newcomer's request. The caller
// holds the lock.
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

// remove removes a slot if it is present. The caller holds the lock.
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

// network returns the network that counts as one client: an IPv4 address, or the /64 network of an IPv6 address, in
// which one machine may use any number of addresses. All clients without an IP address count as one.
func network(remote string) netip.Prefix {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	addr, bits := at.Addr().Unmap().WithZone(""), 64
	if addr.Is4() {
		bits = 32
	}
	p, _ := addr.Prefix(bits) // the bits are valid
	return p
}
