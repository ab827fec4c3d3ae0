package seen

import (
	"context"
	"errors"

	"kumo/internal/state/seen/run"
)

// Each calls f with every body and its record, sorted by digest. It reads the disk as it goes. Put must not be called
// at the same time.
func (d *Digests) Each(f func(digest [20]byte, r Ref) error) (err error) {
	view := d.tiers.Pin()
	defer func() { err = errors.Join(err, view.Release()) }()
	all := run.Merge(newest, append(d.inMemory(), view.Scan(nil)...)...)
	for all.Next() {
		r, ok := readRef(all.Value())
		if !ok || len(all.Key()) != 20 {
			return damaged(all.Key())
		}
		if err := f([20]byte(all.Key()), r); err != nil {
			return err
		}
	}
	return all.Err()
}

func (d *Digests) inMemory() (sources []run.Source) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range d.tables() {
		sources = append(sources, &values{walk{ctx: context.Background(), table: t, items: t.Sorted(nil)}})
	}
	return sources
}
