// Package ids numbers URLs from 0 in the order in which they become known, in 8 bytes of memory a URL, about.
//
// What is kept of a URL is 40 bits of a keyed hash, its [Key]. The first 12 name one of 4,096 small hash tables. Of the
// other 28 a slot of that table has 4, beside the URL's number, and an array that is ordered by number has 24; so a slot
// of another URL is told apart without a look at the array fifteen times in sixteen. Tables are up to 7/8 full and grow
// by an eighth, each at another time, so nothing is ever done to all of them at once.
//
// Two URLs with the same key are one to who asks: they share a number, and so a rank. Among n URLs that is the lot of
// n²/2⁴¹: half of one in a million, 45 in ten million, 4,500 (one in 22,000) in a hundred million. No URL is lost by it,
// as what waits is known by its name; and as the key is a crawl's own, nobody can aim at a URL.
package ids

import (
	"errors"

	"kumo/internal/rank"
	"kumo/internal/siphash"
)

// A Key is what is known of a URL: 40 bits.
type Key uint64

// KeyBits is how many bits a key has.
const KeyBits = 40

// KeyOf is the key of a canonical URL.
func KeyOf(key *siphash.Key, url string) Key { return Key(key.SumString(url) >> (64 - KeyBits)) }

const (
	partBits  = 12
	restBits  = KeyBits - partBits // what tells URLs of a part apart
	tagBits   = 4
	arrayBits = restBits - tagBits

	numberBits = 32 - tagBits
	numberMask = 1<<numberBits - 1
)

// Most is how many URLs can be numbered.
const Most = numberMask

// ErrFull says that there are as many URLs as there are numbers.
var ErrFull = errors.New("as many URLs are ranked as can be: 268 million on a node")

// A Table numbers URLs. Its methods are called by one goroutine at a time.
type Table struct {
	parts [1 << partBits]part
	rests rank.Vector[[arrayBits / 8]byte] // by number
	n     int
}

// A part is a hash table with open addressing. A slot is a tag and a number plus 1; 0 is free.
type part struct {
	slots []uint32
	used  int
}

// New returns a table without URLs.
func New() *Table {
	t := &Table{}
	for i := range t.parts {
		// They begin with lengths an eighth of a doubling apart, so that they do not grow at the same time.
		t.parts[i].slots = make([]uint32, 8+i%8)
	}
	return t
}

// Len is how many URLs have numbers.
func (t *Table) Len() int { return t.n }

// Find is the number of a URL.
func (t *Table) Find(k Key) (rank.ID, bool) {
	p, rest := &t.parts[k>>restBits], uint32(k)&(1<<restBits-1)
	id, _, ok := t.find(p, rest)
	return id, ok
}

// find looks for a URL: its number, or the slot where it would be.
func (t *Table) find(p *part, rest uint32) (id rank.ID, at int, ok bool) {
	tag := rest % (1 << tagBits) << numberBits
	for at = home(rest, len(p.slots)); ; {
		s := p.slots[at]
		if s == 0 {
			return 0, at, false
		}
		if s&^numberMask == tag {
			if id := rank.ID(s&numberMask - 1); t.rest(s) == rest {
				return id, at, true
			}
		}
		if at++; at == len(p.slots) {
			at = 0
		}
	}
}

// home is the slot where the search for a URL begins.
func home(rest uint32, slots int) int { return int(uint64(rest) * uint64(slots) >> restBits) }

// rest is what is known of the URL in a slot.
func (t *Table) rest(slot uint32) uint32 {
	b := t.rests.At(rank.ID(slot&numberMask - 1))
	return (uint32(b[0])|uint32(b[1])<<8|uint32(b[2])<<16)<<tagBits | slot>>numberBits
}

// Add is the number of a URL, which gets the next one if it has none. It fails if there are no numbers left.
func (t *Table) Add(k Key) (id rank.ID, isNew bool, err error) {
	p, rest := &t.parts[k>>restBits], uint32(k)&(1<<restBits-1)
	id, at, ok := t.find(p, rest)
	if ok {
		return id, false, nil
	}
	if t.n == Most {
		return 0, false, ErrFull
	}
	if 8*(p.used+1) > 7*len(p.slots) {
		t.grow(p)
		_, at, _ = t.find(p, rest)
	}
	id = rank.ID(t.n)
	t.n++
	t.rests.Grow(t.n)
	high := rest >> tagBits
	*t.rests.At(id) = [...]byte{byte(high), byte(high >> 8), byte(high >> 16)}
	p.slots[at] = rest%(1<<tagBits)<<numberBits | uint32(id) + 1
	p.used++
	return id, true, nil
}

// grow makes a part's table longer by an eighth.
func (t *Table) grow(p *part) {
	old := p.slots
	n := len(old) + max(1, len(old)/8)
	grown := append([]uint32(nil), make([]uint32, n)...) // as long as the piece of memory that there is for it
	p.slots = grown[:cap(grown)]
	clear(p.slots)
	for _, s := range old {
		if s == 0 {
			continue
		}
		at := home(t.rest(s), len(p.slots))
		for p.slots[at] != 0 {
			if at++; at == len(p.slots) {
				at = 0
			}
		}
		p.slots[at] = s
	}
}

// Parts is how many parts a table has.
const Parts = 1 << partBits

// Part calls f for all URLs of one of the Parts parts.
func (t *Table) Part(i int, f func(Key, rank.ID)) {
	for _, s := range t.parts[i].slots {
		if s != 0 {
			f(Key(i)<<restBits|Key(t.rest(s)), rank.ID(s&numberMask-1))
		}
	}
}

// Bytes is how much memory the table takes.
func (t *Table) Bytes() (n int64) {
	for i := range t.parts {
		n += int64(cap(t.parts[i].slots)) * 4
	}
	return n + int64(t.rests.Room())*arrayBits/8
}
