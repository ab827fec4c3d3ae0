package fulltext

import (
	"context"
	"math/bits"
	"slices"

	"kumo/internal/base/varint"
)

// merge merges segments until no level has too many.
func (x *Index) merge(ctx context.Context) error {
	for {
		some := x.toMerge()
		if len(some) == 0 {
			return nil
		}
		if err := x.mergeSome(ctx, some); err != nil {
			return err
		}
	}
}

// toMerge returns the indexes of segments to merge: those of the lowest full level, or a segment that is mostly
// deleted.
func (x *Index) toMerge() []int {
	levels := map[int][]int{}
	for i := range x.man.Segments {
		s := &x.man.Segments[i]
		if s.Dead > s.Docs/2 && s.Docs > levelDocs {
			return []int{i}
		}
		if s.live() >= maxSegmentDocs {
			continue
		}
		level := 0
		if s.live() > levelDocs {
			level = 1 + (bits.Len(uint((s.live()-1)/levelDocs))-1)/3 //nolint:gosec // it counts
		}
		levels[level] = append(levels[level], i)
	}
	for level := range 8 {
		if len(levels[level]) < fanIn {
			continue
		}
		some, docs := levels[level][:fanIn], 0
		for n, i := range some {
			if docs += x.man.Segments[i].Docs; docs > maxMergedDocs {
				return some[:max(n, 2)]
			}
		}
		return some
	}
	return nil
}

func (x *Index) mergeSome(ctx context.Context, some []int) (err error) {
	var from []*segment
	defer func() {
		for _, s := range from {
			s.close()
		}
	}()
	for _, i := range some {
		s, err := openSegment(x.disk, x.dir, &x.man.Segments[i])
		if err != nil {
			return err
		}
		from = append(from, s)
	}
	w, err := newSegmentWriter(x.disk, x.dir, x.newName(segmentEnding))
	if err != nil {
		return err
	}
	numbers, err := w.mergeDocs(ctx, from)
	if err == nil {
		err = w.mergeWords(ctx, from, numbers)
	}
	if err != nil {
		w.drop()
		return err
	}
	info, err := w.close()
	if err != nil {
		return err
	}
	was := x.man
	x.man.Segments = nil
	var old []string
	for i, s := range was.Segments {
		switch {
		case !slices.Contains(some, i):
			x.man.Segments = append(x.man.Segments, s)
			continue
		case i == some[len(some)-1]:
			x.man.Segments = append(x.man.Segments, info)
		}
		old = append(old, s.Name, s.Deleted)
	}
	if err := x.commit(); err != nil {
		x.man.Segments = was.Segments
		return err
	}
	x.remove(slices.DeleteFunc(old, func(name string) bool { return name == "" }))
	return nil
}

const gone = ^uint32(0)

// mergeDocs writes the documents that are not deleted, and returns their new numbers.
func (w *segmentWriter) mergeDocs(ctx context.Context, from []*segment) (numbers [][]uint32, err error) {
	for _, s := range from {
		now := make([]uint32, s.info.Docs)
		next := 0
		for block := range s.docs.t.N {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			r, first, err := s.docBlock(block)
			if err != nil {
				return nil, err
			}
			if first != next {
				return nil, damagedf("%s: documents are out of order", s.info.Name)
			}
			for ; len(r.Rest) > 0; next++ {
				data := r.Bytes()
				if r.Bad || next >= len(now) {
					return nil, damagedf("%s: cannot read a document", s.info.Name)
				}
				if s.deleted.has(next) {
					now[next] = gone
					continue
				}
				head := varint.Reader{Rest: data}
				at, length, err := s.column(next)
				if err != nil {
					return nil, err
				}
				now[next] = uint32(w.info.Docs) //nolint:gosec // maxSegmentDocs
				if err := w.addDoc(data, hashOf(head.String()), at, length, int(lengthOf(length))); err != nil {
					return nil, err
				}
			}
		}
		if next != len(now) {
			return nil, damagedf("%s: documents are missing", s.info.Name)
		}
		numbers = append(numbers, now)
	}
	return numbers, w.endBlock()
}

// A cursor iterates over all terms of a segment.
type cursor struct {
	s     *segment
	now   []uint32
	block int
	walk  *blockIterator
	entry
	over bool
}

func (c *cursor) next() error {
	for {
		if c.walk == nil {
			if c.over = c.block >= c.s.dict.t.N; c.over {
				return nil
			}
			var err error
			if c.walk, err = c.s.walk(c.block); err != nil {
				return err
			}
			c.block++
		}
		before := c.term
		e, more, err := c.walk.next()
		if err != nil {
			return err
		}
		if more {
			if e.term <= before && before != "" {
				return damagedf("%s: terms are out of order", c.s.info.Name)
			}
			c.entry = e
			return nil
		}
		c.walk = nil
	}
}

// mergeWords writes the terms of the documents.
func (w *segmentWriter) mergeWords(ctx context.Context, from []*segment, numbers [][]uint32) error {
	var all []*cursor
	for i, s := range from {
		c := &cursor{s: s, now: numbers[i]}
		if err := c.next(); err != nil {
			return err
		}
		all = append(all, c)
	}
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		term, any := "", false
		for _, c := range all {
			if !c.over && (!any || c.term < term) {
				term, any = c.term, true
			}
		}
		if !any {
			return nil
		}
		w.begin(term)
		for _, c := range all {
			if c.over || c.term != term {
				continue
			}
			if err := w.mergeWord(c); err != nil {
				return err
			}
			if err := c.next(); err != nil {
				return err
			}
		}
		if w.word.df > 0 {
			if err := w.end(); err != nil {
				return err
			}
		}
	}
}

func (w *segmentWriter) mergeWord(c *cursor) error {
	p := c.s.postings(c.entry)
	for {
		if err := p.next(p.cur + 1); err != nil {
			return err
		}
		if p.cur == ended {
			return nil
		}
		at, err := p.positions()
		if err != nil {
			return err
		}
		if now := c.now[p.cur]; now != gone {
			if err := w.add(int(now), p.inHead, at); err != nil {
				return err
			}
		}
	}
}
