package hosttable

import "kumo/internal/cluster/strategy"

// maxScan is the maximum number of rows that a call of Each scans, so that it returns within about a millisecond even
// if a node owns few hosts.
const maxScan = 1 << 16

// Each calls f with at most most hosts of a node ("": hosts without an owner), and returns the cursor for the next
// call; the first cursor is 0. The table may change between calls, but not within f. A host that the node owns all the
// time is passed at least once; it may be passed again if its part was compacted or loaded in between. A call that
// passes no host is not necessarily the last.
func (t *Table) Each(node strategy.Node, cursor uint64, most int, f func(host string, r Row)) (next uint64, done bool) {
	number, known := t.nodes.number[node]
	if !known || t.nodes.all[number].hosts == 0 {
		return 0, true
	}
	return t.walk(cursor, most, func(r *row) bool { return r.owner == number }, f)
}

// All calls f with all hosts, like Each.
func (t *Table) All(cursor uint64, most int, f func(host string, r Row)) (next uint64, done bool) {
	return t.walk(cursor, most, func(*row) bool { return true }, f)
}

func (t *Table) walk(cursor uint64, most int, wanted func(*row) bool, f func(string, Row)) (uint64, bool) {
	first, told, looked := partOf(cursor), 0, 0
	for n := first; n < Parts; n++ {
		p, i := &t.parts[n], uint32(0)
		if n == first && p.cursor(n, uint32(cursor)) == cursor {
			i = uint32(cursor)
		}
		for ; int(i) < len(p.rows); i++ {
			r := &p.rows[i]
			if r.name != freeName && wanted(r) {
				f(string(p.name(i)), t.row(r))
				told++
			}
			if looked++; told >= most || looked >= maxScan {
				return p.cursor(n, i+1), false
			}
		}
	}
	return 0, true
}

// cursor returns the cursor of a row. It contains the part's generation: if rows were renumbered, the walk restarts at
// the beginning of the part.
func (p *part) cursor(part int, i uint32) uint64 {
	const moveBits = 64 - partBits - 32
	return uint64(part)<<(64-partBits) | uint64(p.generation%(1<<moveBits))<<32 | uint64(i)
}
