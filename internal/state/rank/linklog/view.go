package linklog

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"sort"

	"kumo/internal/base/varint"
	"kumo/internal/base/vfs"
	"kumo/internal/state/rank"
)

// A Size is the size of a log.
type Size struct {
	Links  int64 // added since it was opened
	Bytes  int64 // of all links
	Others int64 // bytes of other nodes' URLs
	Memory int64 // bytes in memory, including keys that are not yet written
}

// Size returns the size of the log.
func (l *Log) Size() Size {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Size{Links: l.count, Bytes: l.end(), Others: l.others.length,
		Memory: l.memory + int64(cap(l.last().data)+cap(l.keys)+cap(l.others.data))}
}

// A View is an immutable section of the log.
type View struct {
	chunks []chunk
	from   int64
	urls   int64
	reader vfs.ReaderAt
}

// End returns the offset at which the view ends.
func (v View) End() int64 {
	c := &v.chunks[len(v.chunks)-1]
	return c.at + c.size
}

// View returns the log from an offset, which is the end of an earlier view or 0, to its current end.
func (l *Log) View(from int64) View {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := sort.Search(len(l.chunks)-1, func(i int) bool { return l.chunks[i].at+l.chunks[i].size > from })
	return View{chunks: append([]chunk(nil), l.chunks[first:]...), from: from, urls: l.urls,
		reader: l.reader}
}

// Len returns the length of the view in bytes.
func (v View) Len() int64 { return v.End() - v.from }

// Scan is a [rank.Scan] of the view. The log must not be closed during the call.
func (v View) Scan(ctx context.Context, page func(*rank.Page), gift func(rank.ID, float32)) error {
	return v.Read(ctx, &Reader{Page: page, Contribution: func(g Contribution) { gift(g.To, g.Worth) }})
}

// A Reader has functions for the records of a view, called in the order of addition.
type Reader struct {
	Page         func(*rank.Page) // the page is valid until the call returns
	Contribution func(Contribution)
	Reported     func(Contribution) // may be nil
}

// Read calls the functions of a Reader for all records of a view. The log must not be closed during the call.
func (v View) Read(ctx context.Context, r *Reader) error {
	var buf []byte
	var p rank.Page
	for i := range v.chunks {
		if err := ctx.Err(); err != nil {
			return err
		}
		c := &v.chunks[i]
		data := c.data
		if data == nil && c.size > 0 {
			if int64(cap(buf)) < c.size {
				buf = make([]byte, c.size)
			}
			data = buf[:c.size]
			if _, err := v.reader.ReadAt(data, c.at); err != nil {
				return fmt.Errorf("read link log: %w", err)
			}
		}
		data = data[max(0, v.from-c.at):c.size]
		for d := (decoder{Reader: varint.Reader{Rest: data}, urls: uint64(v.urls)}); len(d.Rest) > 0; {
			if !d.record(r, &p) {
				return fmt.Errorf("%w at %d", ErrDamaged, c.at+c.size-int64(len(d.Rest)))
			}
		}
	}
	return nil
}

type decoder struct {
	varint.Reader
	urls      uint64 // numbers must be below
	checksums int    // records of checksums that were read
}

// record reads a record. It reuses p for pages. It returns false if the record is incomplete.
func (d *decoder) record(r *Reader, p *rank.Page) bool {
	head := d.Uint()
	n := int(head >> kindBits)
	if d.Bad || n > len(d.Rest) {
		return false
	}
	switch kind := head & (1<<kindBits - 1); kind {
	case pageRecord:
	case reportedRecord:
		if n == 0 {
			return d.skipChecksums()
		}
		return d.contributions(n, false, r.Reported)
	default:
		return d.contributions(n, kind == taggedRecord, r.Contribution)
	}
	abroad, id := d.Uint(), d.Uint()
	if d.Bad || n > len(d.Rest) || id >= d.urls {
		return false
	}
	if cap(p.Links) < n {
		p.Links = make([]rank.ID, n)
	}
	links, b, at, before := p.Links[:n], d.Rest, 0, uint64(0)
	for i := range links {
		if at >= len(b) {
			return false
		}
		x := uint64(b[at])
		if at++; x >= 0x80 {
			size := 0
			if x, size = binary.Uvarint(b[at-1:]); size <= 0 || x >= d.urls {
				return false
			}
			at += size - 1
		}
		before += x
		links[i] = rank.ID(before)
	}
	if n > 0 && before >= d.urls {
		return false
	}
	d.Rest = b[at:]
	p.ID, p.Links, p.Out = rank.ID(id), links, n+int(abroad)
	r.Page(p)
	return true
}

func (d *decoder) contributions(n int, tags bool, gift func(Contribution)) bool {
	to, size := uint64(0), 4
	if tags {
		size = 8
	}
	for range n {
		step := d.Uint()
		if d.Bad || step >= d.urls || len(d.Rest) < size {
			return false
		}
		if to += step; to >= d.urls {
			return false
		}
		g := Contribution{To: rank.ID(to), Worth: math.Float32frombits(binary.LittleEndian.Uint32(d.Rest))}
		if tags {
			g.Tag = binary.LittleEndian.Uint32(d.Rest[4:])
		}
		if d.Rest = d.Rest[size:]; gift != nil {
			gift(g)
		}
	}
	return true
}
