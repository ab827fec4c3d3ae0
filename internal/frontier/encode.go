package frontier

import (
	"encoding/binary"

	"kumo/internal/page"
)

// A writer encodes what goes into files, and items as they wait; its buffer is used again.
type writer struct{ b, root []byte }

func (w *writer) uint(n uint64) { w.b = binary.AppendUvarint(w.b, n) }
func (w *writer) int(n int64)   { w.b = binary.AppendVarint(w.b, n) }
func (w *writer) string(s string) {
	w.uint(uint64(len(s)))
	w.b = append(w.b, s...)
}

// rest writes s without what it shares with the beginning of before.
func (w *writer) rest(s string, before []byte) {
	n := 0
	for n < len(s) && n < len(before) && s[n] == before[n] {
		n++
	}
	w.uint(uint64(n))
	w.string(s[n:])
}

func (w *writer) key(k key) {
	w.int(int64(k.rank))
	w.uint(k.seq)
}

func (w *writer) link(l *link) {
	w.b = binary.LittleEndian.AppendUint64(w.b, uint64(l.at))
	w.key(l.key)
	w.uint(uint64(l.count))
	w.uint(uint64(l.oldest))
}

func (w *writer) links(links []link) {
	w.uint(uint64(len(links)))
	for i := range links {
		w.link(&links[i])
	}
}

func (w *writer) entry(e *entry) {
	w.key(e.key)
	w.uint(uint64(len(e.data)))
	w.b = append(w.b, e.data...)
}

func (w *writer) entries(entries []entry) {
	w.uint(uint64(len(entries)))
	for i := range entries {
		w.entry(&entries[i])
	}
}

const (
	flagRoot = 1 << iota
	flagTold
	flagRobots
	flagTried // has redirects or tries
	flagRecrawl
	flagPlain // http, not https
)

// appendRoot appends the URL of a host's root, with which an item's URL and seed share what can be left out.
func appendRoot(b []byte, host string, flags byte) []byte {
	if flags&flagPlain != 0 {
		b = append(b, "http://"...)
	} else {
		b = append(b, "https://"...)
	}
	return append(append(b, host...), '/')
}

// item encodes an item of a host but for its key. The page that named it is told by what it does not share with the URL.
func (w *writer) item(host string, it *Item) {
	flags := it.flags()
	w.root = appendRoot(w.root[:0], host, flags)
	w.b = append(w.b, flags, byte(it.Kind))
	if flags&flagTried != 0 {
		w.b = append(w.b, it.Redirects, it.Tries)
	}
	w.int(int64(it.Depth))
	w.rest(it.URL, w.root)
	w.rest(it.Seed, w.root)
	w.root = append(w.root[:0], it.URL...)
	w.rest(it.From, w.root)
	w.string(it.Path)
	if it.Robots != "" {
		w.string(it.Robots)
	}
}

func (it *Item) flags() (f byte) {
	plain := len(it.URL) > 4 && it.URL[4] == ':'
	for i, set := range [...]bool{it.Root, it.Told, it.Robots != "", it.Redirects > 0 || it.Tries > 0, it.Recrawl, plain} {
		if set {
			f |= 1 << i
		}
	}
	return f
}

// A reader decodes. After the first error it reads zeros.
type reader struct {
	b    []byte
	text []byte // an item's strings, one after the other
	bad  bool
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
	b := r.b[:n:n]
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

func (r *reader) key() key { return key{int32(r.int()), r.uint()} }

func (r *reader) link() link {
	var at uint64
	if b := r.bytes(8); b != nil {
		at = binary.LittleEndian.Uint64(b)
	}
	return link{at: loc(at), key: r.key(), count: uint32(r.uint()), oldest: uint32(r.uint())}
}

func (r *reader) links() []link {
	n := r.count()
	if n == 0 {
		return nil
	}
	links := make([]link, n)
	for i := range links {
		links[i] = r.link()
	}
	return links
}

// entry reads an entry, whose data stays part of what is read.
func (r *reader) entry() entry { return entry{key: r.key(), data: r.bytes(r.uint())} }

// entries appends as many entries as are said to follow.
func (r *reader) entries(to []entry) []entry {
	for n := r.count(); n > 0 && !r.bad; n-- {
		to = append(to, r.entry())
	}
	return to
}

// rest appends to the text a string that was written without what it shares with before; it returns where it ends.
func (r *reader) rest(before []byte) int {
	shared, rest := r.uint(), r.bytes(r.uint())
	if shared > uint64(len(before)) {
		r.bad, shared = true, 0
	}
	r.text = append(append(r.text, before[:shared]...), rest...)
	return len(r.text)
}

// item decodes what waits at a host. All its strings but that of the robots are parts of one.
func (r *reader) item(host string, e *entry) (it Item, err error) {
	r.b, r.bad = e.data, false
	flags := r.byte()
	it.key = e.key
	it.Kind, it.Root, it.Told, it.Recrawl = page.Kind(r.byte()), flags&flagRoot != 0, flags&flagTold != 0, flags&flagRecrawl != 0
	if flags&flagTried != 0 {
		it.Redirects, it.Tries = r.byte(), r.byte()
	}
	it.Depth = int32(r.int())
	r.text = appendRoot(r.text[:0], host, flags)
	root := len(r.text)
	url := r.rest(r.text[:root])
	seed := r.rest(r.text[:root])
	from := r.rest(r.text[root:url])
	r.text = append(r.text, r.bytes(r.uint())...)
	if flags&flagRobots != 0 {
		it.Robots = r.string()
	}
	if r.bad || len(r.b) > 0 {
		return Item{}, errBlock
	}
	text := string(r.text[root:])
	it.URL, it.Seed, it.From, it.Path = text[:url-root], text[url-root:seed-root], text[seed-root:from-root], text[from-root:]
	return it, nil
}
