package natsbus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"kumo/internal/cluster/bus"
)

// Put writes a value if the key's revision is rev.
func (b *Bus) Put(ctx context.Context, key string, value []byte, rev uint64) (uint64, error) {
	if err := bus.CheckSize(value); err != nil {
		return 0, fmt.Errorf("put %s: %w", key, err)
	}
	return b.set(ctx, key, &nats.Msg{Data: value}, rev)
}

// Delete deletes a key if its revision is rev. A message stays that records the deletion.
func (b *Bus) Delete(ctx context.Context, key string, rev uint64) error {
	_, err := b.set(ctx, key, &nats.Msg{Header: nats.Header{headDeleted: {"1"}}}, rev)
	return err
}

func (b *Bus) set(ctx context.Context, key string, m *nats.Msg, rev uint64) (uint64, error) {
	if err := bus.CheckKey(key); err != nil {
		return 0, err
	}
	m.Subject = b.cluster.names.key(key)
	now, err := b.write(ctx, b.cluster.names.registry(), m, rev)
	if rev == 0 && errors.Is(err, bus.ErrStale) { // the last message may record a deletion
		is, asking := b.entry(ctx, key)
		if asking != nil {
			return 0, fmt.Errorf("write %s: %w", key, asking)
		}
		if is.number != 0 && deleted(is.header) {
			now, err = b.write(ctx, b.cluster.names.registry(), m, is.number)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("write %s: %w", key, err)
	}
	return now, nil
}

func deleted(h nats.Header) bool { return len(h[headDeleted]) > 0 }

// entry returns the latest message of a key.
func (b *Bus) entry(ctx context.Context, key string) (stored, error) {
	return b.latest(ctx, b.cluster.names.registry(), b.cluster.names.key(key))
}

// Get returns the latest value.
func (b *Bus) Get(ctx context.Context, key string) (bus.Entry, error) {
	if err := bus.CheckKey(key); err != nil {
		return bus.Entry{}, err
	}
	if b.isClosed() {
		return bus.Entry{}, bus.ErrClosed
	}
	m, err := b.entry(ctx, key)
	if err != nil {
		return bus.Entry{}, fmt.Errorf("get %s: %w", key, err)
	}
	if m.number == 0 || deleted(m.header) {
		return bus.Entry{}, nil
	}
	return bus.Entry{Key: key, Value: nonNil(m.data), Revision: m.number}, nil
}

// nonNil returns an empty slice instead of nil.
func nonNil(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}
