package frontier

import (
	"cmp"
	"iter"
	"runtime"
	"slices"
)

// Hosts in memory and records examined in one hold of the lock. For most records only the number of items is read.
const (
	hostStep   = 1 << 8
	recordStep = 1 << 12
)

// Hosts iterates over the first n hosts in an order. It includes hosts with pending items or visits under way. An error
// ends the iteration. Hosts first examines all hosts, some at a time. Hosts that are loaded or evicted meanwhile may be
// missing.
func (i *Inspector) Hosts(n int, order Order) iter.Seq2[HostInfo, error] {
	return func(yield func(HostInfo, error) bool) {
		s := selection{n: n, order: order, met: map[uint32]bool{}}
		i.selectHot(&s) // first, as for hosts on disk the names must be read
		i.selectCold(&s)
		s.cut()
		err := i.nameAll(s.all)
		named := map[string]bool{}
		for _, c := range s.all {
			if c.Key == "" || named[c.Key] { // it was evicted since
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

func (i *Inspector) selectHot(s *selection) {
	i.mu.Lock()
	examined := 0
	for _, h := range i.bench.hosts {
		if examined++; examined%hostStep == 0 { // hosts that come and go meanwhile may or may not be selected
			i.mu.Unlock()
			runtime.Gosched() // lets goroutines that wait for the lock run
			i.mu.Lock()
			if i.bench.hosts[h.key] != h {
				continue
			}
		}
		n := h.queue.count()
		if s.least > 0 && n <= s.least || n == 0 && h.visits.n == 0 {
			continue
		}
		s.add(selected{HostInfo: i.hotInfo(h), record: h.residence.id})
	}
	i.mu.Unlock()
	s.cut()
	for _, c := range s.all {
		s.met[c.record] = true
	}
	s.tied = s.least > 0
}

func (i *Inspector) selectCold(s *selection) {
	if i.cold == nil {
		return
	}
	t := &i.cold.table
	for more, id := true, uint32(1); more; {
		i.mu.Lock()
		for range recordStep {
			if more = id <= t.n; !more {
				break
			}
			if r := t.at(id); r.count >= s.least && r.isCold() {
				switch {
				case s.met[id]:
				case r.count > s.least:
					s.add(selected{HostInfo: i.coldInfo("", id), id: id})
				case !s.tied:
					s.tie(r.bucket, id)
				}
			}
			id++
		}
		i.mu.Unlock()
		runtime.Gosched()
	}
	s.cut()
	i.preferSharedBuckets(s)
}

// preferSharedBuckets replaces the last hosts by equal ones from as few buckets as possible, because a whole bucket is
// read for a name.
func (i *Inspector) preferSharedBuckets(s *selection) {
	bucket, most := uint32(0), []uint32(nil)
	for b, ids := range s.ties {
		if len(ids) > len(most) || len(ids) == len(most) && b < bucket {
			bucket, most = b, ids
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for k := len(s.all) - 1; k >= 0 && len(most) > 0 && uint32(s.all[k].Pending) == s.least; k-- {
		if s.all[k].id == 0 {
			continue // its name is in memory
		}
		id := most[len(most)-1]
		most = most[:len(most)-1]
		if r := i.cold.table.at(id); r.count == s.least && r.bucket == bucket && !r.is(isHot) {
			s.all[k] = selected{HostInfo: i.coldInfo("", id), id: id}
		}
	}
}

// nameAll reads the names of cold hosts from their buckets, each bucket once, or from their queues. Hosts that were
// loaded since get no name.
func (i *Inspector) nameAll(all []selected) error {
	unnamed := map[uint32]*selected{}
	for k := range all {
		if all[k].id != 0 {
			unnamed[all[k].id] = &all[k]
		}
	}
	for k := range all {
		if c := &all[k]; c.id != 0 && c.Key == "" {
			if err := i.name(c, unnamed); err != nil {
				return err
			}
		}
	}
	return nil
}

func (i *Inspector) name(c *selected, others map[uint32]*selected) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.pages.run(func() error { return i.tryName(c, others) })
}

// tryName reads the name of a host, and those of others in its bucket. If the host has blocks, it reads the name from
// one, because blocks are shorter.
func (i *Inspector) tryName(c *selected, others map[uint32]*selected) error {
	switch r := i.cold.table.at(c.id); {
	case r.is(isHot):
	case r.top != 0:
		b, err := i.pages.block(r.top)
		c.Key = b.host
		return err
	case i.buckets.byID[r.bucket] != nil:
		return i.reader.hosts(i.buckets.byID[r.bucket], func(parts []part) error {
			o := others[parts[0].id]
			if o == nil {
				return nil
			}
			s, err := i.reader.host(parts, nil)
			if err == nil {
				o.Key = s.name
			}
			return err
		})
	}
	return nil
}

// named returns a host with its name.
func (i *Inspector) named(c selected) (HostInfo, error) {
	if c.id == 0 {
		return c.HostInfo, nil
	}
	err := i.name(&c, map[uint32]*selected{c.id: &c})
	return c.HostInfo, err
}

// A selection holds the first n hosts; while it grows, about twice as many.
type selection struct {
	n     int
	order Order
	all   []selected
	met   map[uint32]bool     // records of the selected hosts in memory
	least uint32              // hosts with fewer items are not selected; hosts with as many are equal to the last
	ties  map[uint32][]uint32 // hosts with that many items, by bucket
	tied  bool                // one bucket has enough of them
}

const mostTies = 1 << 16 // buckets

// tie adds a host with as many items as the last selected host.
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
	id     uint32 // record number of a cold host, whose name is on disk
	record uint32 // record number of a host in memory, if it has one
}

func (s *selection) add(c selected) {
	if s.all = append(s.all, c); len(s.all) >= 2*s.n+64 {
		s.cut()
	}
}

func (s *selection) cut() {
	slices.SortFunc(s.all, func(a, b selected) int {
		// hosts with near numbers may share buckets
		return cmp.Or(s.order.compare(&a.HostInfo, &b.HostInfo), cmp.Compare(a.id, b.id))
	})
	s.all = s.all[:min(max(s.n, 0), len(s.all))]
	if n := len(s.all); s.order.most && n > 0 && n == s.n {
		if least := uint32(s.all[n-1].Pending); least > s.least {
			s.least, s.ties, s.tied = least, nil, false
		}
	}
}
