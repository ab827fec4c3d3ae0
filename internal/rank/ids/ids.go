// Package ids numbers URLs from 0 in the order in which they become known, in less than 8 bytes of memory a URL.
//
// What is kept of a URL is 37 bits of a keyed hash, its [Key]. The first 12 name one of 4,096 small hash tables. A slot of
// that has the other 25 and the URL's number, in 6.5 bytes. What is in a table is in the order of the keys, each at its
// home or behind it, where the next keys begin; so a look-up reads a stretch of memory of some ten slots, whether the URL
// is there or not, although tables are up to 15/16 full. They grow by a sixteenth, each at another time, so nothing is
// ever done to all of them at once.
//
// Two URLs with the same key are one to who asks: they share a number, and so a rank. Among n URLs that is the lot of
// n²/2³⁸: 4 in a million, 360 in ten million (one in 27,000), 36,000 in a hundred million (one in 2,700). No URL is lost
// by it, as what waits is known by its name; and as the hash is a crawl's own, nobody can aim at a URL.
package ids

import (
	"encoding/binary"
	"errors"

	"kumo/internal/rank"
	"kumo/internal/siphash"
)

// A Key is what is known of a URL: 37 bits.
type Key uint64

// KeyBits is how many bits a key has.
const KeyBits = 37

// KeyOf is the key of a canonical URL.
func KeyOf(key *siphash.Key, url string) Key { return Key(key.SumString(url) >> (64 - KeyBits)) }

// Parts is how many parts a table has.
const Parts = 1 << partBits

const (
	partBits   = 12
	restBits   = KeyBits - partBits // what tells URLs of a part apart
	numberBits = 27
	slotBits   = restBits + numberBits // a multiple of 4
)

// Most is how many URLs can be numbered.
const Most = 1<<numberBits - 1

// ErrFull says that there are as many URLs as there are numbers.
var ErrFull = errors.New("as many URLs are ranked as can be: 134 million on a node")

// A Table numbers URLs. Its methods are called by one goroutine at a time.
type Table struct {
	parts [Parts]part
	n     int
}

// A part is a hash table.
type part struct {
	b     []byte // slots, one after the other, and 2 bytes more: the last is read as 8 bytes, too
	slots uint32
	homes uint32 // fewer than slots: what finds no room at its home goes behind it
	used  uint32
}

// A slot is what is known of a URL, and its number plus 1; 0 is free.
type slot uint64

const slotMask = 1<<slotBits - 1

func slotOf(rest uint32, id rank.ID) slot { return slot(rest)<<numberBits | slot(id+1) }

func (s slot) rest() uint32 { return uint32(s >> numberBits) }
func (s slot) id() rank.ID  { return rank.ID(s&Most) - 1 }

// New returns a table without URLs.
func New() *Table {
	t := &Table{}
	for i := range t.parts {
		t.parts[i].make(8 + i%8) // so that they do not grow at the same time
	}
	return t
}

func (p *part) make(slots int) {
	p.b = append([]byte(nil), make([]byte, (slots*slotBits+7)/8+2)...)
	p.b = p.b[:cap(p.b)] // as long as the piece of memory that there is for it
	p.slots = uint32((len(p.b) - 2) * 8 / slotBits)
	p.homes = p.slots - p.slots/64 - 1
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

// home is where a URL is, if nothing is in its way.
func (p *part) home(rest uint32) uint32 { return uint32(uint64(rest) * uint64(p.homes) >> restBits) }

// find is the slot of a URL, or that before which it belongs.
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

// Len is how many URLs have numbers.
func (t *Table) Len() int { return t.n }

// Find is the number of a URL.
func (t *Table) Find(k Key) (rank.ID, bool) {
	_, s := t.parts[k>>restBits].find(uint32(k) & (1<<restBits - 1))
	return s.id(), s != 0
}

// Add is the number of a URL, which gets the next one if it has none. It fails if there are no numbers left.
func (t *Table) Add(k Key) (id rank.ID, isNew bool, err error) {
	p, rest := &t.parts[k>>restBits], uint32(k)&(1<<restBits-1)
	at, s := p.find(rest)
	if s != 0 {
		return s.id(), false, nil
	}
	if t.n == Most {
		return 0, false, ErrFull
	}
	for id = rank.ID(t.n); !p.insert(at, slotOf(rest, id)); at, _ = p.find(rest) {
		p.grow()
	}
	t.n++
	return id, true, nil
}

// insert puts a slot where it belongs, and moves what is behind it to the next that is free; false if it is too full.
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

// grow makes a part longer by a sixteenth.
func (p *part) grow() {
	old := *p
	for n := int(old.slots); ; n = int(p.slots) {
		p.make(n + max(1, n/16))
		if p.fill(&old) {
			return
		}
	}
}

// fill takes all of another part over; false if there is not enough room behind some homes.
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

// Part calls f for all URLs of one of the Parts parts.
func (t *Table) Part(i int, f func(Key, rank.ID)) {
	p := &t.parts[i]
	for at := range p.slots {
		if s := p.get(at); s != 0 {
			f(Key(i)<<restBits|Key(s.rest()), s.id())
		}
	}
}

// Bytes is how much memory the table takes.
func (t *Table) Bytes() (n int64) {
	const each = 40 // bytes of a part that are not slots
	for i := range t.parts {
		n += int64(cap(t.parts[i].b)) + each
	}
	return n
}
