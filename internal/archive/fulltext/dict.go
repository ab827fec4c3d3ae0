package fulltext

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"io"
	"sort"

	"kumo/internal/base/varint"
)

func crcMore(before uint32, b []byte) uint32 { return crc32.Update(before, castagnoli, b) }

// maxTerm is the maximum length of a term; filter terms contain a host or a media type.
const maxTerm = 320

// An entry is a term in a segment's dictionary, with the location of its postings.
type entry struct {
	term           string
	df             int
	inline         []byte // postings stored in the dictionary
	posAt          int64
	posLen, lenDoc int
	posSum, docSum uint32
}

// A blockIterator iterates over the terms of a dictionary block.
type blockIterator struct {
	s    *segment
	r    varint.Reader
	last string
}

func (s *segment) walk(block int) (*blockIterator, error) {
	rec, err := s.dict.get(block)
	if err != nil {
		return nil, err
	}
	data, err := s.readBlock(rec, rec[12:])
	return &blockIterator{s: s, r: varint.Reader{Rest: data}}, err
}

// next returns the next term; false at the end of the block.
func (w *blockIterator) next() (e entry, more bool, err error) {
	r := &w.r
	if len(r.Rest) == 0 {
		return e, false, nil
	}
	e.term = r.Suffix(w.last, maxTerm)
	df, list, pos := r.Uint(), r.Uint(), r.Uint()
	size := uint64(
		w.s.info.Bytes,
	) //nolint:gosec // a length
	bad := r.Bad || e.term <= w.last || df == 0 || df > uint64(w.s.info.Docs) || list > size ||
		pos > size //nolint:gosec // it counts
	e.df, e.lenDoc, e.posLen = int(
		df,
	), int(
		list,
	), int(
		pos,
	) //nolint:gosec // checked
	if !bad && list+pos <= inlined {
		if bad = list+pos > uint64(len(r.Rest)); !bad {
			e.inline, r.Rest = r.Rest[:list+pos], r.Rest[list+pos:]
		}
	} else if !bad {
		at := r.Uint()
		if bad = r.Bad || len(r.Rest) < 8 || at > size-list-pos; !bad {
			e.posAt = int64(at) //nolint:gosec // checked
			e.docSum, e.posSum = binary.LittleEndian.Uint32(r.Rest), binary.LittleEndian.Uint32(r.Rest[4:])
			r.Rest = r.Rest[8:]
		}
	}
	if bad {
		return e, false, damagedf("%s: cannot read a term of the dictionary", w.s.info.Name)
	}
	w.last = e.term
	return e, true, nil
}

// blockOf returns the block that contains a term if any does.
func (s *segment) blockOf(term string) (int, error) {
	var failed error
	i := sort.Search(s.dict.t.N, func(i int) bool {
		w, err := s.walk(i)
		if err == nil {
			var e entry
			if e, _, err = w.next(); err == nil {
				return e.term > term
			}
		}
		failed = err
		return true
	})
	return max(i-1, 0), failed
}

// each calls f with the terms from one on, until f returns false.
func (s *segment) each(from string, f func(e entry) bool) error {
	first, err := s.blockOf(from)
	c := &cursor{s: s, block: first}
	for err == nil {
		if err = c.next(); err != nil || c.over || c.term >= from && !f(c.entry) {
			break
		}
	}
	return err
}

// A stream reads varints from a part of a file.
type stream struct {
	src   io.ReaderAt
	at    int64 // offset of the bytes after buf
	left  int
	buf   []byte
	sum   uint32
	want  uint32
	check bool
	most  int // bytes read at once; 0: streamBuffer
}

// If one position of a phrase has many terms, each is read in smaller pieces.
const (
	streamBuffer = 16 << 10
	smallBuffer  = 512
	fewEntries   = 16
)

func (s *stream) fill() error {
	if s.left == 0 {
		return nil
	}
	n := min(s.left, cmp.Or(s.most, streamBuffer))
	b := make([]byte, len(s.buf)+n)
	copy(b, s.buf)
	if err := readAt(s.src, b[len(s.buf):], s.at); err != nil {
		return err
	}
	s.sum = crcMore(s.sum, b[len(s.buf):])
	s.at, s.left, s.buf = s.at+int64(n), s.left-n, b
	if s.left == 0 && s.check && s.sum != s.want {
		return damagedf("wrong checksum of a term's postings")
	}
	return nil
}

func (s *stream) uint() (uint64, error) {
	if len(s.buf) < binary.MaxVarintLen64 {
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
	n, size := binary.Uvarint(s.buf)
	if size <= 0 {
		return 0, damagedf("a term's postings are truncated")
	}
	s.buf = s.buf[size:]
	return n, nil
}

// postings iterate over the documents with a term.
type postings struct {
	list, pos stream
	total     int // documents in the segment
	left      int
	cur, n    int
	inHead    bool
	skip      int // unread positions of earlier documents
	at        []uint32
	has       bool // at holds cur's positions
	pace      *pace
}

func (s *segment) postings(e entry) *postings {
	p := &postings{total: s.info.Docs, left: e.df, cur: -1}
	if e.inline != nil {
		p.list.buf, p.pos.buf = e.inline[:e.lenDoc], e.inline[e.lenDoc:]
		return p
	}
	p.pos = stream{src: s.file, at: e.posAt, left: e.posLen, want: e.posSum, check: true}
	p.list = stream{src: s.file, at: e.posAt + int64(e.posLen), left: e.lenDoc, want: e.docSum, check: true}
	return p
}

func (p *postings) doc() int   { return p.cur }
func (p *postings) tf() int    { return p.n }
func (p *postings) head() bool { return p.inHead }

// next advances to the first document from target on.
func (p *postings) next(target int) error {
	for p.cur < target {
		if err := p.pace.step(); err != nil {
			return err
		}
		if p.left == 0 {
			p.cur = ended
			return nil
		}
		if !p.has {
			p.skip += p.n
		}
		e, err := p.list.uint()
		if err != nil {
			return err
		}
		tf := uint64(1)
		if e&1 == 0 {
			if tf, err = p.list.uint(); err != nil {
				return err
			}
		}
		if e>>2 == 0 || e>>2 > uint64(p.total-1-p.cur) || tf == 0 || tf > maxTokens { //nolint:gosec // it is not negative
			return damagedf("a term's postings are out of order")
		}
		p.cur, p.n, p.inHead, p.has = p.cur+int(e>>2), int(tf), e&2 != 0, false //nolint:gosec // checked
		p.left--
	}
	return nil
}

// positions returns the positions of the term in the document.
func (p *postings) positions() ([]uint32, error) {
	if p.has {
		return p.at, nil
	}
	for ; p.skip > 0; p.skip-- {
		if err := p.pace.step(); err != nil {
			return nil, err
		}
		if _, err := p.pos.uint(); err != nil {
			return nil, err
		}
	}
	p.at, p.has = p.at[:0], true
	last := uint64(0)
	for range p.n {
		d, err := p.pos.uint()
		if err != nil {
			return nil, err
		}
		if last += d; last > maxPosition {
			return nil, damagedf("a term's position is out of range")
		}
		p.at = append(p.at, uint32(last)) //nolint:gosec // checked
	}
	return p.at, nil
}

const (
	ended       = 1<<31 - 1
	maxTokens   = 1 << 17 // indexed words of a page
	maxPosition = 2 * maxTokens
	fieldGap    = 100 // gap between the positions of title and text, so that no phrase spans both
)
