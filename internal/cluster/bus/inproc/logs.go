package inproc

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"kumo/internal/cluster/bus"
)

// Append adds an entry if the log's last one is number after.
func (b *Bus) Append(ctx context.Context, log string, data []byte, after uint64) (uint64, error) {
	if err := bus.CheckSize(data); err != nil {
		return 0, fmt.Errorf("append to %s: %w", log, err)
	}
	unlock, err := b.open(ctx, log)
	if err != nil {
		return 0, err
	}
	defer unlock()
	h := b.hub
	if last := last(h.logs[log]).number; last != after {
		return 0, fmt.Errorf("append to %s after %d: its last entry is %d: %w", log, after, last, bus.ErrStale)
	}
	h.number++
	h.logs[log] = append(h.logs[log], record{h.number, append([]byte{}, data...)})
	if err := h.maybeUncertain(); err != nil {
		return 0, fmt.Errorf("append to %s: %w", log, err)
	}
	return h.number, nil
}

// Last returns the log's last entry.
func (b *Bus) Last(ctx context.Context, log string) (uint64, []byte, error) {
	unlock, err := b.open(ctx, log)
	if err != nil {
		return 0, nil, err
	}
	defer unlock()
	r := last(b.hub.logs[log])
	return r.number, bytes.Clone(r.data), nil
}

// Read calls f with the entries after a number.
func (b *Bus) Read(ctx context.Context, log string, after uint64, f func(number uint64, data []byte) error) error {
	unlock, err := b.open(ctx, log)
	if err != nil {
		return err
	}
	all := slices.Clone(b.hub.logs[log])
	unlock()
	for _, r := range all {
		if r.number <= after {
			continue
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("read %s: %w", log, err)
		}
		if err := f(r.number, bytes.Clone(r.data)); err != nil {
			return err
		}
	}
	return nil
}

// Trim drops the entries before a number, except the last one.
func (b *Bus) Trim(ctx context.Context, log string, before uint64) error {
	unlock, err := b.open(ctx, log)
	if err != nil {
		return err
	}
	defer unlock()
	all := b.hub.logs[log]
	before = min(before, last(all).number)
	gone := 0
	for gone < len(all) && all[gone].number < before {
		gone++
	}
	if gone > 0 {
		b.hub.logs[log] = slices.Clone(all[gone:])
	}
	return b.hub.maybeUncertain()
}

// Drop removes a log.
func (b *Bus) Drop(ctx context.Context, log string) error {
	unlock, err := b.open(ctx, log)
	if err != nil {
		return err
	}
	defer unlock()
	delete(b.hub.logs, log)
	return b.hub.maybeUncertain()
}

// open locks the hub if the node can reach the logs.
func (b *Bus) open(ctx context.Context, log string) (unlock func(), err error) {
	if err := bus.CheckKey(log); err != nil {
		return nil, err
	}
	b.hub.mu.Lock()
	if err := b.ready(ctx); err != nil {
		b.hub.mu.Unlock()
		return nil, fmt.Errorf("log %s: %w", log, err)
	}
	return b.hub.mu.Unlock, nil
}

func last(all []record) record {
	if len(all) == 0 {
		return record{}
	}
	return all[len(all)-1]
}
