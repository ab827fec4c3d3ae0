package frontier

import (
	"encoding/binary"
	"math"

	"kumo/internal/base/item"
	"kumo/internal/state/rank"
)

// A writer encodes files and items; its buffer is reused.
type writer struct{ b []byte }

func (w *writer) uint(n uint64) { w.b = binary.AppendUvarint(w.b, n) }
func (w *writer) int(n int64)   { w.b = binary.AppendVarint(w.b, n) }
func (w *writer) string(s string) {
	w.uint(uint64(len(s)))
	w.b = append(w.b, s...)
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

// entry writes an entry's rank and whether it has a url, its age, the url, and the item.
func (w *writer) entry(e *entry) {
	rank := uint64(uint32(e.rank-robotsRank)) << 1
	if e.url != 0 {
		rank |= 1
	}
	w.uint(rank)
	w.uint(e.seq)
	if e.url != 0 {
		w.b = binary.LittleEndian.AppendUint32(w.b, e.url)
	}
	w.uint(uint64(len(e.data)))
	w.b = append(w.b, e.data...)
}

func (w *writer) entries(entries []entry) {
	w.uint(uint64(len(entries)))
	for i := range entries {
		w.entry(&entries[i])
	}
}

// item encodes an item of a host but for its key.
func (w *writer) item(host string, it *Item) { w.b = item.AppendBody(w.b, host, it) }

// A reader decodes. After the first error it reads zeros.
type reader struct {
	b   []byte
	bad bool
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

// count reads the number of the elements that follow, which take a byte each at least.
func (r *reader) count() int {
	n := r.uint()
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return 0
	}
	return int(n)
}

func (r *reader) key() key { return key{rank: int32(r.int()), seq: r.uint()} }

func (r *reader) link() link {
	var at uint64
	if b := r.bytes(8); b != nil {
		at = binary.LittleEndian.Uint64(b)
	}
	return link{at: loc(at), key: r.key(), count: uint32(r.uint()), oldest: loc(r.uint())}
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

// entry reads an entry. Its data is a part of the reader's buffer.
func (r *reader) entry() (e entry) {
	rank := r.uint()
	e.rank, e.seq = int32(uint32(rank>>1))+robotsRank, r.uint()
	if rank&1 != 0 {
		if b := r.bytes(4); b != nil {
			e.url = binary.LittleEndian.Uint32(b)
		}
	}
	e.data = r.bytes(r.uint())
	return e
}

// entries reads a number of entries and appends them.
func (r *reader) entries(to []entry) []entry {
	for n := r.count(); n > 0 && !r.bad; n-- {
		to = append(to, r.entry())
	}
	return to
}

func (w *writer) moves(youngest uint64, moves []Move) {
	w.uint(youngest)
	for _, m := range moves {
		w.b = binary.LittleEndian.AppendUint32(w.b, urlOf(m.Key))
		w.uint(uint64(max(m.Place, 0)))
	}
}

// moves reads moves to the end and appends them.
func (r *reader) moves(to []newPlace) []newPlace {
	for seq := r.uint(); len(r.b) > 0; {
		if url := r.bytes(4); url != nil {
			to = append(to, newPlace{binary.LittleEndian.Uint32(url), rank.Place(int32(r.uint() & math.MaxInt32)), seq})
		}
	}
	return to
}

// item decodes an item of a host.
func (e *entry) item(host string) (Item, error) {
	var items item.Reader
	it, err := items.ReadBody(e.data, host)
	if err != nil {
		return Item{}, errBlock
	}
	it.Rank, it.Seq = e.rank, e.seq
	return it, nil
}
