// Package hosttable implements the leader's table of host owners, for tens of millions of hosts.
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

// Parts is the number of parts of a table. The first bits of the hash select one. Stored logs depend on it, so it must
// never change.
const (
	Parts    = 1 << partBits
	partBits = 12
)

// MaxNodes is the maximum number of nodes that own hosts at the same time.
const MaxNodes = 1<<16 - 1

// A Row is the table's data about a host.
type Row struct {
	Owner        strategy.Node // "": none
	State, Round uint8         // defined by the caller
	Since        uint32        // Unix time in seconds
}

// A Table stores the owner of each host. It is not safe for concurrent use.
type Table struct {
	key          Key
	parts        []part
	nodes        nodes
	hosts        int
	bytes        int64
	localNumbers []uint32 // by node index: number within the part being encoded; all 0 otherwise
}

// New returns an empty table. Only a table with the same key can read its parts.
func New(key Key) *Table {
	return &Table{key: key, parts: make([]part, Parts), nodes: newNodes()}
}

// Get returns a host's row, without allocating memory.
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

// Set adds or replaces a host's row. It panics if there would be more than MaxNodes owners.
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

// Delete removes a host, and reports whether it was in the table.
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

// Len returns the number of hosts.
func (t *Table) Len() int { return t.hosts }

// Count returns the number of hosts that a node owns; for "", of those without an owner.
func (t *Table) Count(n strategy.Node) int { return t.nodes.count(n) }

// Bytes returns the memory used by rows, names and indexes.
func (t *Table) Bytes() int64 { return t.bytes }

// Part returns the part that a host belongs to.
func (t *Table) Part(host string) int { return partOf(t.key.Sum([]byte(host))) }

func (t *Table) row(r *row) Row {
	return Row{Owner: t.nodes.all[r.owner].name, State: r.state, Round: r.round, Since: r.since}
}
