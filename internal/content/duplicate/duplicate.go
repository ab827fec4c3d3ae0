// Package duplicate finds pages whose text equals or nearly equals that of an earlier page.
//
// A page's signature consists of two sketches of 3-word shingles by one-permutation MinHash (Li, Owen, Zhang, "One
// Permutation Hashing", NIPS 2012). One sketch covers the text outside of links and navigation, the other covers all
// text. Two pages are near-duplicates if both sketches agree in at least 35 of 64 bins and their images are the same.
//
// Both sketches are needed. The boilerplate of a site makes the full texts of its pages similar, and lists differ only
// in their links. If both pages have too little text outside of links, only the full texts are compared. Of pages of a
// few words, two of one domain match if they have the same words outside of links, except for numbers, and the same
// images, videos and frames ([Match.Brief]).
//
// A [Table] finds candidates by bands of four bins (locality-sensitive hashing). It stores the signatures of a bounded
// number of pages. It does not store a near-duplicate of a page of the same domain, so that a chain of small changes
// does not drift. Unlike in the literature, each slot of a band holds one page, the newest.
package duplicate

import (
	"encoding/binary"
	"strings"
	"sync"
)

// A Signature is a fingerprint of a page's text.
type Signature struct {
	main, all [bins]uint16
	images    uint64
	brief     uint64 // hash of the words of a short page; 0: the page is not short, or too short
	short     bool   // all has too few shingles
	mainShort bool   // main has too few shingles
}

const (
	minEqualBins = 35 // equal bins of near-duplicates
	bandSize     = 4
	bands        = bins / bandSize
	initialSlots = 1 << 10 // of a band
)

// near reports whether two pages are near-duplicates.
func (s *Signature) near(t *Signature) bool {
	if s.short || t.short || s.images != t.images || s.mainShort != t.mainShort {
		return false
	}
	return equalBins(&s.all, &t.all) >= minEqualBins && (s.mainShort || equalBins(&s.main, &t.main) >= minEqualBins)
}

// band returns a hash of band i of the signature.
func (s *Signature) band(i int) uint64 {
	of := &s.main
	if s.mainShort {
		of = &s.all
	}
	b := of[i*bandSize:]
	return mix(uint64(b[0]) | uint64(b[1])<<16 | uint64(b[2])<<32 | uint64(b[3])<<48 + uint64(i))
}

// DefaultPages is the default number of pages in a table. They take 7 MB if URLs have 100 bytes, and 20 MB if each has a
// signature.
const DefaultPages = 1 << 15

// A Table holds the most recent pages. Its methods are safe for concurrent use.
type Table struct {
	mu     sync.Mutex
	max    int
	pages  []entry
	next   int // overwritten next, once the table is full
	long   int // pages with sketches
	exact  map[uint64]int32
	briefs map[uint64]int32 // short pages, by domain and text
	slots  [bands][]int32   // by the low bits of the band's hash: the page's index + 1; 0: none
}

type entry struct {
	url    string
	domain uint64
	digest uint64
	sig    *Signature // nil: there is no text to compare
	copies uint32
}

// NewTable returns a table of the given number of pages; DefaultPages if pages is not positive.
func NewTable(pages int) *Table {
	if pages <= 0 {
		pages = DefaultPages
	}
	return &Table{max: pages, exact: map[uint64]int32{}, briefs: map[uint64]int32{}}
}

// A Match is an earlier page that equals or resembles a page.
type Match struct {
	URL    string // of the earlier page; "": no match
	Exact  bool   // both have the same bytes
	Brief  bool   // both pages are short and have the same words, except for numbers
	Domain bool   // both pages belong to the same domain
	Copies uint32 // earlier pages of the domain that matched the same page
}

// FindOrAdd looks for an earlier page that resembles the page, and adds the page unless its domain has one. sig is nil
// if the page has no text to compare; otherwise the table keeps it.
func (t *Table) FindOrAdd(url, domain string, digest [20]byte, sig *Signature) Match {
	e := entry{url: url, domain: hash(domain), digest: binary.LittleEndian.Uint64(digest[:]), sig: sig}
	t.mu.Lock()
	defer t.mu.Unlock()
	m, at := t.find(&e)
	if m.Domain {
		m.Copies = t.pages[at].copies
		t.pages[at].copies++
	} else {
		e.url = strings.Clone(url) // url may be part of a larger string
		t.store(e)
	}
	return m
}

// find returns the best match, and the page's index.
func (t *Table) find(e *entry) (m Match, found int32) {
	if i, met := t.exact[e.digest]; met {
		found = i
		m = Match{URL: t.pages[i].url, Exact: true, Domain: t.pages[i].domain == e.domain}
	}
	if !m.Domain && e.isBrief() {
		if i, met := t.briefs[e.briefKey()]; met {
			return Match{URL: t.pages[i].url, Brief: true, Domain: true}, i
		}
	}
	if m.Domain || !e.isLong() || len(t.slots[0]) == 0 {
		return m, found
	}
	for b := range bands {
		at := t.slots[b][t.slot(e, b)] - 1
		if at < 0 {
			continue
		}
		p := &t.pages[at]
		if same := p.domain == e.domain; (m.URL == "" || same && !m.Domain) && p.isLong() && e.sig.near(p.sig) {
			m, found = Match{URL: p.url, Domain: same}, at
		}
		if m.Domain {
			break
		}
	}
	return m, found
}

// isLong reports whether the page has a text to compare by its sketches.
func (e *entry) isLong() bool { return e.sig != nil && !e.sig.short }

// isBrief reports whether the page has a short text to compare.
func (e *entry) isBrief() bool { return e.sig != nil && e.sig.brief != 0 }

func (e *entry) briefKey() uint64 { return mix(e.sig.brief + e.domain) }

func (t *Table) slot(e *entry, band int) uint64 {
	return e.sig.band(band) & uint64(len(t.slots[0])-1)
}

func (t *Table) store(e entry) {
	at := len(t.pages)
	if at < t.max {
		t.pages = append(t.pages, e)
	} else {
		at = t.next
		t.next = (at + 1) % t.max
		if old := &t.pages[at]; t.exact[old.digest] == int32(at) {
			delete(t.exact, old.digest)
		}
		if old := &t.pages[at]; old.isBrief() && t.briefs[old.briefKey()] == int32(at) {
			delete(t.briefs, old.briefKey())
		}
		if t.pages[at].isLong() {
			t.long--
		}
		t.pages[at] = e // stale slots of the replaced page are harmless: near rejects them
	}
	t.exact[e.digest] = int32(at)
	if e.isBrief() {
		t.briefs[e.briefKey()] = int32(at)
	}
	if !e.isLong() {
		return
	}
	if t.long++; len(t.slots[0]) < 2*t.long {
		t.grow()
		return
	}
	t.index(at)
}

func (t *Table) index(at int) {
	e := &t.pages[at]
	if !e.isLong() {
		return
	}
	for b := range bands {
		t.slots[b][t.slot(e, b)] = int32(at + 1)
	}
}

// grow doubles the slots of the bands.
func (t *Table) grow() {
	size := max(initialSlots, 2*len(t.slots[0]))
	for size < 2*t.long {
		size *= 2
	}
	for b := range t.slots {
		t.slots[b] = make([]int32, size)
	}
	for i := range t.pages {
		t.index(i)
	}
}

func hash[T string | []byte](s T) uint64 {
	h := uint64(offset)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * prime
	}
	return h
}
