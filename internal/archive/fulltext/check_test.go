package fulltext

import (
	"context"
	"errors"
)

// Check reads all of an index, and says what is wrong with it.
func Check(ctx context.Context, x *Index) error {
	for i := range x.man.Segments {
		s, err := openSegment(x.disk, x.dir, &x.man.Segments[i])
		if err == nil {
			err = errors.Join(s.check(ctx))
			s.close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *segment) check(ctx context.Context) error {
	next := 0
	for block := range s.docs.t.N {
		r, first, err := s.docBlock(block)
		if err != nil {
			return err
		}
		for ; len(r.Rest) > 0 && first == next && ctx.Err() == nil; next, first = next+1, first+1 {
			data := r.Bytes()
			if r.Bad || next >= s.info.Docs {
				return damagedf("%s: a document cannot be read", s.info.Name)
			}
			d, err := readDoc(data)
			if err != nil {
				return err
			}
			doc, _, err := s.find(hashOf(d.URL))
			if err != nil {
				return err
			}
			if doc != next {
				return damagedf("%s: %s is not found by its URL", s.info.Name, d.URL)
			}
		}
	}
	if next != s.info.Docs && ctx.Err() == nil {
		return damagedf("%s: documents are missing", s.info.Name)
	}
	c := &cursor{s: s}
	for {
		if err := c.next(); err != nil || c.over || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		p := s.postings(c.entry)
		for p.cur != ended {
			if err := p.next(p.cur + 1); err != nil {
				return err
			}
			if p.cur == ended {
				break
			}
			if _, err := p.positions(); err != nil {
				return err
			}
		}
	}
}
