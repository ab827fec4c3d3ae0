package history

import (
	"container/heap"
	"math"
	"slices"
	"strings"
	"time"
	"unique"

	"kumo/internal/seen/run"
	"kumo/internal/varint"
	"kumo/internal/xor"
)

// hostBytes is about what a host with dispatched URLs takes in memory.
const hostBytes = 200

// A host has URLs that were dispatched and are not done.
type host struct {
	name     string
	target   unique.Handle[string]
	assigned uint32
	due      uint32 // no URL of it that is not done was dispatched earlier, as far as that is known
	open     int    // URLs that are not done
	list     int    // FirstDiff of its key
	at       int    // in the queue
}

// A hostTable is all hosts with dispatched URLs, in a queue by how long nothing was heard of them.
type hostTable struct {
	byName map[string]*host
	queue  hostQueue
}

type hostQueue []*host

func (q hostQueue) Len() int           { return len(q) }
func (q hostQueue) Less(i, j int) bool { return q[i].due < q[j].due }
func (q hostQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].at, q[j].at = i, j
}

func (q *hostQueue) Push(x any) {
	h := x.(*host)
	h.at = len(*q)
	*q = append(*q, h)
}

func (q *hostQueue) Pop() any {
	last := len(*q) - 1
	h := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return h
}

func (t *hostTable) add(h *host) {
	t.byName[h.name] = h
	heap.Push(&t.queue, h)
}

func (t *hostTable) remove(h *host) {
	delete(t.byName, h.name)
	heap.Remove(&t.queue, h.at)
}

// assign says to whom a host is assigned, if it is one with dispatched URLs.
func (t *hostTable) assign(name string, v value) {
	if h := t.byName[name]; h != nil {
		h.target, h.assigned = unique.Make(string(v.data)), v.at
		h.due = max(h.due, v.at)
		heap.Fix(&t.queue, h.at)
	}
}

// dispatched counts a URL that is one more of a host, or was dispatched again. assigned is the host's value.
func (t *hostTable) dispatched(name string, list int, at uint32, assigned value, more int) {
	h := t.byName[name]
	since := max(at, assigned.at)
	if h == nil {
		t.add(&host{name: strings.Clone(name), target: unique.Make(string(assigned.data)), assigned: assigned.at,
			due: since, open: more, list: list})
		return
	}
	h.open += more
	if since = max(since, h.assigned); since < h.due {
		h.due = since
		heap.Fix(&t.queue, h.at)
	}
}

// done counts a URL that is done.
func (t *hostTable) done(name string) {
	if h := t.byName[name]; h != nil {
		if h.open--; h.open == 0 {
			t.remove(h)
		}
	}
}

// Open is how many URLs of a host were dispatched and are not done.
func (d *DB) Open(name string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if h := d.hosts.byName[name]; h != nil {
		return h.open
	}
	return 0
}

// OpenHosts are all hosts of which that is not 0, in no order.
func (d *DB) OpenHosts() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]string, 0, len(d.hosts.queue))
	for _, h := range d.hosts.queue {
		all = append(all, h.name)
	}
	return all
}

// Overdue is a host with URLs that were dispatched and are not done.
type Overdue struct {
	Host   string
	Target string    // to whom it was assigned last; empty if it never was
	Since  time.Time // some of its URLs may have waited since then, and none longer
}

// Overdue returns hosts with URLs that were dispatched before a time and are not done, as far as their times are known:
// those that have waited longest, most at once. Each counts as heard of now, so that it does not come again before as
// much time has passed; whoever knows better says so by [DB.Assign]. What is overdue of it [DB.Dispatched] has.
func (d *DB) Overdue(now, before time.Time, most int) []Overdue {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []Overdue
	for q := &d.hosts.queue; len(all) < most && len(*q) > 0 && (*q)[0].due < secondsOf(before); heap.Fix(q, 0) {
		h := (*q)[0]
		all = append(all, Overdue{h.name, h.target.Value(), time.Unix(int64(h.due), 0)})
		h.due = max(h.due, secondsOf(now))
	}
	return all
}

