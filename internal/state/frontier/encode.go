package frontier

import (
	"encoding/binary"
	"math"

	"kumo/internal/base/item"
	"kumo/internal/base/varint"
	"kumo/internal/state/rank"
)

// A writer encodes files and items. Its buffer is reused.
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

// entry writes an entry: its rank and whether it has a url, its age, the url, and the item.
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

// item encodes an item without its key.
func (w *writer) item(host string, it *Item) { w.b = item.AppendBody(w.b, host, it) }

// A reader decodes the output of a writer.
type reader struct{ varint.Reader }

func readerOf(b []byte) reader { return reader{varint.Reader{Rest: b}} }

func (r *reader) key() key { return key{rank: int32(r.Int()), seq: r.Uint()} }

func (r *reader) link() link {
	return link{at: loc(r.Fixed()), key: r.key(), count: uint32(r.Uint()), oldest: loc(r.Uint())}
}

func (r *reader) links() []link {
	n := r.Count()
	if n == 0 {
		return nil
	}
	links := make([]link, n)
	for i := range links {
		links[i] = r.link()
	}
	return links
}

// entry reads an entry. Its data shares the reader's buffer.
func (r *reader) entry() (e entry) {
	rank := r.Uint()
	e.rank, e.seq = int32(uint32(rank>>1))+robotsRank, r.Uint()
	if rank&1 != 0 {
		if b := r.Take(4); b != nil {
			e.url = binary.LittleEndian.Uint32(b)
		}
	}
	e.data = r.Bytes()
	return e
}

// entries reads a counted list of entries and appends them.
func (r *reader) entries(to []entry) []entry {
	for n := r.Count(); n > 0 && !r.Bad; n-- {
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

// moves reads the remaining moves and appends them.
func (r *reader) moves(to []pendingMove) []pendingMove {
	for seq := r.Uint(); len(r.Rest) > 0; {
		if url := r.Take(4); url != nil {
			to = append(to, pendingMove{binary.LittleEndian.Uint32(url), rank.Place(int32(r.Uint() & math.MaxInt32)), seq})
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
