package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// ReadAll returns the values of keys (see Covers), in no order. If ctx's deadline passes, the error is
// ErrUnavailable.
func ReadAll(ctx context.Context, r Registry, keys string) ([]Entry, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	found := map[string]Entry{}
	err := r.Watch(ctx, keys, func(e Entry) {
		switch {
		case e.Key == "":
			stop(errAll)
		case context.Cause(ctx) != nil:
		case e.Value == nil:
			delete(found, e.Key)
		default:
			found[e.Key] = e
		}
	})
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errAll):
		return slices.Collect(maps.Values(found)), nil
	case errors.Is(err, ErrUnavailable):
	case errors.Is(cause, context.DeadlineExceeded):
		err = ErrUnavailable
	case cause != nil:
		err = cause
	}
	return nil, fmt.Errorf("read %s from the registry: %w", keys, err)
}

var errAll = errors.New("end of the current values")
