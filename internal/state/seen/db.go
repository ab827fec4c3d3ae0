package seen

import (
	"context"
	"fmt"
	"time"

	"kumo/internal/base/vfs"
	"kumo/internal/state/seen/run"
	"kumo/internal/state/seen/tier"
)

// Config is how a database works.
type Config struct {
	// bytes for what is not yet on the disk; default 256 MiB. Filters, 1.2 bytes a URL, come on top
	Memory int64
	Rate   int64 // bytes a second that merges may write; default without limit
	Ratio  int   // files of about one size before they are merged into one; default 4
	Depths bool  // depths matter: a URL met at less depth is news
	// what is Later is decided when there is one on the disk for each Share of what is known; default 32
	Share int
	Now   func() time.Time // default time.Now
}

// A DB is the URL database, for concurrent use. One goroutine maintains it: when it is Full, by Freeze, Merge, and
// Compact until that returns false; when the frontier has run dry, by Freeze and Settle. Callers of Offer call Room
// before, which bounds memory.
type DB struct {
	*records
	*offers
	*queries
	*arranger
	*merger
}

// Open opens the database in dir, which it makes when there is none.
func Open(disk vfs.FS, dir string, cfg Config) (*DB, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Share < 1 {
		cfg.Share = 32
	}
	tiers, err := tier.Open(disk, dir, tier.Config{Merge: mergeValues, Ratio: cfg.Ratio, Rate: cfg.Rate})
	if err != nil {
		return nil, fmt.Errorf("open URL database %s: %w", dir, err)
	}
	m := tiers.Manifest()
	unborn := m.Born == 0
	if unborn {
		m.Born = cfg.Now().Unix()
	}
	clock := clock{now: cfg.Now, created: m.Born, uncreated: unborn}
	r := &records{store: newStore(tiers, cfg.Memory), clock: clock, depths: cfg.Depths, known: m.Keys}
	a := &arranger{parts: &r.parts}
	return &DB{r, &offers{records: r}, &queries{r, a}, a, &merger{records: r, share: int64(cfg.Share)}}, nil
}

// Relies is the journal position that the disk relies on: URLs of which it has been decided that they are news no
// longer wait there, as the journal has them up to this position, which may be behind Position.
func (d *DB) Relies() uint64 {
	m := d.tiers.Manifest()
	return max(m.Position, m.Relies)
}

// Waiting is the number of offers that wait on the disk to be decided.
func (d *DB) Waiting() int64 { return d.tiers.View().Stats().Waiting }

// Len is the number of URLs that were offered, but for those that a merge has yet to decide.
func (d *DB) Len() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known
}

// Stats is what the database takes and has done.
type Stats struct {
	tier.Stats
	Parts  int64 // bytes of memory for what is not yet on the disk
	Merges int64 // since Open
}

// Stats counts.
func (d *DB) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return Stats{d.tiers.View().Stats(), d.bytes(), d.merges}
}

func damaged(key []byte) error { return fmt.Errorf("the value of %q: %w", key, run.ErrDamaged) }

// CompactAll has a database or digests compacted until nothing is left to be done.
func CompactAll(ctx context.Context, c interface {
	Compact(context.Context) (bool, error)
}) error {
	for more := true; more; {
		var err error
		if more, err = c.Compact(ctx); err != nil {
			return err
		}
	}
	return nil
}
