// Package ids numbers URLs from 0 in the order of their discovery, in less than 8 bytes of memory per URL.
//
// A URL is stored as 37 bits of a keyed hash, its [Key]. The first 15 bits select one of 5,044 small hash tables of
// several sizes. A slot stores the other bits and the URL's number, in 6.5 bytes. Entries are sorted by key, each at
// its home slot or in the slots after it, before the next keys begin. So a lookup reads some ten adjacent slots,
// whether the URL is present or not, although tables are up to 15/16 full. Tables grow by a sixteenth, so no operation
// affects all of them at once.
//
// Two URLs with the same key share a number, and so a rank. Among n URLs, about n²/2³⁸ share one: 4 in a million, 360
// in ten million (one in 27,000), 36,000 in a hundred million (one in 2,700). No URL is lost by this, since queues
// identify URLs by name. The hash key is specific to the crawl, so nobody can construct a collision with a URL.
package ids

import (
	"encoding/binary"
	"errors"

	"kumo/internal/base/siphash"
	"kumo/internal/state/rank"
)

// A Key identifies a URL by 37 bits of a hash.
type Key uint64

// KeyBits is the number of bits of a key.
const KeyBits = 37

// KeyOf returns the key of a canonical URL.
func KeyOf(key *siphash.Key, url string) Key { return Key(key.SumString(url) >> (64 - KeyBits)) }

// A URL is a ranked URL.
type URL struct {
	Key   Key
	Depth int32 // in links from a seed
}

// Parts is the number of parts of a table.
const Parts = (1<<prefixBits + group - 1) / group * len(spans)

// Prefixes of keys are assigned to parts in groups, to parts of several sizes. Memory is allocated in few sizes, and
// parts that grew into the next size at the same time would all have much unused room.
const (
	prefixBits = 15
	lowBits    = KeyBits - prefixBits
	group      = 5 + 6 + 7 + 8
)

// spans is the number of prefixes in each part of a group.
var spans = [...]uint32{5, 6, 7, 8}

// inGroup maps each prefix of a group to its part and to the part's first prefix.
var inGroup = func() (all [group]struct{ part, first uint32 }) {
	first := uint32(0)
	for i, span := range spans {
		for r := range span {
			all[first+r].part, all[first+r].first = uint32(i), first
		}
		first += span
	}
	return all
}()

const (
	restBits   = lowBits + 3 // bits that identify a URL within a part: which of its prefixes, and the rest of the key
	numberBits = 27
	slotBits   = restBits + numberBits
)

// split returns the part of a key, and the bits that identify it there.
func split(k Key) (part, rest uint32) {
	prefix := uint32(k >> lowBits)
	of := inGroup[prefix%group]
	return prefix/group*uint32(len(spans)) + of.part, (prefix%group-of.first)<<lowBits | uint32(k)&(1<<lowBits-1)
}

func join(part, rest uint32) Key {
	first := uint32(0)
	for i := range part % uint32(len(spans)) {
		first += spans[i]
	}
	return Key(part/uint32(len(spans))*group+first)<<lowBits + Key(rest)
}

// MaxURLs is the maximum number of URLs in a table.
const MaxURLs = 1<<numberBits - 1

// ErrFull is the error when all numbers are taken.
var ErrFull = errors.New("rank: no numbers left for more URLs")

// A Table numbers URLs. It is not safe for concurrent use.
type Table struct {
	parts [Parts]part
	n     int
}

type part struct {
	b     []byte // slots, and 2 more bytes, since the last slot is read as 8 bytes
	slots uint32
	homes uint32 // fewer than slots: an entry without room at its home lies behind it
	used  uint32
	scale uint64 // homes divided by the range of rest, times 2^scaleBits
}

const scaleBits = 36

// A slot contains the identifying bits of a URL, and its number plus 1; 0 is free.
type slot uint64

const slotMask = 1<<slotBits - 1

func slotOf(rest uint32, id rank.ID) slot { return slot(rest)<<numberBits | slot(id+1) }

func (s slot) rest() uint32 { return uint32(s >> numberBits) }
func (s slot) id() rank.ID  { return rank.ID(s&MaxURLs) - 1 }

