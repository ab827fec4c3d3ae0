package frontier

import (
	"cmp"
	"slices"
	"time"
)

// A HostInfo is what the frontier knows of a host.
type HostInfo struct {
	Key      string
	Next     time.Time // it owes nothing a visit before
	Why      Why
	Waiting  int // items
	Active   int // visits under way
	Delay    time.Duration
	Asked    time.Duration // of Delay, what its robots.txt asks for
	Failures int           // in a row
	Suspect  bool          // failed or was slow lately
	MaxWait  time.Duration // that it may be left alone, whatever it asks for
	Slices   int           // that its host is cut into, of which this is one
	Parked   bool          // for a robots.txt: what waits for that stays
	Away     bool          // nothing of its own was ever added, or it was removed, and nothing has come back since
}

// Why says what a host waits for.
type Why string

// What a host may wait for.
const (
	WhyNothing Why = ""           // it has nothing that waits
	WhyPlace   Why = "a place"    // its time has come
	WhyActive  Why = "its answer" // a visit is under way
	WhyParked  Why = "robots.txt"
	WhyDelay   Why = "delay"
	WhyCrawl   Why = "Crawl-delay" // of its robots.txt, longer than the crawl's own delay
	WhyBackoff Why = "back-off"    // it failed
	WhyAsked   Why = "its wish"    // Retry-After, or 429 or 503 without one
	WhyTurn    Why = "its turn at a shared address"
)

// Host says how a host stands; false if it was never met.
func (f *Frontier) Host(key string) (HostInfo, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hostInfo(key)
}

// Infos says of hosts how they stand, some in one hold of the lock. Those that were never met have no key.
func (f *Frontier) Infos(keys []string) []HostInfo {
	const step = 128
	all := make([]HostInfo, 0, len(keys))
	for some := range slices.Chunk(keys, step) {
		f.mu.Lock()
		for _, key := range some {
			i, _ := f.hostInfo(key)
			all = append(all, i)
		}
		f.mu.Unlock()
	}
	return all
}

func (f *Frontier) hostInfo(key string) (HostInfo, bool) {
	if h := f.hosts[key]; h != nil {
		return f.info(h), true
	}
	if f.disk == nil {
		return HostInfo{}, false
	}
	id := f.disk.table.find(f.disk.table.identity(key))
	if id == 0 {
		return HostInfo{}, false
	}
	return f.coldInfo(key, id), true
}

func (f *Frontier) info(h *host) HostInfo {
	i := HostInfo{Key: h.key, Next: h.next, Waiting: int(h.count()), Active: h.inflight, Delay: f.delay(h), Asked: h.delay,
		Failures: h.failures.n, Suspect: h.doubtful, Parked: len(h.parked) > 0, Away: h.away}
	turn := !h.slot.IsZero() && h.slot.Equal(h.next)
	i.MaxWait, i.Slices = f.cfg.MaxWait, f.cfg.Slices
	i.Why = f.why(&i, turn, h.backing, h.throttles.n)
	return i
}

func (f *Frontier) coldInfo(key string, id uint32) HostInfo {
	r := f.disk.table.at(id)
	s := unpack(r.state)
	i := HostInfo{Key: key, Next: f.disk.time(s.next), Waiting: int(r.count), Failures: s.failures,
		Suspect: r.is(isDoubtful), Parked: r.is(isParked),
		Asked: r.requestedDelay(), Away: r.away()}
	own := f.delayOf(key)
	i.Delay, i.MaxWait, i.Slices = max(own, i.Asked), f.cfg.MaxWait, f.cfg.Slices
	i.Why = f.why(&i, r.is(hasTurn), r.is(isBacking), s.throttles)
	return i
}

func (f *Frontier) why(i *HostInfo, turn, backing bool, throttles int) Why {
	switch {
	case i.Active > 0:
		return WhyActive
	case i.Waiting == 0:
		return WhyNothing
	case i.Parked:
		return WhyParked
	case !i.Next.After(f.cfg.Now()):
		return WhyPlace
	case turn:
		return WhyTurn
	case backing && throttles > 0:
		return WhyAsked
	case backing:
		return WhyBackoff
	case i.Asked > 0 && i.Asked == i.Delay:
		return WhyCrawl
	}
	return WhyDelay
}

// An Order sorts hosts.
type Order struct {
	compare func(a, b *HostInfo) int
	most    bool // by what waits alone, the most first
}

// ByWaiting puts the hosts first where most waits.
var ByWaiting = Order{compare: func(a, b *HostInfo) int { return cmp.Compare(b.Waiting, a.Waiting) }, most: true}
