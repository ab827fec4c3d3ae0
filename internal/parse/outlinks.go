package parse

import (
	"bytes"
	"errors"
	"hash/maphash"

	"kumo/internal/page"
	"kumo/internal/weburl"
)

const (
	maxURLs = 8 << 20 // bytes of a page's link URLs together
	maxRel  = 256     // bytes of a rel
)

// outlinks collects a page's links, each URL and kind once. The text of all of them lies in one buffer, which becomes one
// string when the page is done; a hash table of indexes finds the doubles.
type outlinks struct {
	max       int
	text      []byte // URLs and rels
	links     []outlink
	slots     []uint32 // a power of two of them; each is 0 or 1 + the index of a link
	dropped   int
	canonical uint32 // 1 + the index of the first canonical link, 0 if there is none
	redirects bool   // the header redirects
	touched   bool   // markup gave a link, or would have, had it been usable
}

// An outlink is where a link's parts lie in the text.
type outlink struct {
	url, rel struct{ start, end uint32 }
	hash     uint32
	kind     page.Kind
}

// seed makes the hash table's order unforeseeable, so that no page can be made to collide.
var seed = maphash.MakeSeed()

func (o *outlinks) reset() {
	clear(o.slots)
	*o = outlinks{max: o.max, text: o.text[:0], links: o.links[:0], slots: o.slots}
}

// add resolves a link against base and keeps it, unless it has it already. Links of other schemes are none; other URLs that
// cannot be used are counted.
func (o *outlinks) add(base weburl.URL, ref []byte, kind page.Kind, rel []byte) {
	o.touched = true
	start := len(o.text)
	text, err := base.AppendCanonical(o.text, ref)
	if errors.Is(err, weburl.ErrScheme) {
		return
	}
	if err != nil || len(text) > maxURLs {
		o.dropped++
		return
	}
	o.text = text
	url := text[start:]
	hash := uint32(maphash.Bytes(seed, url)) + uint32(kind)
	slot := o.find(url, kind, hash)
	if *slot == 0 {
		*slot = o.keep(start, kind, hash, rel)
	} else {
		o.text = text[:start]
	}
	if kind == page.Canonical && o.canonical == 0 {
		o.canonical = *slot
	}
}

// find returns the slot of a link, or the empty one where it belongs.
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
		if l := &o.links[*slot-1]; l.hash == hash && l.kind == kind && bytes.Equal(o.text[l.url.start:l.url.end], url) {
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

// keep keeps the link whose URL begins at start and returns what its slot is to hold, 0 if there is no room for it. A rel like
// that of the link before is kept once.
func (o *outlinks) keep(start int, kind page.Kind, hash uint32, rel []byte) uint32 {
	if len(o.links) == o.max {
		o.dropped++
		o.text = o.text[:start]
		return 0
	}
	l := outlink{hash: hash, kind: kind}
	l.url.start, l.url.end = uint32(start), uint32(len(o.text))
	if rel = cut(rel, maxRel); len(rel) > 0 {
		l.rel.start = l.url.end
		if n := len(o.links); n > 0 && bytes.Equal(o.text[o.links[n-1].rel.start:o.links[n-1].rel.end], rel) {
			l.rel = o.links[n-1].rel
		} else {
			o.text = append(o.text, rel...)
			l.rel.end = uint32(len(o.text))
		}
	}
	o.links = append(o.links, l)
	return uint32(len(o.links))
}

// fill gives the links to pg.
func (o *outlinks) fill(pg *page.Page) {
	text := string(o.text)
	for _, l := range o.links {
		pg.Links = append(pg.Links, page.Link{
			URL:  text[l.url.start:l.url.end],
			Kind: l.kind,
			Rel:  text[l.rel.start:l.rel.end],
		})
	}
	if o.canonical > 0 {
		pg.Canonical = pg.Links[o.canonical-1].URL
	}
	pg.Dropped = o.dropped
}

// release lets go of buffers that an unusual page made large.
func (o *outlinks) release() {
	if cap(o.text) > maxKept || len(o.slots)*4 > maxKept {
		*o = outlinks{max: o.max}
	}
}
