package frontier

import (
	"cmp"
	"iter"
	"runtime"
	"slices"
)

// In one hold of the lock so many hosts in memory are looked at, and so many records of hosts that are on the disk: of
// most nothing is looked at but how much waits.
const (
	lookStep   = 1 << 8
	recordStep = 1 << 12
)

// Hosts goes through the first n hosts, in an order, where something waits or is under way; an error ends it. It looks
// at all hosts first, some at a time: what enters or leaves memory meanwhile may be left out.
func (f *Frontier) Hosts(n int, order Order) iter.Seq2[HostInfo, error] {
	return func(yield func(HostInfo, error) bool) {
		s := selection{n: n, order: order, met: map[uint32]bool{}}
		f.lookAtHot(&s) // first: names of hosts that are on the disk have to be read
		f.lookAtCold(&s)
		s.cut()
		err := f.nameAll(s.all)
		named := map[string]bool{}
		for _, c := range s.all {
			if c.Key == "" || named[c.Key] { // it has left memory meanwhile
				continue
			}
			if named[c.Key] = true; !yield(c.HostInfo, nil) {
				return
			}
		}
		if err != nil {
			yield(HostInfo{}, err)
		}
	}
}

func (f *Frontier) lookAtHot(s *selection) {
	f.mu.Lock()
	looked := 0
	for _, h := range f.hosts {
		if looked++; looked%lookStep == 0 { // what comes and goes meanwhile may be met or not
			f.mu.Unlock()
			runtime.Gosched() // whoever waits for the lock has it now
			f.mu.Lock()
			if f.hosts[h.key] != h {
				continue
			}
		}
		n := h.count()
		if s.least > 0 && n <= s.least || n == 0 && h.inflight == 0 {
			continue
		}
		s.add(selected{HostInfo: f.info(h), record: h.id})
	}
	f.mu.Unlock()
	s.cut()
	for _, c := range s.all {
		s.met[c.record] = true
	}
	s.tied = s.least > 0
}

func (f *Frontier) lookAtCold(s *selection) {
	if f.disk == nil {
		return
	}
	for more, id := true, uint32(1); more; {
		f.mu.Lock()
		for range recordStep {
			if more = id <= f.disk.table.n; !more {
				break
			}
			if r := f.disk.table.at(id); r.count >= s.least && r.count > 0 && !r.is(isHot) {
				switch {
				case s.met[id]:
				case r.count > s.least:
					s.add(selected{HostInfo: f.coldInfo("", id), id: id})
				case !s.tied:
					s.tie(r.bucket, id)
				}
			}
			id++
		}
		f.mu.Unlock()
		runtime.Gosched()
	}
	s.cut()
	f.untie(s)
}

// untie takes hosts that are equal to the last ones from as few buckets as has them, since whole buckets are read for
// their names.
func (f *Frontier) untie(s *selection) {
	bucket, most := uint32(0), []uint32(nil)
	for b, ids := range s.ties {
		if len(ids) > len(most) || len(ids) == len(most) && b < bucket {
			bucket, most = b, ids
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := len(s.all) - 1; i >= 0 && len(most) > 0 && uint32(s.all[i].Waiting) == s.least; i-- {
		if s.all[i].id == 0 {
			continue // its name is in memory
		}
		id := most[len(most)-1]
		most = most[:len(most)-1]
		if r := f.disk.table.at(id); r.count == s.least && r.bucket == bucket && !r.is(isHot) {
			s.all[i] = selected{HostInfo: f.coldInfo("", id), id: id}
		}
	}
}

// nameAll reads the names of cold hosts from their buckets, each of which is read once, or their queues. Those have
// none that are in memory by now and nothing says under which.
func (f *Frontier) nameAll(all []selected) error {
	unnamed := map[uint32]*selected{}
	for i := range all {
		if all[i].id != 0 {
			unnamed[all[i].id] = &all[i]
		}
	}
	for i := range all {
		if c := &all[i]; c.id != 0 && c.Key == "" {
			if err := f.nameOne(c, unnamed); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *Frontier) nameOne(c *selected, others map[uint32]*selected) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.paged(func() error { return f.nameOf(c, others) })
}

// nameOf reads the name of a host, and those of others in its bucket. The queue behind a host's front has its name,
// too, and less is read for it.
func (f *Frontier) nameOf(c *selected, others map[uint32]*selected) error {
	switch r := f.disk.table.at(c.id); {
	case r.is(isHot):
	case r.top != 0:
		b, err := f.block(r.top)
		c.Key = b.host
		return err
	case f.disk.buckets[r.bucket] != nil:
		parts, err := f.parts(f.disk.buckets[r.bucket])
		for n := 0; len(parts) > 0; parts = parts[n:] {
			n = sameHost(parts)
			o := others[parts[0].id]
			if o == nil {
				continue
			}
			s, err := f.sleeper(parts[:n], nil)
			if err != nil {
				return err
			}
			o.Key = s.name
		}
		return err
	}
	return nil
}

// named is a host with its name.
func (f *Frontier) named(c selected) (HostInfo, error) {
	if c.id == 0 {
		return c.HostInfo, nil
	}
	err := f.nameOne(&c, map[uint32]*selected{c.id: &c})
	return c.HostInfo, err
}

// A selection keeps the first n hosts, and twice as many while it looks.
type selection struct {
	n     int
	order Order
	all   []selected
	met   map[uint32]bool     // records of hosts in memory that were selected
	least uint32              // hosts where less waits are none of them; those where as much does are no better
	ties  map[uint32][]uint32 // such hosts by bucket
	tied  bool                // one bucket has enough of them
}

const mostTies = 1 << 16 // buckets

// tie notes a host where as much waits as at the last of those that are kept.
func (s *selection) tie(bucket, id uint32) {
	if s.ties == nil {
		s.ties = map[uint32][]uint32{}
	}
	if bucket != 0 && (s.ties[bucket] != nil || len(s.ties) < mostTies) {
		s.ties[bucket] = append(s.ties[bucket], id)
		s.tied = len(s.ties[bucket]) >= s.n
	}
}

type selected struct {
	HostInfo
	id     uint32 // of a cold host, whose name is on disk
	record uint32 // of one in memory, if it has one
}

func (s *selection) add(c selected) {
	if s.all = append(s.all, c); len(s.all) >= 2*s.n+64 {
		s.cut()
	}
}

func (s *selection) cut() {
	slices.SortFunc(s.all, func(a, b selected) int {
		// near each other, they may share buckets
		return cmp.Or(s.order.compare(&a.HostInfo, &b.HostInfo), cmp.Compare(a.id, b.id))
	})
	s.all = s.all[:min(max(s.n, 0), len(s.all))]
	if n := len(s.all); s.order.most && n > 0 && n == s.n {
		if least := uint32(s.all[n-1].Waiting); least > s.least {
			s.least, s.ties, s.tied = least, nil, false
		}
	}
}
