package hosttable

import "kumo/internal/cluster/strategy"

// maxScan is how many rows one call of Each looks at, at most: so that it comes back within about a millisecond though a
// node owns little.
const maxScan = 1 << 16

// Each calls f with hosts of a node ("": of nobody), most at most, and returns the cursor to go on with. The first one
// is 0. The table may change between two calls, but not in f. What a node owns all the while is told at least once;
// what lies elsewhere since its part was compacted or loaded may be told again. A call may tell of nothing and not be
// the last.
func (t *Table) Each(node strategy.Node, cursor uint64, most int, f func(host string, r Row)) (next uint64, done bool) {
	number, known := t.nodes.number[node]
	if !known || t.nodes.all[number].hosts == 0 {
		return 0, true
	}
	return t.walk(cursor, most, func(r *row) bool { return r.owner == number }, f)
}

// All calls f with hosts as Each does, whoever owns them.
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

// cursor is the cursor of a row. It names the order that rows are in, too: where that has changed, the part is told from
// its beginning.
func (p *part) cursor(part int, i uint32) uint64 {
	const moveBits = 64 - partBits - 32
	return uint64(part)<<(64-partBits) | uint64(p.generation%(1<<moveBits))<<32 | uint64(i)
}
