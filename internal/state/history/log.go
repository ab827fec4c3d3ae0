package history

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"kumo/internal/base/varint"
	"kumo/internal/state/journal"
)

// A batch of the journal is a version byte, then entries. An entry is a kind byte, the length, and the body.
const (
	batchVersion = 2
	entryRecord  = 1 // the new part of a Record
	entryVisits  = 2 // the same, with visits that are not the first

	commitBytes = 1 << 20 // size at which a batch does not wait for the next Sync
	keepBytes   = 4 << 20 // of a reused buffer
)

// A log implements group commit. Entries wait in memory. A caller that needs one to be durable appends all of them as
// one batch.
type log struct {
	commit  sync.Mutex // held while appending
	journal journal.Journal
	spare   []byte // guarded by commit

	// guarded by DB.mu
	pending []byte
	cuts    uint64 // number of batches taken from pending
	durable uint64 // number of these that are durable
	failed  error  // error after which nothing may be appended
	written int64  // bytes since the last freeze
}

// enqueue adds an entry to the pending ones. The caller holds mu.
func (l *log) enqueue(kind byte, body []byte) {
	if len(l.pending) == 0 {
		l.pending = append(l.pending, batchVersion)
	}
	w := varint.Writer(append(l.pending, kind))
	w.Bytes(body)
	l.pending = w
}

// Sync returns when all earlier changes are durable. Concurrent calls share one write.
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

// commit makes the batch with a number durable, and all entries pending now. The caller holds log.commit.
func (d *DB) commit(want uint64) error {
	d.mu.Lock()
	batch, err := d.cut(want)
	d.mu.Unlock()
	if err != nil || batch == nil {
		return err
	}
	return d.append(batch)
}

// cut takes the pending entries, unless the batch with a number is durable. The caller holds log.commit and mu.
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

// replay applies the journal from the last checkpoint on.
func (d *DB) replay() error {
	from := journal.Position(d.tiers.Manifest().Position)
	if end := d.log.journal.End(); from > end {
		return fmt.Errorf("%w: the checkpoint is at position %d, but the journal ends at %d", errJournal, from, end)
	}
	return d.log.journal.Replay(from, func(batch []byte, end journal.Position) error {
		if err := d.replayBatch(batch); err != nil {
			return fmt.Errorf("replay the batch that ends at %d: %w", end, err)
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

// errJournal reports a journal that does not belong to these files.
var errJournal = errors.New("not the journal of this URL history")

// errEntry reports an invalid entry.
var errEntry = errors.New("invalid entry of the URL history")

func (d *DB) replayBatch(batch []byte) error {
	in := varint.Reader{Rest: batch}
	if v := in.Byte(); v != batchVersion {
		return fmt.Errorf("%w: version %d expected, found %d", errEntry, batchVersion, v)
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
	if kind != entryRecord && kind != entryVisits {
		return errEntry
	}
	r, err := readRecord(body, kind == entryVisits)
	if err != nil {
		return errors.Join(errEntry, err)
	}
	return d.apply(&r, nil)
}