// New returns a table without URLs.
func New() *Table {
	t := &Table{}
	for i := range t.parts {
		t.parts[i].make(spans[i%len(spans)], 8)
	}
	return t
}

func (p *part) make(span uint32, slots int) {
	p.b = append([]byte(nil), make([]byte, (slots*slotBits+7)/8+2)...)
	p.b = p.b[:cap(p.b)] // use all of the allocated memory
	p.slots = uint32((len(p.b) - 2) * 8 / slotBits)
	p.homes = p.slots - p.slots/64 - 1
	p.scale = uint64(p.homes) << (scaleBits - lowBits) / uint64(span)
}

func (p *part) get(i uint32) slot {
	at := i * slotBits
	return slot(binary.LittleEndian.Uint64(p.b[at/8:]) >> (at % 8) & slotMask)
}

func (p *part) set(i uint32, s slot) {
	at := i * slotBits
	b, shift := p.b[at/8:], at%8
	binary.LittleEndian.PutUint64(b, uint64(s)<<shift|binary.LittleEndian.Uint64(b)&^(slotMask<<shift))
}

// home returns the slot at which a URL lies if no other entry displaces it.
func (p *part) home(rest uint32) uint32 { return uint32(uint64(rest) * p.scale >> scaleBits) }

// find returns the slot of a URL, or the one before which it must be inserted.
func (p *part) find(rest uint32) (at uint32, found slot) {
	for at = p.home(rest); at < p.slots; at++ {
		if s := p.get(at); s == 0 || s.rest() > rest {
			return at, 0
		} else if s.rest() == rest {
			return at, s
		}
	}
	return at, 0
}

// Len returns the number of numbered URLs.
func (t *Table) Len() int { return t.n }

// Find returns the number of a URL.
func (t *Table) Find(k Key) (rank.ID, bool) {
	part, rest := split(k)
	_, s := t.parts[part].find(rest)
	return s.id(), s != 0
}

// Add returns the number of a URL, and assigns the next one to a new URL. It fails if no numbers are left.
func (t *Table) Add(k Key) (id rank.ID, isNew bool, err error) {
	part, rest := split(k)
	p := &t.parts[part]
	at, s := p.find(rest)
	if s != 0 {
		return s.id(), false, nil
	}
	if t.n == MaxURLs {
		return 0, false, ErrFull
	}
	for id = rank.ID(t.n); !p.insert(at, slotOf(rest, id)); at, _ = p.find(rest) {
		p.grow(spans[part%uint32(len(spans))])
	}
	t.n++
	return id, true, nil
}

// insert inserts a slot at at, and moves the following ones up to the next free one. It returns false if the part is
// too full.
func (p *part) insert(at uint32, s slot) bool {
	if 16*(p.used+1) > 15*p.slots {
		return false
	}
	end := at
	for end < p.slots && p.get(end) != 0 {
		end++
	}
	if end == p.slots {
		return false
	}
	for ; end > at; end-- {
		p.set(end, p.get(end-1))
	}
	p.set(at, s)
	p.used++
	return true
}

func (p *part) grow(span uint32) {
	old := *p
	for n := int(old.slots); ; n = int(p.slots) {
		p.make(span, n+max(1, n/16))
		if p.fill(&old) {
			return
		}
	}
}

// fill adds all entries of another part. It returns false if there is not enough room behind some homes.
func (p *part) fill(old *part) bool {
	next := uint32(0)
	for i := range old.slots {
		s := old.get(i)
		if s == 0 {
			continue
		}
		if next = max(next, p.home(s.rest())); next == p.slots {
			return false
		}
		p.set(next, s)
		next++
	}
	return true
}

// Part calls f for all URLs of a part.
func (t *Table) Part(i int, f func(Key, rank.ID)) {
	p := &t.parts[i]
	for at := range p.slots {
		if s := p.get(at); s != 0 {
			f(join(uint32(i), s.rest()), s.id())
		}
	}
}

// Bytes returns the memory used by the table.
func (t *Table) Bytes() (n int64) {
	const each = 48 // bytes of a part besides its slots
	for i := range t.parts {
		n += int64(cap(t.parts[i].b)) + each
	}
	return n
}
