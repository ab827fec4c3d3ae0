package seen

import (
	"iter"

	"kumo/internal/seen/mem"
	"kumo/internal/seen/run"
)

// Visited gives the URLs that were visited, as far as like says yes to what some place has of their meta: those on the
// disk in order, then those that only memory has seen visited. It reads the disk as it goes and copies nothing but what
// it gives; a URL may come twice, and each is as all places together have it at that moment.
func (d *DB) Visited(like func(*Meta) bool) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		tables := d.pinTables() // before the disk is looked at, lest a merge brings there what then is in neither
		defer d.unpinTables()
		if !d.visitedOnDisk(like, yield) {
			return
		}
		for _, t := range tables {
			if t != nil && !d.visitedIn(t, like, yield) {
				return
			}
		}
	}
}

func (d *DB) visitedOnDisk(like func(*Meta) bool, yield func(Entry, error) bool) bool {
	view := d.tiers.Pin()
	defer view.Release() //nolint:errcheck // what was read is right all the same
	all := run.Merge(fold, view.Scan(nil)...)
	for all.Next() {
		r, ok := readRecord(all.Value())
		if ok && len(r.meta) == 0 {
			continue
		}
		meta, sound := readMeta(r.meta, d.born)
		if !ok || !sound {
			yield(Entry{}, damaged(all.Key()))
			return false
		}
		if meta.Fetched.IsZero() || !like(&meta) {
			continue
		}
		r.meta = append([]byte(nil), r.meta...)
		e, err := d.withMemory(string(all.Key()), r)
		if !yield(e, err) || err != nil {
			return false
		}
	}
	if err := all.Err(); err != nil {
		yield(Entry{}, err)
		return false
	}
	return true
}

// withMemory is what the disk has of a URL, with what memory has.
func (d *DB) withMemory(url string, onDisk record) (Entry, error) {
	d.mu.Lock()
	all := d.find(url)
	d.mu.Unlock()
	all.join(onDisk)
	return d.entry(url, all)
}

// visitedIn holds the lock for one group of records at a time.
func (d *DB) visitedIn(t *mem.Table, like func(*Meta) bool, yield func(Entry, error) bool) bool {
	var urls []string
	for i := range mem.Groups {
		urls = urls[:0]
		d.mu.Lock()
		for ref := range t.Group(i) {
			meta, ok := readMeta(t.Kept(mem.Ref(t.Word(ref, wordMeta))), d.born)
			if ok && !meta.Fetched.IsZero() && like(&meta) {
				urls = append(urls, string(t.Key(ref)))
			}
		}
		d.mu.Unlock()
		for _, url := range urls {
			e, known, err := d.Get(url)
			if (known || err != nil) && !yield(e, err) {
				return false
			}
		}
	}
	return true
}
