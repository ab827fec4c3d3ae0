package frontier

import (
	"encoding/binary"

	"kumo/internal/page"
)

// A writer encodes blocks; its buffer is used again.
type writer struct{ b []byte }

func (w *writer) uint(n uint64) { w.b = binary.AppendUvarint(w.b, n) }
func (w *writer) int(n int64)   { w.b = binary.AppendVarint(w.b, n) }
func (w *writer) string(s string) {
	w.uint(uint64(len(s)))
	w.b = append(w.b, s...)
}

// rest writes s without what it shares with the beginning of before.
func (w *writer) rest(s, before string) {
	n := 0
	for n < len(s) && n < len(before) && s[n] == before[n] {
		n++
	}
	w.uint(uint64(n))
	w.string(s[n:])
}

// block encodes a block with these items.
func (w *writer) block(b *block, items []*Item) {
	w.uint(b.run)
	w.string(b.host)
	w.uint(uint64(len(b.links)))
	for i := range b.links {
		w.link(&b.links[i])
	}
	w.uint(uint64(len(items)))
	before := firstItem(b.host)
	for _, it := range items {
		w.item(it, &before)
		before = *it
	}
}

const rootScheme = "https://"

// firstItem is what the first item of a block is compared with.
func firstItem(host string) Item {
	root := rootScheme + host + "/"
	return Item{URL: root, From: root, Seed: root}
}

func (w *writer) link(l *link) {
	w.b = binary.LittleEndian.AppendUint64(w.b, uint64(l.at))
	w.int(int64(l.key.rank))
	w.uint(l.key.seq)
	w.uint(uint64(l.count))
	w.uint(uint64(l.oldest))
}

func (w *writer) item(it, before *Item) {
	w.b = append(w.b, it.flags(), byte(it.Kind))
	if it.Redirects > 0 || it.Tries > 0 {
		w.b = append(w.b, it.Redirects, it.Tries)
	}
	w.int(int64(it.rank))
	w.int(int64(it.seq - before.seq))
	w.int(int64(it.Depth) - int64(it.rank))
	w.rest(it.URL, before.URL)
	w.rest(it.From, before.From)
	w.rest(it.Seed, before.Seed)
	w.rest(it.Path, before.Path)
	if it.Robots != "" {
		w.string(it.Robots)
	}
}

func (it *Item) flags() (f byte) {
	for i, set := range []bool{it.Root, it.Told, it.Robots != "", it.Redirects > 0 || it.Tries > 0, it.Recrawl} {
		if set {
			f |= 1 << i
		}
	}
	return f
}

// A reader decodes blocks. After the first error it reads zeros.
type reader struct {
	b     []byte
	text  []byte // the items' strings, one after the other
	spans []fields
	bad   bool
}

func (r *reader) uint() uint64 {
	n, size := binary.Uvarint(r.b)
	return advance(r, n, size)
}

func (r *reader) int() int64 {
	n, size := binary.Varint(r.b)
	return advance(r, n, size)
}

func advance[T any](r *reader, n T, size int) T {
	if size <= 0 {
		var zero T
		r.bad, r.b = true, nil
		return zero
	}
	r.b = r.b[size:]
	return n
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) byte() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) string() string { return string(r.bytes(r.uint())) }

// count reads how many things follow that take a byte each at least.
func (r *reader) count() int {
	n := r.uint()
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return 0
	}
	return int(n)
}

// A span is a string of a block while its text still grows.
type span struct{ from, to int }

func (r *reader) rest(before span) span {
	shared := r.uint()
	rest := r.bytes(r.uint())
	if shared > uint64(before.to-before.from) {
		r.bad = true
		return span{}
	}
	if len(rest) == 0 && int(shared) == before.to-before.from {
		return before
	}
	s := span{from: len(r.text)}
	r.text = append(r.text, r.text[before.from:before.from+int(shared)]...)
	r.text = append(r.text, rest...)
	s.to = len(r.text)
	return s
}

func (r *reader) head() block {
	b := block{run: r.uint(), host: r.string()}
	if n := r.count(); n > 0 {
		b.links = make([]link, n)
		for i := range b.links {
			b.links[i] = r.link()
		}
	}
	return b
}

func (r *reader) link() link {
	var at uint64
	if b := r.bytes(8); b != nil {
		at = binary.LittleEndian.Uint64(b)
	}
	return link{at: loc(at), key: key{int32(r.int()), r.uint()}, count: uint32(r.uint()), oldest: uint32(r.uint())}
}

// fields are the strings that items of a block share parts of.
type fields struct{ url, from, seed, path span }

// parse decodes a block's body.
func (r *reader) parse(body []byte) (block, error) {
	r.b, r.text, r.bad = body, r.text[:0], false
	b := r.head()
	n := r.count()
	b.items = make([]Item, n)
	spans := r.spans[:0]
	r.text = append(append(append(r.text, rootScheme...), b.host...), '/') // as firstItem has it
	root := span{0, len(r.text)}
	last, seq := fields{root, root, root, span{}}, uint64(0)
	for i := range b.items {
		last, seq = r.item(&b.items[i], last, seq)
		if r.bad {
			return block{}, errBlock
		}
		spans = append(spans, last)
	}
	if r.bad || len(r.b) > 0 {
		return block{}, errBlock
	}
	r.spans = spans
	b.settle(string(r.text), spans)
	return b, nil
}

func (r *reader) item(it *Item, last fields, seq uint64) (fields, uint64) {
	flags := r.byte()
	it.Kind, it.Root, it.Told = page.Kind(r.byte()), flags&flagRoot != 0, flags&flagTold != 0
	it.Recrawl = flags&flagRecrawl != 0
	if flags&flagTried != 0 {
		it.Redirects, it.Tries = r.byte(), r.byte()
	}
	it.rank = int32(r.int())
	it.seq = seq + uint64(r.int())
	it.Depth = int32(int64(it.rank) + r.int())
	f := fields{r.rest(last.url), r.rest(last.from), r.rest(last.seed), r.rest(last.path)}
	if flags&flagRobots != 0 {
		it.Robots = r.string()
	}
	return f, it.seq
}

// settle gives the items their strings: parts of one text.
func (b *block) settle(text string, spans []fields) {
	for i, f := range spans {
		it := &b.items[i]
		it.URL, it.From = text[f.url.from:f.url.to], text[f.from.from:f.from.to]
		it.Seed, it.Path = text[f.seed.from:f.seed.to], text[f.path.from:f.path.to]
	}
}
