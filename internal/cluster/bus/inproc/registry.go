package inproc

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"kumo/internal/cluster/bus"
)

// Put writes a value if the key's revision is rev.
func (b *Bus) Put(ctx context.Context, key string, value []byte, rev uint64) (uint64, error) {
	if err := bus.CheckSize(value); err != nil {
		return 0, fmt.Errorf("put %s: %w", key, err)
	}
	return b.write(ctx, key, append([]byte{}, value...), rev)
}

// Delete removes a key if its revision is rev.
func (b *Bus) Delete(ctx context.Context, key string, rev uint64) error {
	_, err := b.write(ctx, key, nil, rev)
	return err
}

func (b *Bus) write(ctx context.Context, key string, value []byte, rev uint64) (uint64, error) {
	if err := bus.CheckKey(key); err != nil {
		return 0, err
	}
	h := b.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := b.ready(ctx); err != nil {
		return 0, fmt.Errorf("write %s: %w", key, err)
	}
	is := h.keys[key]
	if is.Revision != rev && (rev != 0 || is.Value != nil) {
		return 0, fmt.Errorf("write %s at revision %d: it is at %d: %w", key, rev, is.Revision, bus.ErrStale)
	}
	h.number++
	h.keys[key] = bus.Entry{Key: key, Value: value, Revision: h.number}
	h.wake()
	if err := h.maybeUncertain(); err != nil {
		return 0, fmt.Errorf("write %s: %w", key, err)
	}
	return h.number, nil
}

// Get returns the latest value.
func (b *Bus) Get(ctx context.Context, key string) (bus.Entry, error) {
	if err := bus.CheckKey(key); err != nil {
		return bus.Entry{}, err
	}
	b.hub.mu.Lock()
	defer b.hub.mu.Unlock()
	if err := b.ready(ctx); err != nil {
		return bus.Entry{}, fmt.Errorf("get %s: %w", key, err)
	}
	e := b.hub.keys[key]
	if e.Value == nil {
		return bus.Entry{}, nil
	}
	e.Value = bytes.Clone(e.Value)
	return e, nil
}

// Watch calls f with the current values and with each change. While the node is partitioned it waits; of several
// changes of a key in that time it passes on the latest.
func (b *Bus) Watch(ctx context.Context, keys string, f func(bus.Entry)) error {
	for told, synced := uint64(0), false; ; {
		now := b.snapshot(keys, told)
		for _, e := range now.entries {
			if synced || e.Value != nil {
				f(e)
			}
		}
		if now.reached && !synced {
			synced = true
			f(bus.Entry{})
		}
		told = max(told, now.upTo)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-b.ctx.Done():
			return bus.ErrClosed
		case <-now.changed:
		}
	}
}

// A snapshot is what a watcher sees of the registry at one moment.
type snapshot struct {
	reached bool
	entries []bus.Entry   // in the order of their writes
	upTo    uint64        // revision of the last write it includes
	changed chan struct{} // closed when there may be something new
}

func (b *Bus) snapshot(keys string, told uint64) snapshot {
	h := b.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	s := snapshot{changed: h.changed}
	if h.checkReachable(b.node) != nil {
		return s
	}
	s.reached, s.upTo = true, h.number
	for key, e := range h.keys {
		if e.Revision > told && bus.Covers(keys, key) {
			s.entries = append(s.entries, e)
		}
	}
	slices.SortFunc(s.entries, func(x, y bus.Entry) int { return cmp.Compare(x.Revision, y.Revision) })
	return s
}
