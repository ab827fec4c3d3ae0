package frontier

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// sweepStep is the number of hosts in memory, and again on disk, that one call of Next examines.
const sweepStep = 1 << 11

// sweepHold is the number of hosts examined in one hold of the lock. If all hosts are in memory and at most sweepStep,
// one hold covers all.
const sweepHold = 1 << 8

// A Sweep finds the hosts that will take longest under their delays. Each call of Next examines a limited number of
// hosts, starting where the previous call ended, so its cost does not depend on the number of hosts. With few hosts one
// call examines all, otherwise several calls do. Its methods may be called concurrently.
type Sweep struct {
	inspector *Inspector
	n         int

	mu   sync.Mutex // guards all below; acquired before the frontier's lock
	cold uint32     // the last record examined
	best []string   // hosts returned by the last call of Next
}

// Sweep starts a search for the n hosts that take longest.
func (i *Inspector) Sweep(n int) *Sweep { return &Sweep{inspector: i, n: n} }

// RemainingTime returns the least time from now that the host's URLs take under its delay.
func (i *HostInfo) RemainingTime(now time.Time) time.Duration {
	left := max(0, i.Next.Sub(now))
	if i.Pending > 1 && i.Delay > 0 {
		const most = 1 << 62
		if rest := int64(i.Pending - 1); rest > most/int64(i.Delay) {
			return most
		}
		left += time.Duration(i.Pending-1) * i.Delay
	}
	return left
}

// Next examines some more hosts, and returns the hosts found so far that take longest, the longest first. It reads the
// names of hosts on disk.
func (s *Sweep) Next() []HostInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	best := longest{now: s.inspector.now(), n: s.n, met: map[uint32]bool{}}
	known := map[string]bool{}
	for _, key := range s.best {
		s.inspector.mu.Lock()
		info, _ := s.inspector.host(key)
		s.inspector.mu.Unlock()
		if info.Pending > 0 {
			best.add(info, 0)
			known[key] = true
		}
	}
	s.addHot(&best, known)
	s.addCold(&best)
	var hosts []HostInfo
	for _, c := range best.all {
		info, err := s.inspector.named(c)
		if err != nil || info.Key == "" || c.id != 0 && known[info.Key] {
			continue // a later call finds it again
		}
		hosts = append(hosts, info)
	}
	s.best = s.best[:0]
	for i := range hosts {
		s.best = append(s.best, hosts[i].Key)
	}
	return slices.Clip(hosts)
}

// addHot examines hosts in memory: all, or a random sample if there are too many.
func (s *Sweep) addHot(best *longest, known map[string]bool) {
	i := s.inspector
	for left := sweepStep; left > 0; left -= sweepHold {
		i.mu.Lock()
		n, hosts := 0, i.bench.hosts
		for key, h := range hosts { // a map iteration starts anywhere
			if n++; n > sweepHold && len(hosts) > sweepStep {
				break
			}
			if h.queue.count() > 0 && !known[key] {
				known[key] = true
				best.add(i.hotInfo(h), 0)
			}
		}
		all := n >= len(hosts)
		i.mu.Unlock()
		if all {
			return
		}
	}
}

// addCold examines the next hosts on disk.
func (s *Sweep) addCold(best *longest) {
	i := s.inspector
	if i.cold == nil {
		return
	}
	for left := sweepStep; left > 0; left -= sweepHold {
		i.mu.Lock()
		t := &i.cold.table
		for range min(sweepHold, t.n) {
			if s.cold++; s.cold > t.n {
				s.cold = 1
			}
			if t.at(s.cold).isCold() && !best.met[s.cold] {
				best.met[s.cold] = true
				best.add(i.coldInfo("", s.cold), s.cold)
			}
		}
		all := t.n <= sweepHold
		i.mu.Unlock()
		if all {
			return
		}
	}
}

// longest holds the n hosts that take longest.
type longest struct {
	now time.Time
	n   int
	all []selected
	met map[uint32]bool // cold hosts that were examined
}

// add adds a host if it takes longer than one of the others. Of equal hosts the one added first goes first, because its
// name need not be read.
func (l *longest) add(i HostInfo, id uint32) {
	at := len(l.all)
	for left := i.RemainingTime(l.now); at > 0; at-- {
		o := &l.all[at-1]
		if cmp.Or(cmp.Compare(left, o.RemainingTime(l.now)), cmp.Compare(i.Pending, o.Pending)) <= 0 {
			break
		}
	}
	if at == l.n {
		return
	}
	if len(l.all) == l.n {
		l.all = l.all[:l.n-1]
	}
	l.all = slices.Insert(l.all, at, selected{HostInfo: i, id: id})
}
