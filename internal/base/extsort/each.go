package extsort

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// Each calls f with the records of the first part in order. No records may be added afterwards. Key and value are valid
// until f returns.
func (s *Sorter) Each(ctx context.Context, f func(key, value []byte) error) error {
	sorted, err := s.Sorted(0)
	if err != nil {
		return err
	}
	return errors.Join(sorted.Each(ctx, f), sorted.Close())
}

// Each calls f with the remaining records. Key and value are valid until f returns.
func (m *Merge) Each(ctx context.Context, f func(key, value []byte) error) error {
	for {
		key, value, err := m.Next()
		if err = errors.Join(err, ctx.Err()); errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = f(key, value)
		}
		if err != nil {
			return err
		}
	}
}

// EachKey is like Each, but calls f only for the first record of each key.
func (s *Sorter) EachKey(ctx context.Context, f func(key, value []byte) error) error {
	var last []byte
	begun := false
	return s.Each(ctx, func(key, value []byte) error {
		if begun && bytes.Equal(key, last) {
			return nil
		}
		begun, last = true, append(last[:0], key...)
		return f(key, value)
	})
}

// MergeSorted merges sequences of records, each sorted by key and value. It calls Next on a sequence only when the
// caller is done with the sequence's previous record.
func MergeSorted(all []Records) *Merge {
	m := &Merge{}
	for _, src := range all {
		m.all = append(m.all, &sortedSource{src: src})
	}
	return m
}

// A sortedSource is the cursor of records that the caller has sorted.
type sortedSource struct {
	src      Records
	key, val []byte
}

func (g *sortedSource) advance() (err error) {
	g.key, g.val, err = g.src.Next()
	return err
}

func (g *sortedSource) record() (key, head []byte) {
	return g.key, g.val[:min(len(g.val), comparedBytes)]
}
func (g *sortedSource) value(*[]byte) ([]byte, error) { return g.val, nil }
func (g *sortedSource) close() error                  { return nil }
