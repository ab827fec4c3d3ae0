package extsort

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// Each calls f with the records of the first part in order. Nothing may be added any more. Key and value are valid
// until f returns.
func (s *Sorter) Each(ctx context.Context, f func(key, value []byte) error) (err error) {
	sorted, err := s.Sorted(0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sorted.Close()) }()
	for {
		key, value, err := sorted.Next()
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

// EachKey is Each for the first record of each key.
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
