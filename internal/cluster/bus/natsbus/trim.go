package natsbus

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"kumo/internal/cluster/bus"
)

// Trim drops the entries before a number, except the last one. It first writes a trim record, so that readers can tell
// trimmed entries from lost ones.
func (b *Bus) Trim(ctx context.Context, log string, before uint64) error {
	last, _, err := b.Last(ctx, log)
	if err != nil {
		return err
	}
	if before = min(before, last); before <= 1 { // the server takes 0 as all
		return nil
	}
	if err := b.recordTrim(ctx, log, before); err != nil {
		return fmt.Errorf("trim %s: %w", log, err)
	}
	err = b.purge(ctx, jetstream.WithPurgeSubject(b.cluster.names.log(log)), jetstream.WithPurgeSequence(before))
	if err != nil {
		return fmt.Errorf("trim %s: %w", log, err)
	}
	return nil
}

// A trimRecord records that the entries of a log before a number may have been dropped.
type trimRecord struct{ to, number uint64 } // number: of the record itself

// recordTrim writes a trim record, unless there is one for the same number or a higher one. Concurrent trims never
// lower it.
func (b *Bus) recordTrim(ctx context.Context, log string, to uint64) error {
	for {
		is, err := b.trimmed(ctx, log)
		if err != nil || is.to >= to {
			return err
		}
		m := &nats.Msg{
			Subject: b.cluster.names.trim(log),
			Header:  nats.Header{jetstream.MsgRollup: {jetstream.MsgRollupSubject}}, // only the last record is stored
			Data:    strconv.AppendUint(nil, to, 10),
		}
		if _, err = b.write(ctx, b.cluster.names.logs(), m, is.number); !errors.Is(err, bus.ErrStale) {
			return err
		}
	}
}

// trimmed returns a log's trim record; a zero one if there is none.
func (b *Bus) trimmed(ctx context.Context, log string) (trimRecord, error) {
	m, err := b.latest(ctx, b.cluster.names.logs(), b.cluster.names.trim(log))
	if err != nil || m.number == 0 {
		return trimRecord{}, err
	}
	to, err := strconv.ParseUint(string(m.data), 10, 64)
	if err != nil {
		return trimRecord{}, fmt.Errorf("read how far %s is trimmed: %w", log, err)
	}
	return trimRecord{to, m.number}, nil
}
