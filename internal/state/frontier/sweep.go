package frontier

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// sweepStep is how many hosts in memory, and as many on the disk, one Look goes through.
const sweepStep = 1 << 11

// sweepHold is how many of these are examined in one hold of the lock, unless all are in memory and no more than that.
const sweepHold = 1 << 8

// A Sweep finds the hosts that will take the longest under their delays. Each Look goes through a limited number of
// hosts, starting where the previous one has ended, so that it costs the same however many there are. It goes through
// all hosts if there are no more than that; otherwise several Looks do. Its methods may be called by many goroutines at
// once.
type Sweep struct {
	inspector *Inspector
	n         int

	mu   sync.Mutex // guards all below; acquired before the frontier's
	cold uint32     // the last record
	best []string   // hosts, by the last Look
}

// Sweep begins to look for the n hosts that take longest.
func (i *Inspector) Sweep(n int) *Sweep { return &Sweep{inspector: i, n: n} }

// RemainingTime is the least time that the host's URLs take under its delay, from now on.
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

// Next goes through some more hosts, and returns those known that take longest, the longest first. It reads the names
// of hosts that are on the disk.
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
			continue // a later Look finds it again
		}
		hosts = append(hosts, info)
	}
	s.best = s.best[:0]
	for i := range hosts {
		s.best = append(s.best, hosts[i].Key)
	}
	return slices.Clip(hosts)
}

// addHot examines hosts in memory: all, or a random selection if there are too many.
func (s *Sweep) addHot(best *longest, known map[string]bool) {
	i := s.inspector
	for left := sweepStep; left > 0; left -= sweepHold {
		i.mu.Lock()
		n, hosts := 0, i.bench.hosts
		for key, h := range hosts { // a map's iteration begins anywhere
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

// addCold examines the next hosts on the disk.
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

// longest keeps the n hosts that take longest.
type longest struct {
	now time.Time
	n   int
	all []selected
	met map[uint32]bool // cold hosts that were examined
}

// add adds a host if it takes longer than one of the others. Of equal hosts those added first go first, as their names
// need not be read.
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
