package frontier

import (
	"iter"
	"slices"
)

// lookStep is how many hosts are looked at in one hold of the lock.
const lookStep = 1 << 12

// Hosts goes through the first n hosts, in an order, where something waits or is under way; an error ends it. It looks
// at all hosts first, some thousands at a time: what enters or leaves memory meanwhile may be left out.
func (f *Frontier) Hosts(n int, order Order) iter.Seq2[HostInfo, error] {
	return func(yield func(HostInfo, error) bool) {
		s := selection{n: n, order: order, met: map[uint32]bool{}}
		f.lookAtCold(&s)
		f.lookAtHot(&s)
		s.cut()
		for _, c := range s.all {
			i, err := f.named(c)
			if err != nil {
				yield(HostInfo{}, err)
				return
			}
			if i.Key != "" && !yield(i, nil) {
				return
			}
		}
	}
}

func (f *Frontier) lookAtHot(s *selection) {
	f.mu.Lock()
	hot := make([]*host, 0, len(f.hosts))
	for _, h := range f.hosts {
		hot = append(hot, h)
	}
	f.mu.Unlock()
	for step := range slices.Chunk(hot, lookStep) {
		f.mu.Lock()
		for _, h := range step {
			if f.hosts[h.key] != h || s.met[h.id] {
				continue // it is cold by now, or was
			}
			if i := f.info(h); i.Waiting > 0 || i.Active > 0 {
				s.add(i, 0)
			}
		}
		f.mu.Unlock()
	}
}

func (f *Frontier) lookAtCold(s *selection) {
	if f.disk == nil {
		return
	}
	for more, id := true, uint32(1); more; {
		f.mu.Lock()
		for range lookStep {
			if more = id <= f.disk.table.n; !more {
				break
			}
			if r := f.disk.table.at(id); r.count > 0 && !r.is(isHot) {
				s.add(f.coldInfo("", id), id)
			}
			id++
		}
		f.mu.Unlock()
	}
	s.cut()
	for _, c := range s.all {
		s.met[c.id] = true
	}
}

// named reads a cold host's name from its bucket, or its queue. It has none if it is in memory by now and nothing says
// under which.
func (f *Frontier) named(c selected) (HostInfo, error) {
	if c.id == 0 {
		return c.HostInfo, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var i HostInfo
	err := f.paged(func() (err error) {
		i, err = f.nameOf(c)
		return err
	})
	return i, err
}

func (f *Frontier) nameOf(c selected) (HostInfo, error) {
	r := f.disk.table.at(c.id)
	switch bucket := f.disk.buckets[r.bucket]; {
	case r.is(isHot):
		return HostInfo{}, nil
	case bucket != nil:
		s, err := f.sleeping(bucket, c.id)
		c.Key = s.name
		return c.HostInfo, err
	case r.top != 0:
		b, err := f.block(r.top)
		c.Key = b.host
		return c.HostInfo, err
	}
	return HostInfo{}, nil
}

// A selection keeps the first n hosts, and twice as many while it looks.
type selection struct {
	n     int
	order Order
	all   []selected
	met   map[uint32]bool // cold hosts that are selected
}

type selected struct {
	HostInfo
	id uint32 // of a cold host, whose name is on disk
}

func (s *selection) add(i HostInfo, id uint32) {
	if s.all = append(s.all, selected{i, id}); len(s.all) >= 2*s.n+64 {
		s.cut()
	}
}

func (s *selection) cut() {
	slices.SortFunc(s.all, func(a, b selected) int { return s.order(&a.HostInfo, &b.HostInfo) })
	s.all = s.all[:min(max(s.n, 0), len(s.all))]
}
