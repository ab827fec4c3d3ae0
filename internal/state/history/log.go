package history

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"kumo/internal/base/varint"
	"kumo/internal/state/journal"
)

// A batch of the journal is a byte for its version, then entries: a byte for the kind, the length, and what it says.
const (
	batchVersion = 2
	entryRecord  = 1 // a Record: what of it was news

	commitBytes = 1 << 20 // a batch that is not left to the next Sync
	keepBytes   = 4 << 20 // of a buffer that is used again
)

// A log is the group commit: entries wait in memory, and who needs them durable appends all that wait as one batch.
type log struct {
	commit  sync.Mutex // held by the one who appends
	journal journal.Journal
	spare   []byte // guarded by commit

	// guarded by DB.mu
	pending []byte
	cuts    uint64 // batches that were taken from pending
	durable uint64 // of these
	failed  error  // nothing more may follow
	written int64  // bytes since the last freeze
}

// enter queues an entry; the caller holds mu.
func (l *log) enqueue(kind byte, body []byte) {
	if len(l.pending) == 0 {
		l.pending = append(l.pending, batchVersion)
	}
	w := varint.Writer(append(l.pending, kind))
	w.Bytes(body)
	l.pending = w
}

// Sync returns when all is durable that was changed before it was called. Many who call it at once wait for one write.
func (d *DB) Sync() error {
	d.mu.Lock()
	want := d.log.cuts
	if len(d.log.pending) > 0 {
		want++
	}
	d.mu.Unlock()
	d.log.commit.Lock()
	defer d.log.commit.Unlock()
	return d.commit(want)
}

// commit makes durable the batch of a number, and what waits with it. The caller holds log.commit.
func (d *DB) commit(want uint64) error {
	d.mu.Lock()
	batch, err := d.cut(want)
	d.mu.Unlock()
	if err != nil || batch == nil {
		return err
	}
	return d.append(batch)
}

// cut takes what waits, unless the batch of a number was written; the caller holds log.commit and mu.
func (d *DB) cut(want uint64) ([]byte, error) {
	l := &d.log
	if l.failed != nil || l.durable >= want || len(l.pending) == 0 {
		return nil, l.failed
	}
	batch := l.pending
	l.pending, l.spare = l.spare[:0], nil
	l.cuts++
	return batch, nil
}

func (d *DB) append(batch []byte) error {
	err := d.log.journal.Append(batch)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.log.failed = fmt.Errorf("write the journal of the URL history: %w", err)
		return d.log.failed
	}
	d.log.durable = d.log.cuts
	d.log.written += int64(len(batch))
	if cap(batch) <= keepBytes {
		d.log.spare = batch
	}
	return nil
}

// replay takes in what the journal has from the last checkpoint on.
func (d *DB) replay() error {
	from := journal.Position(d.tiers.Manifest().Position)
	if end := d.log.journal.End(); from > end {
		return fmt.Errorf("%w: the checkpoint is of position %d, the journal ends at %d", errJournal, from, end)
	}
	return d.log.journal.Replay(from, func(batch []byte, end journal.Position) error {
		if err := d.replayBatch(batch); err != nil {
			return fmt.Errorf("the journal's batch that ends at %d: %w", end, err)
		}
		d.log.written += int64(len(batch))
		if d.active.Bytes() < d.full {
			return nil
		}
		d.mu.Lock()
		d.swap(uint64(end))
		d.mu.Unlock()
		return d.write(context.Background(), nil)
	})
}

// errJournal is a journal that was not kept with these files.
var errJournal = errors.New("not the journal of this URL history")

// errEntry is an entry that nobody has written.
var errEntry = errors.New("not an entry of a URL history")

func (d *DB) replayBatch(batch []byte) error {
	in := varint.Reader{Rest: batch}
	if v := in.Byte(); v != batchVersion {
		return fmt.Errorf("%w of version %d, but of version %d", errEntry, batchVersion, v)
	}
	for len(in.Rest) > 0 {
		kind, body := in.Byte(), in.Bytes()
		if in.Bad {
			return errEntry
		}
		if err := d.replayEntry(kind, body); err != nil {
			return err
		}
	}
	return nil
}

func (d *DB) replayEntry(kind byte, body []byte) error {
	r, err := readRecord(body)
	if kind != entryRecord || err != nil {
		return errors.Join(errEntry, err)
	}
	return d.apply(&r, nil)
}
