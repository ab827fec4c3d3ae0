package tier

import (
	"context"
	"errors"
)

// Verify reads all runs, and returns the errors of all.
func (s *Set) Verify(ctx context.Context) (err error) {
	view := s.Pin()
	for _, h := range view.all() {
		err = errors.Join(err, h.Verify(ctx))
	}
	return errors.Join(err, view.Release())
}
