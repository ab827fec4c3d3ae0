package seen

import (
	"context"
	"fmt"
	"time"

	"kumo/internal/base/vfs"
	"kumo/internal/state/seen/run"
	"kumo/internal/state/seen/tier"
)

// Config configures a database.
type Config struct {
	// bytes in memory that are not on disk yet; default 256 MiB. Filters take another 1.2 bytes per URL
	Memory int64
	Rate   int64 // bytes per second that merges may write; default unlimited
	Ratio  int   // files of about the same size that are merged into one; default 4
	Depths bool  // depths matter: a URL met at less depth is news
	// undecided URLs are decided when there is one on disk for each Share known URLs; default 32
	Share int
	Now   func() time.Time // default time.Now
}

// A DB is the URL database. It is safe for concurrent use. One goroutine maintains it: when it is Full, by Freeze,
// Merge, and Compact until that returns false; when the frontier is drained, by Freeze and DecideAll. Callers of Offer
// call Room first, which bounds the memory.
type DB struct {
	*records
	*offers
	*queries
	*arranger
	*merger
}

// Open opens the database in dir, and creates it if necessary.
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

// Relies returns the journal position that the disk relies on. URLs that were decided to be new are no longer on disk
// as undecided, because the journal has them up to this position, which may be after Position.
func (d *DB) Relies() uint64 {
	m := d.tiers.Manifest()
	return max(m.Position, m.Relies)
}

// Waiting returns the number of undecided offers on disk.
func (d *DB) Waiting() int64 { return d.tiers.View().Stats().Waiting }

// Len returns the number of URLs that were offered, without undecided ones.
func (d *DB) Len() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known
}

// Stats are the sizes and counts of a database.
type Stats struct {
	tier.Stats
	Parts  int64 // bytes in memory that are not on disk yet
	Merges int64 // since Open
}

// Stats returns the current values.
func (d *DB) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return Stats{d.tiers.View().Stats(), d.bytes(), d.merges}
}

func damaged(key []byte) error { return fmt.Errorf("value of %q: %w", key, run.ErrDamaged) }

// CompactAll calls Compact until nothing is left to compact.
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
