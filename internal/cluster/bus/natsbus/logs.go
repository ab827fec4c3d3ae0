package natsbus

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"kumo/internal/cluster/bus"
)

// readBytes is the approximate size of an answer. Even on a slow line an answer must arrive within the time of a
// request, and other answers wait behind it.
const readBytes = 256 << 10

// Append adds an entry if the log's last one is number after.
func (b *Bus) Append(ctx context.Context, log string, data []byte, after uint64) (uint64, error) {
	if err := bus.CheckSize(data); err != nil {
		return 0, fmt.Errorf("append to %s: %w", log, err)
	}
	if err := bus.CheckKey(log); err != nil {
		return 0, err
	}
	n := b.cluster.names
	number, err := b.write(ctx, n.logs(), &nats.Msg{Subject: n.log(log), Data: data}, after)
	if err != nil {
		return 0, fmt.Errorf("append to %s after %d: %w", log, after, err)
	}
	return number, nil
}

// Last returns the log's last entry.
func (b *Bus) Last(ctx context.Context, log string) (uint64, []byte, error) {
	if err := bus.CheckKey(log); err != nil {
		return 0, nil, err
	}
	if b.isClosed() {
		return 0, nil, bus.ErrClosed
	}
	m, err := b.latest(ctx, b.cluster.names.logs(), b.cluster.names.log(log))
	if err != nil {
		return 0, nil, fmt.Errorf("read the last entry of %s: %w", log, err)
	}
	return m.number, m.data, nil
}

// Read calls f with the entries after a number. Each entry names the one before it, so a missing entry is noticed. If
// one is missing, Read looks up whether it was trimmed.
func (b *Bus) Read(ctx context.Context, log string, after uint64, f func(number uint64, data []byte) error) error {
	for moved, told := time.Now(), false; ; {
		end, _, err := b.Last(ctx, log)
		if err == nil && told && end < after {
			err = fmt.Errorf("read %s: the log was dropped: %w", log, bus.ErrUnavailable)
		}
		if err != nil || end <= after {
			return err
		}
		next, err := b.readTo(ctx, log, after, end, f)
		if err != nil || next >= end {
			return err
		}
		if next == after {
			note, err := b.trimmed(ctx, log)
			if err != nil {
				return fmt.Errorf("read %s: %w", log, err)
			}
			if note.to > 0 {
				next = max(after, min(note.to, end)-1)
			}
		}
		if next > after {
			after, moved, told = next, time.Now(), true
			continue
		}
		if time.Since(moved) > b.cluster.cfg.Timings.Request {
			return fmt.Errorf("read %s: the entry after %d is missing: %w", log, after, bus.ErrUnavailable)
		}
		if err := b.shortPause(ctx); err != nil { // the log was dropped, or a server lags behind
			return fmt.Errorf("read %s: %w", log, unavailable(err))
		}
	}
}

// readTo reads up to number end, or up to the last entry of the server that answers.
func (b *Bus) readTo(ctx context.Context, log string, after, end uint64, f func(uint64, []byte) error) (uint64, error) {
	for after < end {
		all, err := b.readChunk(ctx, log, after, end)
		if err != nil {
			return after, fmt.Errorf("read %s: %w", log, err)
		}
		if len(all) == 0 {
			return after, nil
		}
		for _, m := range all {
			if err := f(m.number, m.data); err != nil {
				return after, err
			}
			after = m.number
		}
	}
	return after, nil
}

// readChunk returns entries after a number and up to another, without a gap. If an answer is incomplete, it returns the
// entries that have arrived.
func (b *Bus) readChunk(ctx context.Context, log string, after, end uint64) (all []stored, err error) {
	c := b.cluster
	q := query{From: after + 1, Next: c.names.log(log), Batch: 1024, MaxBytes: readBytes}
	err = b.attempt(ctx, func(ctx context.Context) error {
		last := after
		all = all[:0]
		_, err := c.request(ctx, c.names.logs(), q, func(m stored) error {
			if m.number > last && m.number <= end && follows(m, last, after) {
				all, last = append(all, m), m.number
			}
			return nil
		})
		return err
	})
	if len(all) > 0 && ctx.Err() == nil && !b.isClosed() {
		return all, nil
	}
	return all, err
}

// follows reports whether there is no entry between an entry and the last one. For the first entry, last is the
// requested number, which need not be one of the log's.
func follows(m stored, last, asked uint64) bool {
	previous, err := strconv.ParseUint(m.header.Get(headExpected), 10, 64)
	return err == nil && (previous == last || last == asked && previous < asked)
}

// Drop deletes a log, and then the record of how far it is trimmed, which is harmless if it stays.
func (b *Bus) Drop(ctx context.Context, log string) error {
	if err := bus.CheckKey(log); err != nil {
		return err
	}
	if b.isClosed() {
		return bus.ErrClosed
	}
	// A server that lags behind may execute the purge when it already has later entries: these must stay.
	var upTo uint64
	err := b.attempt(ctx, func(ctx context.Context) (err error) {
		upTo, err = b.cluster.mark(ctx, b.cluster.names.logs())
		return err
	})
	for _, subject := range []string{b.cluster.names.log(log), b.cluster.names.trim(log)} {
		if err == nil {
			err = b.purge(ctx, jetstream.WithPurgeSubject(subject), jetstream.WithPurgeSequence(upTo))
		}
	}
	if err != nil {
		return fmt.Errorf("drop %s: %w", log, err)
	}
	return nil
}

// purge removes stored entries from the logs.
func (b *Bus) purge(ctx context.Context, which ...jetstream.StreamPurgeOpt) error {
	c := b.cluster
	return b.attempt(ctx, func(ctx context.Context) error {
		stream, err := c.js.Stream(ctx, c.names.logs().name)
		if err != nil {
			return err
		}
		return stream.Purge(ctx, which...)
	})
}
