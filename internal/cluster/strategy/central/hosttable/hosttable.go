// Package hosttable implements the control unit's table of host owners, for tens of millions of hosts.
//
// The table is plain data, without a clock or goroutines. It has Parts parts, chosen by a hash of the name; each part
// is a small hash table of its own. So no operation affects the whole table at once. Indexes grow, garbage is
// collected, and checkpoints are written part by part. A part has some thousand hosts if the table has ten million.
//
// A part is three flat slices without pointers, so that the garbage collector has nothing to scan. They are rows of 12
// bytes, the concatenated names, and an index. The index is an open-addressing hash table; an entry has a row number
// and, in its remaining bits, a part of the hash. A host takes the bytes of its name and 23 to 26 more. Slices grow by
// an eighth, an index doubles.
//
// # Deletion
//
// The next host of the part reuses a deleted row. The bytes of its name are not reused. When more than a third of the
// name bytes or of the rows are unused, the part is rewritten, which takes less than a millisecond.
//
// # Hash function
//
// The owner of a domain can create any number of host names and have them crawled. If the hash were known, as xxhash
// is, one in 4,096 attempted names would fall into a part of the owner's choice. Ten million such names can be found in
// a minute. They would make the checkpoint of one part too large for a log entry. An attacker could also compute names
// with equal hashes, and so turn each lookup into a walk over all of them. xxhash does not resist this, whatever its
// seed.
//
// SipHash-2-4 does resist it, and costs 13 ns more. So it is the hash here, with a key that only the crawl's nodes
// know. The key is part of the crawl's state, like the table: a node that reads parts written by another needs the same
// key. It must not be derived from public data, such as the crawl's name.
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
	key          Key
	parts        []part
	nodes        nodes
	hosts        int
	bytes        int64
	localNumbers []uint32 // by a node's index: its number in the part that is being written, 0 between two
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
	is := row{since: r.Since, owner: t.nodes.acquire(r.Owner), state: r.State, round: r.Round}
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
