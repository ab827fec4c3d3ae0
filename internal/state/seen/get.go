package seen

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"kumo/internal/state/seen/mem"
	"kumo/internal/state/seen/tier"
)

// Get returns what is known of url, in memory and on the disk; false when that is nothing.
func (d *DB) Get(url string) (Entry, bool, error) {
	d.mu.Lock()
	all := d.find(url)
	view := d.tiers.Pin()
	d.mu.Unlock()
	if err := errors.Join(all.joinDisk(view.Waiting().Finder(), view.Finder(), url), view.Release()); err != nil {
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

// joinDisk adds what the disk says of url, offers that are not decided yet included.
func (r *record) joinDisk(waiting, runs *tier.Finder, url string) error {
	for value, err := range waiting.Find([]byte(url)) {
		_, late, ok := readLate(value)
		if err != nil || !ok {
			return cmp.Or(err, damaged([]byte(url)))
		}
		r.join(late)
	}
	for value, err := range runs.Find([]byte(url)) {
		older, ok := readRecord(value)
		if err != nil || !ok {
			return cmp.Or(err, damaged([]byte(url)))
		}
		older.meta = slices.Clone(older.meta)
		r.join(older)
	}
	return nil
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

// pin is pinTables with what the disk has at that moment: a merge brings URLs from the one to the other, and from the
// disk to memory when it settles what waits there.
func (d *DB) pin() ([2]*mem.Table, *tier.View) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pins++
	return [2]*mem.Table{d.active, d.frozen}, d.tiers.Pin()
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

// States returns the state of each URL. It reads each block on the disk once, so that many URLs cost little more than
// the blocks that have them.
func (d *DB) States(urls []string) (_ []State, err error) {
	states := make([]State, len(urls))
	order := make([]int, len(urls))
	all := make([]record, len(urls))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(urls[a], urls[b]) })
	d.mu.Lock()
	for i, url := range urls {
		all[i] = d.find(url)
	}
	view := d.tiers.Pin()
	d.mu.Unlock()
	defer func() { err = errors.Join(err, view.Release()) }()
	waiting, runs := view.Waiting().Finder(), view.Finder()
	for _, i := range order {
		if err := all[i].joinDisk(waiting, runs, urls[i]); err != nil {
			return nil, err
		}
		states[i] = all[i].state
	}
	return states, nil
}

// Pending returns the payload of an offer of url that waits to be decided, in memory or on the disk; false if none
// does.
func (d *DB) Pending(url string) ([]byte, bool, error) {
	d.mu.Lock()
	payload, waits := d.pendingInMemory(url)
	view := d.tiers.Pin()
	d.mu.Unlock()
	var err error
	for value, failed := range view.Waiting().Get(url) {
		late, _, ok := readLate(value)
		if err = failed; err != nil || waits {
			break
		}
		if !ok {
			err = damaged([]byte(url))
			break
		}
		payload, waits = slices.Clone(late), true
	}
	return payload, waits, errors.Join(err, view.Release())
}

// pendingInMemory is called with d.mu held.
func (d *DB) pendingInMemory(url string) ([]byte, bool) {
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
