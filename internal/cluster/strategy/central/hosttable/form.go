package hosttable

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"kumo/internal/cluster/strategy"
)

// A part is encoded as: version; part number; the names of the nodes that own hosts in it; its rows, each as name,
// owner (1 is the first of those nodes, 0 is no owner), state, round and since; xxhash of all that. Numbers are
// varints, except since (4 bytes) and the hash (8 bytes), which are little-endian. Lists and strings are preceded by
// their length.
//
// Names are not sorted for prefix compression: a part has only one in 4,096 of all names, so neighbors have little in
// common.
const version = 1

// minRowSize is the minimum size of a row, in bytes.
const minRowSize = 8

// ErrDamaged is the error of LoadPart for bytes that are not a part of a table with the same key.
var ErrDamaged = errors.New("damaged part of the host table")

// AppendPart appends the encoding of a part to b.
func (t *Table) AppendPart(b []byte, part int) []byte {
	p, begin := &t.parts[part], len(b)
	b = append(b, version)
	b = binary.AppendUvarint(b, uint64(part))
	owners := t.numberOwners(p)
	b = binary.AppendUvarint(b, uint64(len(owners)))
	for _, i := range owners {
		b = appendBytes(b, t.nodes.all[i].name)
	}
	b = binary.AppendUvarint(b, uint64(len(p.rows)-p.freeCount))
	for i, r := range p.rows {
		if r.name == freeName {
			continue
		}
		b = appendBytes(b, p.name(uint32(i)))
		b = binary.AppendUvarint(b, uint64(t.localNumbers[r.owner]))
		b = append(b, r.state, r.round)
		b = binary.LittleEndian.AppendUint32(b, r.since)
	}
	for _, i := range owners {
		t.localNumbers[i] = 0
	}
	return binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b[begin:]))
}

// numberOwners numbers the owners in a part from 1, in the order of its rows.
func (t *Table) numberOwners(p *part) (owners []uint16) {
	if more := len(t.nodes.all) - len(t.localNumbers); more > 0 {
		t.localNumbers = append(t.localNumbers, make([]uint32, more)...)
	}
	for _, r := range p.rows {
		if r.name != freeName && r.owner != 0 && t.localNumbers[r.owner] == 0 {
			owners = append(owners, r.owner)
			t.localNumbers[r.owner] = uint32(len(owners))
		}
	}
	return owners
}

func appendBytes[T ~string | ~[]byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// LoadPart replaces a part by the output of AppendPart. If b is damaged or the other table has another key, it changes
// nothing and returns ErrDamaged.
func (t *Table) LoadPart(b []byte) error {
	if len(b) < 8 || len(b) > math.MaxInt32 || xxhash.Sum64(b[:len(b)-8]) != binary.LittleEndian.Uint64(b[len(b)-8:]) {
		return fmt.Errorf("%w: wrong checksum", ErrDamaged)
	}
	l := loader{in: b[:len(b)-8]}
	if v := l.readBytes(1); len(v) == 0 || v[0] != version {
		return fmt.Errorf("%w: unknown version %d", ErrDamaged, v)
	}
	l.part = int(l.readNumber(Parts - 1))
	l.readNodes()
	l.readRows(&t.key)
	if l.bad == nil && len(l.in) > 0 {
		l.bad = fmt.Errorf("%w: %d extra bytes", ErrDamaged, len(l.in))
	}
	if l.bad == nil && t.nodes.known()+len(l.owners) > MaxNodes {
		l.bad = fmt.Errorf("more than %d nodes own hosts", MaxNodes)
	}
	if l.bad != nil {
		return fmt.Errorf("part %d: %w", l.part, l.bad)
	}
	t.replace(l.part, l.to, l.owners)
	return nil
}

// replace replaces a part. The rows of p have numbers of owners, from 1.
func (t *Table) replace(n int, p part, owners []owner) {
	numbers := make([]uint16, 1+len(owners))
	for i, o := range owners {
		if o.hosts > 0 {
			numbers[1+i] = t.nodes.acquireMany(o.name, o.hosts)
		}
	}
	for i := range p.rows {
		r := &p.rows[i]
		if r.owner == 0 {
			t.nodes.acquire("")
		}
		r.owner = numbers[r.owner]
	}
	old := &t.parts[n]
	for _, r := range old.rows {
		if r.name != freeName {
			t.nodes.release(r.owner)
		}
	}
	t.hosts += len(p.rows) - len(old.rows) + old.freeCount
	t.bytes += p.size() - old.size()
	p.generation = old.generation + 1
	*old = p
}

// A loader decodes a part. After the first error it returns only empty values.
type loader struct {
	in     []byte
	part   int
	owners []owner
	to     part
	bad    error
}

func (l *loader) readNumber(most uint64) uint64 {
	x, n := binary.Uvarint(l.in)
	if n <= 0 || x > most {
		l.fail("number")
		return 0
	}
	l.in = l.in[n:]
	return x
}

func (l *loader) readBytes(n uint64) []byte {
	if n > uint64(len(l.in)) {
		l.fail("length")
		n = 0
	}
	b := l.in[:n]
	l.in = l.in[n:]
	return b
}

func (l *loader) fail(what string) {
	if l.bad == nil {
		l.bad = fmt.Errorf("%w: invalid %s", ErrDamaged, what)
	}
	l.in = nil
}

func (l *loader) readNodes() {
	n := l.readNumber(min(MaxNodes, uint64(len(l.in)/2)))
	known := make(map[strategy.Node]bool, n)
	for range n {
		name := strategy.Node(l.readBytes(l.readNumber(math.MaxInt32)))
		if name == "" || known[name] {
			l.fail("node name")
			return
		}
		known[name] = true
		l.owners = append(l.owners, owner{name: name})
	}
}

func (l *loader) readRows(k *Key) {
	n := int(l.readNumber(uint64(len(l.in) / minRowSize)))
	if n == 0 || l.bad != nil {
		return
	}
	p := &l.to
	p.rows = slices.Grow(p.rows, n)
	p.names = slices.Grow(p.names, max(0, len(l.in)-n*(minRowSize-1)))
	p.index = make([]uint32, indexFor(n))
	for range n {
		name := l.readBytes(l.readNumber(math.MaxInt32))
		r := row{owner: uint16(l.readNumber(uint64(len(l.owners))))}
		rest := l.readBytes(6)
		if l.bad != nil {
			return
		}
		r.state, r.round, r.since = rest[0], rest[1], binary.LittleEndian.Uint32(rest[2:])
		l.add(k, name, r)
	}
}

func (l *loader) add(k *Key, name []byte, r row) {
	p, h := &l.to, k.Sum(name)
	if partOf(h) != l.part {
		l.fail("host name: belongs to another part")
		return
	}
	if _, _, there := p.find(h, name); there {
		l.fail("host name: duplicate")
		return
	}
	r.name = uint32(len(p.names))
	p.names = appendBytes(p.names, name)
	p.rows = append(p.rows, r)
	p.insertIndex(h, uint32(len(p.rows)-1))
	if r.owner > 0 {
		l.owners[r.owner-1].hosts++
	}
}
