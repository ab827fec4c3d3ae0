package history

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"kumo/internal/state/journal"
	"kumo/internal/state/seen/tier"
)

// journalBytes is the length of journal to replay after a restart at which a checkpoint is due.
const journalBytes = 256 << 20

// Maintain does the work that is due: it makes a checkpoint if memory is full or the journal is long, and merges files
// of similar size. Changes can be made meanwhile.
func (d *DB) Maintain(ctx context.Context) error {
	d.mu.Lock()
	due := d.active.Bytes() >= d.full || d.frozen != nil || d.log.written >= journalBytes
	d.mu.Unlock()
	if due {
		if err := d.Checkpoint(ctx); err != nil {
			return err
		}
	}
	for more := true; more; {
		var err error
		if more, err = d.tiers.Compact(ctx); err != nil {
			return fmt.Errorf("merge files of the URL history: %w", err)
		}
	}
	d.change.Lock()
	defer d.change.Unlock()
	return d.reader.release() // so that it does not keep merged files
}

// Checkpoint writes all data in memory to disk, and drops the journal up to that point.
func (d *DB) Checkpoint(ctx context.Context) error {
	d.busy.Lock()
	defer d.busy.Unlock()
	return d.checkpoint(ctx, nil)
}

// checkpoint is Checkpoint with busy held. The written data replaces the keys in cuts.
func (d *DB) checkpoint(ctx context.Context, cuts []string) error {
	if err := d.write(ctx, nil); err != nil { // data that an earlier checkpoint failed to write
		return err
	}
	if err := d.freeze(); err != nil {
		return err
	}
	if err := d.write(ctx, cuts); err != nil {
		return err
	}
	d.log.commit.Lock()
	defer d.log.commit.Unlock()
	return d.log.journal.Drop(journal.Position(d.tiers.Manifest().Position))
}

// freeze freezes the data in memory for the next write. Its position is the journal's end.
func (d *DB) freeze() error {
	d.log.commit.Lock()
	defer d.log.commit.Unlock()
	d.mu.Lock()
	batch, err := d.cut(d.log.cuts + 1)
	if err == nil {
		d.swap(0)
	}
	d.mu.Unlock()
	if err != nil {
		return err
	}
	if batch != nil {
		if err := d.append(batch); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.position, d.log.written = uint64(d.log.journal.End()), 0
	return nil
}

// swap freezes the table. The caller holds mu.
func (d *DB) swap(position uint64) {
	d.frozen, d.active, d.position = d.active, newTable(), position
	d.frozenHosts = d.open.source(d.known)
}

// write writes the frozen table to disk. The caller holds busy.
func (d *DB) write(ctx context.Context, cuts []string) error {
	d.mu.Lock()
	t, hosts, position, err := d.frozen, d.frozenHosts, d.position, d.log.failed
	d.mu.Unlock()
	if t == nil || err != nil {
		return err
	}
	hosts.sort()
	again := *hosts
	err = d.tiers.Replace(ctx, t.source(ctx.Err), &again, func(m *tier.Manifest) {
		m.Position = position
		for i := range cuts {
			key := []byte(cuts[i])
			m.Cut(key, bytes.Repeat([]byte{0xff}, len(key)))
		}
	})
	if err != nil {
		return fmt.Errorf("write a checkpoint of the URL history: %w", err)
	}
	d.mu.Lock()
	d.frozen, d.frozenHosts = nil, nil
	d.mu.Unlock()
	return nil
}

// ForgetHosts deletes all data of some hosts. If there is any, it counts their URLs and makes a checkpoint, which
// blocks changes. The space on disk is reused when files are merged. After an error no further changes are possible
// until the history is opened again; it then contains all of the deleted data or none.
func (d *DB) ForgetHosts(ctx context.Context, hosts ...string) error {
	d.change.Lock()
	defer d.change.Unlock()
	d.busy.Lock()
	defer d.busy.Unlock()
	if err := d.write(ctx, nil); err != nil {
		return err
	}
	cuts, err := d.forgetInMemory(hosts)
	if err == nil && len(cuts) > 0 {
		err = d.checkpoint(ctx, cuts)
	}
	if err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.log.failed = err
	}
	return err
}

// forgetInMemory deletes hosts in memory, and returns the keys of those that had any data.
func (d *DB) forgetInMemory(hosts []string) (cuts []string, err error) {
	for _, name := range slices.Compact(slices.Sorted(slices.Values(hosts))) {
		n := int64(0)
		if err := d.urls(name, Hash{}, func(URL) bool { n++; return true }); err != nil {
			return nil, err
		}
		if n == 0 {
			continue
		}
		key := string(appendHost(nil, d.cfg.Key(name), name))
		d.mu.Lock()
		if ref := d.active.Find(key); ref != 0 { // there is no frozen table
			d.active.forget(ref)
		}
		delete(d.open, name)
		d.known -= n
		d.mu.Unlock()
		cuts = append(cuts, key)
	}
	return cuts, nil
}
