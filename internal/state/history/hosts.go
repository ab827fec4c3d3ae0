package history

import (
	"maps"
	"math"
	"slices"
	"strings"

	"kumo/internal/base/varint"
	"kumo/internal/state/seen/run"
)

// hostBytes is the approximate memory of a host with dispatched URLs.
const hostBytes = 100

// openCounts contains the number of open URLs (dispatched and not done) of each host that has any.
type openCounts map[string]int

// add adds to the number of a host's open URLs.
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

// OpenURLs returns the number of URLs of a host that were dispatched and are not done.
func (d *DB) OpenURLs(name string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open[name]
}

// OpenHosts returns all hosts with such URLs, in no particular order.
func (d *DB) OpenHosts() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.open))
}

// A checkpoint also contains a run with the number of open URLs of each host that has any, and with the number of known
// URLs under knownName.
const knownName = "\x00"

var _ run.Source = (*hostSource)(nil)

// A hostSource is a copy of the counts for a checkpoint.
type hostSource struct {
	hosts []hostCount
	next  int // index in hosts, plus one
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

// sort is called after the locks for the copy are released.
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

// load reads the counts of a checkpoint.
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
