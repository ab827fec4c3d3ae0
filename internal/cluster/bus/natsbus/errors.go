package natsbus

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"kumo/internal/cluster/bus"
)

// isStale reports whether a server refused a write because the last message of its subject is not the expected one, or
// because another write to the subject is in progress.
func isStale(err error) bool {
	api, is := errors.AsType[*jetstream.APIError](err)
	return is && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// isUndone reports whether a failed attempt has changed nothing and can be repeated: no server received it, or the
// server reported that.
func isUndone(err error) bool {
	var api *jetstream.APIError
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) ||
		errors.Is(err, nats.ErrReconnectBufExceeded) || errors.Is(err, errIncomplete) || errors.As(err, &api) && !isStale(err)
}

// pause is the wait before a failed attempt is repeated.
const pause = 100 * time.Millisecond

// attempt calls f until it succeeds, is refused, or may have succeeded. After Timings.Request it returns
// bus.ErrUnavailable. f's context ends by then.
func (b *Bus) attempt(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, b.cluster.cfg.Timings.Request)
	defer cancel()
	for {
		err := f(ctx)
		if err == nil || isStale(err) || errors.Is(err, bus.ErrStale) {
			return err
		}
		if b.cluster.conn.IsClosed() {
			return bus.ErrClosed
		}
		if ctx.Err() != nil || !isUndone(err) {
			return unavailable(err)
		}
		select {
		case <-ctx.Done():
			return unavailable(err)
		case <-b.ctx.Done():
			return bus.ErrClosed
		case <-time.After(pause):
		}
	}
}
