package history

import (
	"errors"
	"fmt"
	"sync"

	"kumo/internal/base/vfs"
	"kumo/internal/base/xor"
	"kumo/internal/state/journal"
	"kumo/internal/state/seen/run"
	"kumo/internal/state/seen/tier"
)

// Config configures a database. Key is required.
type Config struct {
	Key func(host string) xor.ID // location of a host's records in the key space
	// Memory limits the bytes for data not yet on disk and for hosts with dispatched URLs; default 64 MiB. Filters take
	// another 1.2 bytes per URL.
	Memory int64
	Rate   int64 // limit of the bytes per second that merges write; default no limit
	Ratio  int   // number of similar files that are merged into one; default 4
}

// ErrFull reports that memory has no space for a change before the next Checkpoint. If there are too many hosts with
// dispatched URLs, some URLs must be done first.
var ErrFull = errors.New("the URL history has no space left in memory")

// A DB is a URL history. Its methods may be called concurrently. Changes are atomic and made one after the other.
//
// One goroutine must call Maintain regularly.
type DB struct {
	cfg      Config
	tiers    *tier.Set
	full     int64 // maximum size of a table in bytes
	maxHosts int

	// Lock order: change, busy, log.commit, mu.
	change sync.Mutex // held while records change; guards reader and scratch
	busy   sync.Mutex // held while a table is written to disk
	log    log

	reader
	scratch

	mu             sync.Mutex // guards all below
	active, frozen *table     // frozen is nil if only active is not on disk
	position       uint64     // of frozen in the journal
	frozenHosts    *hostSource
	open           openCounts
	known          int64 // number of URLs
}

// Open opens the history in dir and creates it if needed. The journal must be the same one as when the history was
// written.
func Open(disk vfs.FS, dir string, j journal.Journal, cfg Config) (*DB, error) {
	if cfg.Memory <= 0 {
		cfg.Memory = 64 << 20
	}
	tiers, err := tier.Open(disk, dir, tier.Config{Merge: mergeValues, Ratio: cfg.Ratio, Rate: cfg.Rate})
	if err != nil {
		return nil, fmt.Errorf("open URL history %s: %w", dir, err)
	}
	d := &DB{cfg: cfg, tiers: tiers, full: cfg.Memory * 3 / 8, maxHosts: int(max(cfg.Memory/4/hostBytes, 1)),
		active: newTable(), open: openCounts{}}
	d.log.journal = j
	if err := d.restore(); err != nil {
		return nil, errors.Join(fmt.Errorf("open URL history %s: %w", dir, err), d.Close())
	}
	return d, nil
}

// restore loads the counts of hosts from the last checkpoint, then replays the journal.
func (d *DB) restore() error {
	view := d.tiers.Pin()
	var err error
	for _, src := range view.Waiting().Scan(nil) {
		err = errors.Join(err, d.load(src))
	}
	if err = errors.Join(err, view.Release()); err != nil {
		return err
	}
	return d.replay()
}

// Close closes the files. It does not write data that is only in memory; after Sync, the journal contains it. The
// journal stays open.
func (d *DB) Close() error {
	d.change.Lock()
	defer d.change.Unlock()
	d.busy.Lock()
	defer d.busy.Unlock()
	return errors.Join(d.reader.release(), d.tiers.Close())
}

// Stats contains the sizes of a history.
type Stats struct {
	tier.Stats
	Table int64 // bytes of memory for data not yet on disk
	URLs  int64 // known URLs
	Hosts int   // hosts with dispatched URLs
}

// Stats returns the current sizes.
func (d *DB) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := Stats{Stats: d.tiers.View().Stats(), Table: d.active.Bytes(), URLs: d.known, Hosts: len(d.open)}
	if d.frozen != nil {
		s.Table += d.frozen.Bytes()
	}
	return s
}

// damaged returns the error for an invalid value.
func damaged(key []byte) error { return fmt.Errorf("the value of %q: %w", key, run.ErrDamaged) }
