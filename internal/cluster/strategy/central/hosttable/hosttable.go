// Package hosttable is the control unit's table of who owns which host: plain data, for tens of millions of hosts,
// without a clock and without goroutines.
//
// The table has Parts parts, chosen by a hash of the name; each is a small hash table of its own. So nothing is ever
// done to the whole table at once: an index grows, waste is thrown away, and a checkpoint is written by parts, of which
// one has some thousand hosts where the table has ten million. A part is three flat slices without pointers, so that
// the garbage collector has nothing to walk: rows of 12 bytes; the names, one after the other; and an index, an
// open-addressing hash table with row numbers and as many bits of the hash as there is room for. A host costs the bytes
// of its name and 23 to 26 more: slices grow by an eighth, an index by its double.
//
// # What is deleted
//
// A row that is deleted is used again by the next host of its part. The bytes of its name are not: where they, or the
// free rows, are more than a third, the part is written anew without them, which is less than a millisecond's work.
//
// # Which hash
//
// Whoever has a domain can make host names without end and have them crawled. Were the hash known, as xxhash is, one in
// 4,096 names that he tries would fall into the part of his choice: ten million of them are found in a minute, and
// would make of one part a checkpoint that no entry of a log can hold. Names whose whole hashes are equal can be
// computed, and would make each look-up a walk over all of them; xxhash was not made to withstand that, whatever its
// seed is. SipHash-2-4 was: it is the hash here, under a key that only the crawl's nodes know, and costs 13 ns more.
// The key is part of the crawl's state as the table is: who reads the parts that another has written needs the same. It
// must not follow from what is public, such as the crawl's name.
package hosttable

import "kumo/internal/cluster/strategy"

// Parts is how many parts a table has. The hash's first bits name one: that is written down, and will never be changed.
const (
	Parts    = 1 << partBits
	partBits = 12
)

// MaxNodes is how many nodes may own hosts at one time.
const MaxNodes = 1<<16 - 1

// A Row is what the table says of a host.
type Row struct {
	Owner        strategy.Node // "": nobody
	State, Round uint8         // the caller's
	Since        uint32        // seconds of Unix time
}

// A Table says who owns which host. Its methods are called by one goroutine at a time.
type Table struct {
	key     Key
	parts   []part
	nodes   nodes
	hosts   int
	bytes   int64
	locally []uint32 // by a node's index: its number in the part that is being written, 0 between two
}

// New makes an empty table. Who reads the parts that another table has written has its key.
func New(key Key) *Table {
	return &Table{key: key, parts: make([]part, Parts), nodes: newNodes()}
}

// Get returns what is said of a host. It allocates nothing.
func (t *Table) Get(host string) (Row, bool) {
	name := []byte(host)
	h := t.key.Sum(name)
	p := &t.parts[partOf(h)]
	_, i, ok := p.find(h, name)
	if !ok {
		return Row{}, false
	}
	return t.row(&p.rows[i]), true
}

// Set adds a host or changes what is said of it. It panics where there would be more than MaxNodes owners.
func (t *Table) Set(host string, r Row) {
	name := []byte(host)
	h := t.key.Sum(name)
	p := &t.parts[partOf(h)]
	is := row{since: r.Since, owner: t.nodes.take(r.Owner), state: r.State, round: r.Round}
	if _, i, ok := p.find(h, name); ok {
		t.nodes.release(p.rows[i].owner)
		is.name = p.rows[i].name
		p.rows[i] = is
		return
	}
	before := p.size()
	p.add(&t.key, h, name, is)
	t.hosts++
	t.bytes += p.size() - before
}

// Delete removes a host, and reports whether it was there.
func (t *Table) Delete(host string) bool {
	name := []byte(host)
	h := t.key.Sum(name)
	p := &t.parts[partOf(h)]
	slot, i, ok := p.find(h, name)
	if !ok {
		return false
	}
	before := p.size()
	t.nodes.release(p.rows[i].owner)
	p.remove(&t.key, slot, i)
	t.hosts--
	t.bytes += p.size() - before
	return true
}

// Len is how many hosts there are.
func (t *Table) Len() int { return t.hosts }

// Count is how many hosts a node owns; "": how many nobody owns.
func (t *Table) Count(n strategy.Node) int { return t.nodes.count(n) }

// Bytes is how much memory rows, names and indices take.
func (t *Table) Bytes() int64 { return t.bytes }

// Part is the number of the part that a host is in.
func (t *Table) Part(host string) int { return partOf(t.key.Sum([]byte(host))) }

func (t *Table) row(r *row) Row {
	return Row{Owner: t.nodes.all[r.owner].name, State: r.state, Round: r.round, Since: r.since}
}
