package history

import (
	"maps"
	"math"
	"slices"
	"strings"

	"kumo/internal/base/varint"
	"kumo/internal/state/seen/run"
)

// hostBytes is about what a host with dispatched URLs takes in memory.
const hostBytes = 100

// A openCounts is how many URLs of hosts were dispatched and are not done, of all that have such.
type openCounts map[string]int

// add counts so many more of a host.
func (t openCounts) add(name string, more int) {
	n, known := t[name]
	switch n += more; {
	case n <= 0:
		delete(t, name)
	case known:
		t[name] = n
	default:
		t[strings.Clone(name)] = n
	}
}

// OpenURLs is how many URLs of a host were dispatched and are not done.
func (d *DB) OpenURLs(name string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open[name]
}

// OpenHosts are all hosts of which that is not 0, in no order.
func (d *DB) OpenHosts() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.open))
}

// What a checkpoint keeps beside the runs is a run, too: of each host that has dispatched URLs how many, and under the
// name knownName how many URLs are known.
const knownName = "\x00"

var _ run.Source = (*hostSource)(nil)

// A hostSource is a copy of the table.
type hostSource struct {
	hosts []hostCount
	next  int // in hosts, behind the first
	value varint.Writer
}

type hostCount struct {
	name string
	urls int64
}

func (t openCounts) source(known int64) *hostSource {
	all := make([]hostCount, 0, len(t)+1)
	all = append(all, hostCount{knownName, known})
	for name, n := range t {
		all = append(all, hostCount{name, int64(n)})
	}
	return &hostSource{hosts: all}
}

// sort is done when nobody waits any more for the copy to be made.
func (s *hostSource) sort() {
	slices.SortFunc(s.hosts, func(a, b hostCount) int { return strings.Compare(a.name, b.name) })
}

func (s *hostSource) Next() bool {
	if s.next++; s.next > len(s.hosts) {
		return false
	}
	s.value = s.value[:0]
	s.value.Uint(uint64(s.hosts[s.next-1].urls))
	return true
}

func (s *hostSource) Key() []byte   { return []byte(s.hosts[s.next-1].name) }
func (s *hostSource) Value() []byte { return s.value }
func (s *hostSource) Err() error    { return nil }

// load reads what a checkpoint has kept.
func (d *DB) load(src run.Source) error {
	for src.Next() {
		in := varint.Reader{Rest: src.Value()}
		n := in.Uint()
		name := string(src.Key())
		switch {
		case !in.Complete():
			return damaged(src.Key())
		case name == knownName:
			d.known = int64(n)
		case n == 0 || n > math.MaxInt32:
			return damaged(src.Key())
		default:
			d.open[name] = int(n)
		}
	}
	return src.Err()
}