// A List is how many records a list has.
type List struct {
	Index      int   // first bit in which keys differ from the own id; -1 for the own id as key
	URLs       int64 // that are known
	Dispatched int64 // of these, those that are not done
}

// Lists are the sizes of all lists that are not empty, the farthest first.
func (d *DB) Lists() []List {
	d.mu.Lock()
	defer d.mu.Unlock()
	var open listSizes
	for _, h := range d.hosts.queue {
		open[h.list+1] += int64(h.open)
	}
	var all []List
	for i, n := range slices.Backward(d.lists[:]) {
		if n > 0 {
			all = append(all, List{i - 1, n, open[i]})
		}
	}
	return all
}

// listSizes counts URLs, from list -1 on.
type listSizes [xor.Bits + 1]int64

// What a checkpoint keeps beside the runs is a run, too: of each host that has dispatched URLs its name with what the
// table has of it, and under the name sizesName the own id and the sizes of the lists.
const sizesName = "\x00"

var _ run.Source = (*hostSource)(nil)

// A hostSource is a copy of the table.
type hostSource struct {
	hosts []host
	self  xor.ID
	sizes listSizes
	next  int // in hosts; -1 for the sizes
	value varint.Writer
}

func (t *hostTable) source(self xor.ID, sizes listSizes) *hostSource {
	all := make([]host, len(t.queue))
	for i, h := range t.queue {
		all[i] = *h
	}
	return &hostSource{hosts: all, self: self, sizes: sizes, next: -2}
}

// sort is done when nobody waits any more for the copy to be made.
func (s *hostSource) sort() {
	slices.SortFunc(s.hosts, func(a, b host) int { return strings.Compare(a.name, b.name) })
}

func (s *hostSource) Next() bool {
	if s.next++; s.next == len(s.hosts) {
		return false
	}
	s.value = s.value[:0]
	if s.next < 0 {
		s.value = append(s.value, s.self[:]...)
		for _, n := range s.sizes {
			s.value.Uint(uint64(n))
		}
		return true
	}
	h := &s.hosts[s.next]
	s.value.Uint(uint64(h.due))
	s.value.Uint(uint64(h.open))
	s.value.Uint(uint64(h.assigned))
	s.value = append(s.value, h.target.Value()...)
	return true
}

func (s *hostSource) Key() []byte {
	if s.next < 0 {
		return []byte(sizesName)
	}
	return []byte(s.hosts[s.next].name)
}

func (s *hostSource) Value() []byte { return s.value }
func (s *hostSource) Err() error    { return nil }

// load reads what a checkpoint has kept, and reports whether its sizes are those of this id's lists.
func (d *DB) load(src run.Source) (sized bool, err error) {
	for src.Next() {
		in := varint.Reader{Rest: src.Value()}
		if string(src.Key()) == sizesName {
			if len(in.Rest) < xor.Size {
				return false, damaged(src.Key())
			}
			sized = xor.ID(in.Rest) == d.cfg.Self
			in.Rest = in.Rest[xor.Size:]
			for i := range d.lists {
				d.lists[i] = int64(in.Uint())
			}
			if !in.Whole() {
				return false, damaged(src.Key())
			}
			continue
		}
		due, open, assigned := in.Uint(), in.Uint(), in.Uint()
		if in.Bad || max(due, assigned) > math.MaxUint32 || open == 0 || open > math.MaxInt32 {
			return false, damaged(src.Key())
		}
		name := string(src.Key())
		d.hosts.add(&host{name: name, target: unique.Make(string(in.Rest)), assigned: uint32(assigned),
			due: uint32(due), open: int(open), list: d.cfg.Key(name).FirstDiff(d.cfg.Self)})
	}
	return sized, src.Err()
}
