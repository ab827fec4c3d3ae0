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

// Config is how a database works. Key is needed.
type Config struct {
	Key func(host string) xor.ID // where a host's records belong
	// bytes for what is not yet on the disk and for hosts with dispatched URLs; default 64 MiB. Filters, 1.2 bytes a
	// URL, come on top
	Memory int64
	Rate   int64 // bytes a second that merges may write; default without limit
	Ratio  int   // files of about one size before they are merged into one; default 4
}

// ErrFull is a change for which memory has no room before the next Checkpoint, or, where there are as many hosts with
// dispatched URLs as it can hold, before some are done.
var ErrFull = errors.New("the URL history has no room in memory")

// A DB is the history. Its methods may be called by many goroutines at once; changes are made one after the other, and
// each at once.
//
// One goroutine looks after it and calls Tend.
type DB struct {
	cfg      Config
	tiers    *tier.Set
	full     int64 // bytes of a table
	maxHosts int

	// Of these locks who holds one may ask for those below it.
	change sync.Mutex // held while records are changed: guards reader and the room of changes
	busy   sync.Mutex // held while a table is written to the disk
	log    log

	reader
	scratch

	mu             sync.Mutex // guards what follows
	active, frozen *table     // frozen is nil when all is on the disk but active
	position       uint64     // of frozen
	frozenHosts    *hostSource
	open           openCounts
	known          int64 // URLs
}

// OpenURLs opens the history in dir, which it makes when there is none, and which must have been kept with this journal.
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

// restore reads what the last checkpoint has of hosts, then what the journal has from there on.
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

// Close closes the files. What is only in memory is not written: the journal has it, as far as Sync has been called.
// The journal stays open.
func (d *DB) Close() error {
	d.change.Lock()
	defer d.change.Unlock()
	d.busy.Lock()
	defer d.busy.Unlock()
	return errors.Join(d.reader.release(), d.tiers.Close())
}

// Stats is what the history takes.
type Stats struct {
	tier.Stats
	Table int64 // bytes of memory for what is not yet on the disk
	URLs  int64 // that are known
	Hosts int   // with dispatched URLs
}

// Stats counts.
func (d *DB) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := Stats{Stats: d.tiers.View().Stats(), Table: d.active.Bytes(), URLs: d.known, Hosts: len(d.open)}
	if d.frozen != nil {
		s.Table += d.frozen.Bytes()
	}
	return s
}

// damaged is the error for what nobody has written.
func damaged(key []byte) error { return fmt.Errorf("the value of %q: %w", key, run.ErrDamaged) }
