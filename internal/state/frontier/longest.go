package frontier

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// sweepStep is how many hosts in memory, and as many on the disk, one look of a Sweep goes through.
const sweepStep = 1 << 11

// sweepHold is how many of these are looked at in one hold of the lock, unless all are in memory and no more than that.
const sweepHold = 1 << 8

// A Sweep keeps the hosts known that will take the longest under their delays. Each look goes through a bounded number
// of hosts, where the one before has ended, so that it costs the same however many there are; all hosts are met if
// there are no more than that, and of more each after some looks. Its methods may be called by many goroutines at once.
type Sweep struct {
	f *Frontier
	n int

	mu   sync.Mutex // guards below
	cold uint32     // the record looked at last
	best []string   // hosts, as the last look left them
}

// Sweep begins to look for the n hosts that take longest.
func (f *Frontier) Sweep(n int) *Sweep { return &Sweep{f: f, n: n} }

// Left is how long a host's URLs take at least under its delay, from now on.
func (i *HostInfo) Left(now time.Time) time.Duration {
	left := max(0, i.Next.Sub(now))
	if i.Waiting > 1 && i.Delay > 0 {
		const most = 1 << 62
		if rest := int64(i.Waiting - 1); rest > most/int64(i.Delay) {
			return most
		}
		left += time.Duration(i.Waiting-1) * i.Delay
	}
	return left
}

// Look goes through some more hosts, and returns those known that take longest, the longest first. Names of hosts that
// are on the disk are read there.
func (s *Sweep) Look() []HostInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.f.cfg.Now()
	best := longest{now: now, n: s.n, met: map[uint32]bool{}}
	known := map[string]bool{}
	for _, key := range s.best {
		if i, ok := s.f.Host(key); ok && i.Waiting > 0 {
			best.add(i, 0)
			known[key] = true
		}
	}
	s.lookAtHot(&best, known)
	s.lookAtCold(&best)
	var hosts []HostInfo
	for _, c := range best.all {
		i, err := s.f.named(c)
		if err != nil || i.Key == "" || c.id != 0 && known[i.Key] {
			continue // a later look meets it again
		}
		hosts = append(hosts, i)
	}
	s.best = s.best[:0]
	for i := range hosts {
		s.best = append(s.best, hosts[i].Key)
	}
	return slices.Clip(hosts)
}

// lookAtHot looks at hosts in memory: all, or as many by chance as a look may.
func (s *Sweep) lookAtHot(best *longest, known map[string]bool) {
	for left := sweepStep; left > 0; left -= sweepHold {
		s.f.mu.Lock()
		n := 0
		for key, h := range s.f.hosts { // a map begins anywhere
			if n++; n > sweepHold && len(s.f.hosts) > sweepStep {
				break
			}
			if h.count() > 0 && !known[key] {
				known[key] = true
				best.add(s.f.info(h), 0)
			}
		}
		all := n >= len(s.f.hosts)
		s.f.mu.Unlock()
		if all {
			return
		}
	}
}

// lookAtCold looks at the next hosts that are on the disk.
func (s *Sweep) lookAtCold(best *longest) {
	if s.f.disk == nil {
		return
	}
	for left := sweepStep; left > 0; left -= sweepHold {
		s.f.mu.Lock()
		table := s.f.disk.table
		for range min(sweepHold, table.n) {
			if s.cold++; s.cold > table.n {
				s.cold = 1
			}
			if r := table.at(s.cold); r.count > 0 && !r.is(isHot) && !best.met[s.cold] {
				best.met[s.cold] = true
				best.add(s.f.coldInfo("", s.cold), s.cold)
			}
		}
		all := table.n <= sweepHold
		s.f.mu.Unlock()
		if all {
			return
		}
	}
}

// Soonest says which of the hosts in memory that have no request under way may be asked first; false if there is none.
func (f *Frontier) Soonest() (HostInfo, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var best *host
	consider := func(q []*host) {
		if len(q) > 0 && (best == nil || q[0].next.Before(best.next)) {
			best = q[0]
		}
	}
	for _, c := range []class{sound, inactive, suspect} {
		consider(f.heaps[c])
		consider(f.ready[c].hostHeap)
	}
	if best == nil {
		return HostInfo{}, false
	}
	return f.info(best), true
}

// A longest keeps the n hosts that take longest.
type longest struct {
	now time.Time
	n   int
	all []selected
	met map[uint32]bool // cold hosts that were looked at
}

// add takes a host in if it takes longer than one that is kept: one that is known already stays before its equals, as
// its name need not be read.
func (l *longest) add(i HostInfo, id uint32) {
	at := len(l.all)
	for left := i.Left(l.now); at > 0; at-- {
		o := &l.all[at-1]
		if cmp.Or(cmp.Compare(left, o.Left(l.now)), cmp.Compare(i.Waiting, o.Waiting)) <= 0 {
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
