package seen

import (
	"iter"
	"slices"
	"strings"
	"time"

	"kumo/internal/seen/mem"
	"kumo/internal/seen/run"
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

// Scan gives all URLs that begin with prefix, in order: what was there at its beginning, and perhaps some of what came
// since. It reads the disk as it goes, and copies what memory has of them.
func (d *DB) Scan(prefix string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		sources := d.collect(prefix)
		view := d.tiers.Pin()
		all := run.Merge(fold, append(sources, view.Scan([]byte(prefix))...)...)
		defer view.Release() //nolint:errcheck // what was read is right all the same
		for all.Next() && strings.HasPrefix(string(all.Key()), prefix) {
			r, ok := readRecord(all.Value())
			e, err := d.entry(string(all.Key()), r)
			if !ok {
				err = damaged(all.Key())
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
		if err := all.Err(); err != nil {
			yield(Entry{}, err)
		}
	}
}

// collect copies what memory has below prefix, the newest first.
func (d *DB) collect(prefix string) []run.Source {
	var sources []run.Source
	for _, t := range d.pinTables() {
		if t != nil {
			sources = append(sources, d.copyOf(t, prefix))
		}
	}
	d.unpinTables()
	return sources
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

// copyOf holds the lock for one group of records at a time.
func (d *DB) copyOf(t *mem.Table, prefix string) *pairs {
	p := &pairs{}
	for i := range mem.Groups {
		d.mu.Lock()
		for ref := range t.Group(i) {
			if key := t.Key(ref); strings.HasPrefix(string(key), prefix) {
				r := load(t, ref)
				p.all = append(p.all, pair{string(key), r.append(nil)})
			}
		}
		d.mu.Unlock()
	}
	slices.SortFunc(p.all, func(a, b pair) int { return strings.Compare(a.key, b.key) })
	return p
}

// pairs are a source in memory.
type pairs struct {
	all []pair
	now pair
}

type pair struct {
	key   string
	value []byte
}

func (p *pairs) Next() bool {
	if len(p.all) == 0 {
		return false
	}
	p.now, p.all = p.all[0], p.all[1:]
	return true
}

func (p *pairs) Key() []byte   { return []byte(p.now.key) }
func (p *pairs) Value() []byte { return p.now.value }
func (p *pairs) Err() error    { return nil }

// Look is what a URL is, and the least depth at which it was met as that. It is Get for those who need no more.
func (d *DB) Look(url string) (State, int32, error) {
	e, _, err := d.Get(url)
	return e.State, e.Depth, err
}
