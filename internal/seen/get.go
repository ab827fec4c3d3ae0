package seen

import (
	"slices"
	"time"

	"kumo/internal/seen/mem"
)

// Get returns what is known of url, in memory and on the disk; false when that is nothing.
func (d *DB) Get(url string) (Entry, bool, error) {
	d.mu.Lock()
	all := d.find(url)
	view := d.tiers.Pin()
	d.mu.Unlock()
	for value, err := range view.Get(url) {
		r, ok := readRecord(value)
		if err == nil && !ok {
			err = damaged([]byte(url))
		}
		if err != nil {
			_ = view.Release()
			return Entry{}, false, err
		}
		r.meta = slices.Clone(r.meta)
		all.join(r)
	}
	if err := view.Release(); err != nil {
		return Entry{}, false, err
	}
	e, err := d.entry(url, all)
	return e, err == nil && all.first != nobody().first, err
}

// find is what memory has of a URL. It is called with d.mu held.
func (d *DB) find(url string) record {
	all := nobody()
	for _, t := range []*mem.Table{d.active, d.frozen} {
		if t == nil {
			continue
		}
		if ref := t.Find(url); ref != 0 {
			r := load(t, ref)
			r.meta = slices.Clone(r.meta)
			all.join(r)
		}
	}
	return all
}

func (d *DB) entry(url string, r record) (Entry, error) {
	meta, ok := readMeta(r.meta, d.born)
	if !ok {
		return Entry{}, damaged([]byte(url))
	}
	first := time.Unix(d.born+60*int64(r.first), 0).UTC()
	return Entry{URL: url, State: r.state, Depth: r.depth, First: first, Meta: meta}, nil
}

// pinTables are the tables in memory, which stay until unpinTables.
func (d *DB) pinTables() [2]*mem.Table {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pins++
	return [2]*mem.Table{d.active, d.frozen}
}

func (d *DB) unpinTables() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pins--
}

// Look is what a URL is, and the least depth at which it was met as that. It is Get for those who need no more.
func (d *DB) Look(url string) (State, int32, error) {
	e, _, err := d.Get(url)
	return e.State, e.Depth, err
}

// Pending returns the payload of an offer of url that waits for a merge to decide; false if none does.
func (d *DB) Pending(url string) ([]byte, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range []*mem.Table{d.active, d.frozen} {
		if t == nil {
			continue
		}
		if ref := t.Find(url); ref != 0 && t.Flags(ref)&pending != 0 {
			return slices.Clone(t.Kept(mem.Ref(t.Word(ref, wordPayload)))), true
		}
	}
	return nil, false
}
