package natsbus

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"kumo/internal/cluster/bus"
)

// isStale reports that a server refused a write because the last message of its subject is not the one expected, or
// because another write to it is under way.
func isStale(err error) bool {
	api, is := errors.AsType[*jetstream.APIError](err)
	return is && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// isUndone reports that an attempt certainly changed nothing, because nobody got it, or whoever got it said so: it can
// be made again.
func isUndone(err error) bool {
	var api *jetstream.APIError
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) ||
		errors.Is(err, nats.ErrReconnectBufExceeded) || errors.Is(err, errIncomplete) || errors.As(err, &api) && !isStale(err)
}

// pause is how long to wait before an attempt that could not be made is made again.
const pause = 100 * time.Millisecond

// attempt calls f until it is done, refused or in doubt, or until time is up, which is bus.ErrUnavailable. f's context
// ends in time.
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
