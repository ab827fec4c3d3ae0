package parse

import (
	"bytes"
	"errors"
	"hash/maphash"
	"slices"

	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
)

const (
	maxRel  = 256 // bytes of a rel
	maxLang = 35  // bytes of a language tag

	maxVariants = 256 // languages of a page
)

// outlinks collects the links of a page, each pair of URL and kind once. All texts are in one buffer, which becomes one
// string at the end; a hash table of indexes finds duplicates.
type outlinks struct {
	max       int
	maxText   int    // bytes of text
	cut       bool   // a limit was reached
	text      []byte // URLs, rels, languages and anchor texts
	links     []outlink
	variants  []variant
	slots     []uint32 // the length is a power of two; each is 0 or 1 + the index of a link
	dropped   int
	canonical uint32 // 1 + the index of the first canonical link, 0: none
	redirects bool   // the header redirects
	touched   bool   // the markup contained a link, usable or not
}

// An outlink holds the positions of a link's parts in the text.
type outlink struct {
	url, rel, lang, text span
	hash                 uint32
	kind                 page.Kind
	hints                hints
}

// A variant is a link, by its number, to the page in another language, with the position of the language tag.
type variant struct {
	link uint32
	lang span
}

type span struct{ start, end uint32 }

// seed makes the order of the hash table unpredictable, so that no page can cause collisions.
var seed = maphash.MakeSeed()

func (o *outlinks) reset() {
	clear(o.slots)
	*o = outlinks{max: o.max, maxText: o.maxText, text: o.text[:0], links: o.links[:0], slots: o.slots,
		variants: o.variants[:0]}
}

// add resolves a link against base and stores it, unless it is already stored. It ignores links of other schemes and
// counts other unusable URLs. It returns the link's number, from 1, or 0 if it is not stored.
func (o *outlinks) add(base weburl.URL, r *reference) int {
	o.touched = true
	start := len(o.text)
	text, err := base.AppendCanonical(o.text, r.url)
	if err != nil {
		if !errors.Is(err, weburl.ErrScheme) {
			o.dropped++
		}
		return 0
	}
	o.text = text
	url := text[start:]
	hash := uint32(maphash.Bytes(seed, url)) + uint32(r.kind)
	slot := o.find(url, r.kind, hash)
	if *slot == 0 {
		*slot = o.store(start, hash, r)
	} else {
		o.text = text[:start]
		o.merge(&o.links[*slot-1], cut(r.rel, maxRel))
	}
	if r.kind == page.Canonical && o.canonical == 0 {
		o.canonical = *slot
	}
	if len(r.lang) > 0 && *slot > 0 {
		o.addVariant(*slot, r)
	}
	return int(*slot)
}

// addVariant records that a link leads to the page in a language. One URL may have several languages.
func (o *outlinks) addVariant(link uint32, r *reference) {
	if r.kind != page.Alternate && r.kind != page.Header || len(o.variants) == maxVariants || !isAlternate(r.rel) {
		return
	}
	o.variants = append(o.variants, variant{link, o.piece(cut(r.lang, maxLang))})
}

// find returns the slot of a link, or the empty slot for it.
func (o *outlinks) find(url []byte, kind page.Kind, hash uint32) *uint32 {
	if 2*len(o.links) >= len(o.slots) {
		o.grow()
	}
	mask := uint32(len(o.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		slot := &o.slots[i]
		if *slot == 0 {
			return slot
		}
		if l := &o.links[*slot-1]; l.hash == hash && l.kind == kind && bytes.Equal(o.at(l.url), url) {
			return slot
		}
	}
}

func (o *outlinks) grow() {
	o.slots = make([]uint32, max(256, 2*len(o.slots)))
	mask := uint32(len(o.slots) - 1)
	for n, l := range o.links {
		i := l.hash & mask
		for o.slots[i] != 0 {
			i = (i + 1) & mask
		}
		o.slots[i] = uint32(n) + 1
	}
}

// store adds the link whose URL begins at start and returns the value for its slot, 0 if there is no room.
func (o *outlinks) store(start int, hash uint32, r *reference) uint32 {
	if len(o.links) == o.max || len(o.text) > o.maxText {
		o.dropped++
		o.cut = true
		o.text = o.text[:start]
		return 0
	}
	l := outlink{hash: hash, kind: r.kind, url: span{uint32(start), uint32(len(o.text))}}
	if len(r.rel) > 0 {
		o.rel(&l, cut(r.rel, maxRel))
	}
	if len(r.lang) > 0 {
		l.lang = o.piece(cut(r.lang, maxLang))
	}
	o.links = append(o.links, l)
	return uint32(len(o.links))
}

// rel stores a rel. It shares the text with the previous link if that has the same rel.
func (o *outlinks) rel(l *outlink, rel []byte) {
	if n := len(o.links); n > 0 && bytes.Equal(o.at(o.links[n-1].rel), rel) {
		l.rel, l.hints = o.links[n-1].rel, o.links[n-1].hints
		return
	}
	l.rel, l.hints = o.piece(rel), hintsOf(rel)
}

// merge processes a repeated link. A link may be followed if any of its occurrences on the page may.
func (o *outlinks) merge(l *outlink, rel []byte) {
	if l.hints&noFollow == 0 {
		return
	}
	if hints := hintsOf(rel); hints&noFollow == 0 {
		l.rel, l.hints = o.piece(rel), hints
	}
}

func (o *outlinks) piece(text []byte) span {
	start := uint32(len(o.text))
	o.text = append(o.text, text...)
	return span{start, uint32(len(o.text))}
}

func (o *outlinks) at(s span) []byte { return o.text[s.start:s.end] }

// setText sets a link's text, unless it has one.
func (o *outlinks) setText(number int, text string) {
	if l := &o.links[number-1]; text != "" && l.text == (span{}) && len(o.text)+len(text) <= o.maxText {
		l.text = o.piece([]byte(text))
	}
}

func (o *outlinks) fill(pg *page.Page) {
	text := string(o.text)
	first := len(pg.Links)
	pg.Links = slices.Grow(pg.Links, len(o.links))[:first+len(o.links)]
	for i := range o.links {
		l := &o.links[i]
		pg.Links[first+i] = page.Link{
			URL:       text[l.url.start:l.url.end],
			Kind:      l.kind,
			Rel:       text[l.rel.start:l.rel.end],
			Lang:      text[l.lang.start:l.lang.end],
			Text:      text[l.text.start:l.text.end],
			NoFollow:  l.hints&noFollow != 0,
			UGC:       l.hints&userMade != 0,
			Sponsored: l.hints&sponsored != 0,
		}
	}
	for _, v := range o.variants {
		pg.Variants = append(pg.Variants, page.Variant{Lang: text[v.lang.start:v.lang.end],
			URL: pg.Links[first+int(v.link)-1].URL})
	}
	if o.canonical > 0 {
		pg.Canonical = pg.Links[o.canonical-1].URL
	}
	if pg.Dropped, pg.MemoryCut = o.dropped, o.cut; o.cut {
		pg.LinksCut = page.ByMemory
	}
}

// release frees buffers that a large page made large.
func (o *outlinks) release() {
	if cap(o.text) > maxKept || len(o.slots)*4 > maxKept {
		*o = outlinks{max: o.max, maxText: o.maxText}
	}
}
