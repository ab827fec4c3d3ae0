package frontier

import (
	"cmp"
	"iter"
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
	Failures int  // in a row
	Suspect  bool // failed or was slow lately
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
	WhyBackoff Why = "back-off" // it failed
	WhyAsked   Why = "its wish" // Retry-After, or 429 or 503 without one
	WhyTurn    Why = "its turn at a shared address"
)

// Host says how a host stands; false if it was never met.
func (f *Frontier) Host(key string) (HostInfo, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
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
	i := HostInfo{Key: h.key, Next: h.next, Waiting: int(h.count()), Active: h.inflight, Delay: f.delay(h),
		Failures: h.failures.n, Suspect: h.doubtful}
	turn := !h.slot.IsZero() && h.slot.Equal(h.next)
	i.Why = f.why(&i, len(h.parked) > 0, turn, h.backing, h.throttles.n)
	return i
}

func (f *Frontier) coldInfo(key string, id uint32) HostInfo {
	r := f.disk.table.at(id)
	s := unpack(r.state)
	i := HostInfo{Key: key, Next: f.disk.time(s.next), Waiting: int(r.count), Failures: s.failures, Suspect: r.is(isDoubtful),
		Delay: max(f.cfg.Delay, time.Duration(r.delay)*time.Millisecond)}
	i.Why = f.why(&i, r.is(isParked), r.is(hasTurn), r.is(isBacking), s.throttles)
	return i
}

func (f *Frontier) why(i *HostInfo, parked, turn, backing bool, throttles int) Why {
	switch {
	case i.Active > 0:
		return WhyActive
	case i.Waiting == 0:
		return WhyNothing
	case parked:
		return WhyParked
	case !i.Next.After(f.cfg.Now()):
		return WhyPlace
	case turn:
		return WhyTurn
	case backing && throttles > 0:
		return WhyAsked
	case backing:
		return WhyBackoff
	}
	return WhyDelay
}

// Queue returns the first n items that wait at a host, 10,000 at most, in their order.
func (f *Frontier) Queue(key string, n int) ([]Item, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.hosts[key]
	if h == nil && f.disk != nil {
		h = f.recall(key)
	}
	if h == nil {
		return nil, nil
	}
	f.touch(h)
	n = min(n, maxTake)
	err := f.gather(h, n)
	slices.SortFunc(h.waiting, func(a, b *Item) int { return a.compare(b.key) })
	items := make([]Item, 0, min(n, len(h.waiting)))
	for _, it := range h.waiting {
		if len(items) < n && !f.willGo(it.URL) {
			items = append(items, *it)
		}
	}
	f.place(h)
	f.shrink()
	return items, err
}

// An Order sorts hosts.
type Order func(a, b *HostInfo) int

// ByWaiting puts the hosts first where most waits.
func ByWaiting(a, b *HostInfo) int { return cmp.Compare(b.Waiting, a.Waiting) }

// ByNext puts the hosts first whose time comes first.
func ByNext(a, b *HostInfo) int { return a.Next.Compare(b.Next) }

// Hosts goes through the first n hosts, in an order, where something waits or is under way. It looks at all hosts first, for which
// the frontier stands still; an error ends it.
func (f *Frontier) Hosts(n int, order Order) iter.Seq2[HostInfo, error] {
	return func(yield func(HostInfo, error) bool) {
		hosts, err := f.top(n, order)
		for _, i := range hosts {
			if !yield(i, nil) {
				return
			}
		}
		if err != nil {
			yield(HostInfo{}, err)
		}
	}
}

func (f *Frontier) top(n int, order Order) ([]HostInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := selection{n: n, order: order}
	for _, h := range f.hosts {
		if i := f.info(h); i.Waiting > 0 || i.Active > 0 {
			s.add(i, 0)
		}
	}
	if f.disk == nil {
		return s.first(nil)
	}
	for id := uint32(1); id <= f.disk.table.n; id++ {
		if r := f.disk.table.at(id); r.count > 0 && !r.is(isHot) {
			s.add(f.coldInfo("", id), r.top)
		}
	}
	return s.first(f.disk.segments)
}

// A selection keeps the first n hosts, and twice as many while it looks.
type selection struct {
	n     int
	order Order
	all   []selected
}

type selected struct {
	HostInfo
	at loc // of a block with the name, 0 if it is known
}

func (s *selection) add(i HostInfo, at loc) {
	if s.all = append(s.all, selected{i, at}); len(s.all) >= 2*s.n+64 {
		s.cut()
	}
}

func (s *selection) cut() {
	slices.SortFunc(s.all, func(a, b selected) int { return s.order(&a.HostInfo, &b.HostInfo) })
	s.all = s.all[:min(max(s.n, 0), len(s.all))]
}

// first names the hosts.
func (s *selection) first(segments *segments) ([]HostInfo, error) {
	s.cut()
	hosts := make([]HostInfo, 0, len(s.all))
	for _, i := range s.all {
		if i.at != 0 {
			b, err := segments.read(i.at)
			if err != nil {
				return hosts, err
			}
			i.Key = b.host
		}
		hosts = append(hosts, i.HostInfo)
	}
	return hosts, nil
}
