package outage

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMemoryIsBounded(t *testing.T) {
	s := newLineStory(t, 0)
	for n := range 10 * maxHosts {
		s.pass(time.Second)
		s.works(n, 0)
		s.o.AddSeed(origin(-n))
	}
	m := &s.o.memory
	if len(m.hosts) != maxHosts || len(m.index) != maxHosts || m.pinned != maxPinned || len(m.seeds) != maxSeeds {
		t.Errorf("%d hosts, %d places, %d elders, %d seeds", len(m.hosts), len(m.index), m.pinned, len(m.seeds))
	}
	for n := range maxPinned {
		if _, kept := m.index[uint64(n)]; !kept {
			t.Errorf("elder %d is displaced", n)
		}
	}
	for hash := range m.index {
		s.o.Forget(hash)
	}
	if len(m.hosts) != 0 || len(m.index) != 0 || m.pinned != 0 {
		t.Errorf("%d hosts, %d places, %d elders are left", len(m.hosts), len(m.index), m.pinned)
	}
}

// wildcard returns one of any number of hosts of an owner with a few domains.
func wildcard(n, domains int) Origin {
	return Origin{URL: fmt.Sprintf("http://h%d.evil%d.test", n, n%domains), Hash: uint64(1000 + n), LooksUp: true}
}

// An owner of a few domains with any number of hosts, which all answer last and then disappear, cannot make the crawl
// seem offline: hosts of others, and seeds, are checked, and early.
func TestAnOwnerOfAFewDomainsDoesNotFillTheMemory(t *testing.T) {
	for _, seedsOnly := range []bool{false, true} {
		s := newLineStory(t, 0)
		s.o.AddSeed(origin(0))
		honest := 20
		if seedsOnly {
			honest = 0
		}
		for n := range honest {
			s.works(n)
		}
		for n := range 3000 {
			s.pass(time.Millisecond)
			s.o.Answered(s.now, wildcard(n, 3))
		}
		if n := len(s.o.memory.hosts); n > honest+3*perDomain {
			t.Errorf("%d hosts are remembered", n)
		}
		s.pass(time.Second)
		for n := 2990; s.o.State == Up; n++ {
			s.o.Failed(&FailedVisit{At: s.now, Origin: wildcard(n, 3), Layer: LayerConnection, AnsweredBefore: true})
		}
		first := slices.IndexFunc(s.o.Check().Origins, func(o string) bool { return !strings.Contains(o, "evil") })
		if first < 0 || first > seedEvery {
			t.Errorf("only seeds %v: the first host of others is target %d", seedsOnly, first)
		}
		s.check(true, doubtEnded)
	}
}

func TestHostsOfAnIPv6NetworkAreOfOneDomain(t *testing.T) {
	s := newLineStory(t, 0)
	for n := range 100 {
		s.o.Answered(s.now, Origin{URL: fmt.Sprintf("http://[2001:db8:0:%x::1]", n), Hash: uint64(n)})
	}
	if n := len(s.o.memory.hosts); n != perDomain || s.o.memory.domains() != 1 {
		t.Errorf("%d hosts of %d domains are remembered", n, s.o.memory.domains())
	}
}

// Hosts whose names are not resolved, such as those of --resolve, prove nothing about name servers.
func TestOnlyHostsThatAreLookedUpTellOfNames(t *testing.T) {
	s := newLineStory(t, 0)
	for n := range 4 {
		s.o.Answered(s.now, Origin{URL: originNo(n), Hash: uint64(n)})
	}
	dead := s.miss(9, LayerDNS)
	dead.AnsweredBefore = false
	if s.o.Failed(dead) || !s.o.HostAtFault(dead, s.now) {
		t.Error("a name that does not exist is an outage where no name was ever looked up")
	}
	s.want(Up)
	s.works(5)
	s.pass(time.Minute)
	if dead.At = s.now; s.o.HostAtFault(dead, s.now) {
		t.Error("the name is to blame although no name was found since")
	}
	if to := s.o.Check().Origins; !slices.Equal(to, []string{originNo(5)}) {
		t.Errorf("checks %v", to)
	}
}

// While names cannot be resolved, hosts that need no resolution are still visited, as long as any host answers. Their
// answers do not end the outage.
func TestAnOutageHoldsOnlyHostsThatDependOnIt(t *testing.T) {
	s := newLineStory(t, 0)
	s.works(1, 2, 3)
	fixed := Origin{URL: originNo(7), Hash: 7}
	s.pass(time.Minute)
	for n := 1; n <= 3; n++ {
		s.o.Failed(s.miss(n, LayerDNS))
	}
	s.goesDown(WentDown)
	for range 10 {
		s.pass(silence / 2)
		s.o.Answered(s.now, fixed)
		if s.want(Down); s.o.Affects(fixed) || !s.o.Affects(origin(1)) || s.o.BlocksAll(s.now) {
			t.Fatal("a host without a name is held back")
		}
	}
	if s.pass(silence); !s.o.BlocksAll(s.now) {
		t.Error("nothing has answered for minutes, and hosts are still visited")
	}
	if ev := s.o.Resolved(s.now); ev != Recovered {
		t.Errorf("a name that is found is event %d", ev)
	}

	s = newLineStory(t, 0)
	proxied := origin(1)
	proxied.Proxied = true
	s.o.Answered(s.now, proxied)
	s.o.Failed(s.ownMiss(1))
	s.goesDown(WentDown)
	s.pass(time.Second)
	if s.o.Answered(s.now, fixed); s.o.State != Down || s.o.BlocksAll(s.now) || s.o.Affects(fixed) {
		t.Error("an answer without the proxy ends its outage, or such hosts are held back")
	}
	if ev := s.o.Answered(s.now, proxied); ev != Recovered {
		t.Errorf("an answer by way of the proxy is event %d", ev)
	}
}
