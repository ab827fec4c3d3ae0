package history

import (
	"bytes"
	"errors"
	"slices"

	"kumo/internal/base/xor"
	"kumo/internal/state/seen/mem"
	"kumo/internal/state/seen/run"
)

// Get returns the data of a URL.
func (d *DB) Get(host string, h Hash) (URL, bool, error) {
	var found URL
	ok := false
	err := d.urls(host, h, func(u URL) bool {
		if u.Hash == h {
			found, ok = u, true
		}
		return false
	})
	return found, ok, err
}

// Dispatched returns URLs of a host that were dispatched and are not done, from a hash on. It returns at most most URLs
// and examines at most 64 times as many. If more is true, there may be others from next on.
func (d *DB) Dispatched(host string, from Hash, most int) (urls []URL, next Hash, more bool, err error) {
	seen := 0
	err = d.urls(host, from, func(u URL) bool {
		if len(urls) >= most || seen >= 64*most {
			next, more = u.Hash, true
			return false
		}
		if seen++; !u.Done && !u.Scheduled {
			u.Data = bytes.Clone(u.Data)
			urls = append(urls, u)
		}
		return true
	})
	return urls, next, more, err
}

// urls calls yield with a host's URLs from a hash on, until yield returns false. Data is valid until the next call.
func (d *DB) urls(host string, from Hash, yield func(URL) bool) error {
	key := appendHost(nil, d.cfg.Key(host), host)
	return d.scan(key, slices.Concat(key, from[:]), func(p place, v value) bool { return yield(urlOf(p.hash, v)) })
}

func urlOf(h Hash, v value) URL {
	return URL{Hash: h, Done: v.done, Data: v.data, Visit: v.visit, Scheduled: v.scheduled}
}

// Scheduled calls yield with all scheduled URLs, in the order of keys, until yield returns false. It reads the whole
// history. Data is valid until the next call.
func (d *DB) Scheduled(yield func(host string, u URL) bool) error {
	return d.scan(nil, nil, func(p place, v value) bool { return !v.scheduled || yield(string(p.name), urlOf(p.hash, v)) })
}

// A Cursor is a position in a scan of records. It stays valid when the history is opened again; its contents are
// opaque. The zero Cursor is the beginning.
type Cursor string

// Records returns the data of a host, or of all hosts in the order of their keys if host is empty. It returns at most
// most URLs and the Cursor after them, which is empty at the end. A host with many URLs is returned as several records.
// Concurrent changes may be missing; for that reason a transfer starts when changes also go to the new holder.
func (d *DB) Records(host string, from Cursor, most int) (all []Record, next Cursor, err error) {
	var only []byte
	if host != "" {
		only = appendHost(nil, d.cfg.Key(host), host)
	}
	return d.records(only, func([]byte) bool { return true }, max(from, Cursor(only)), most)
}

// RecordsWithin returns, like Records, the data of the hosts whose keys begin with the first bits of a prefix. The
// other bits of the prefix must be 0.
func (d *DB) RecordsWithin(prefix xor.ID, bits int, from Cursor, most int) (all []Record, next Cursor, err error) {
	within := func(host []byte) bool { return xor.ID(host[:xor.Size]).Truncate(bits) == prefix }
	if from == "" && bits > 0 {
		from = Cursor(prefix[:])
	}
	return d.records(nil, within, from, most)
}

// records returns the data from a position on, of one host if only is not nil, up to the first host for which within
// does not hold.
func (d *DB) records(only []byte, within func(host []byte) bool, from Cursor, most int) (all []Record, next Cursor,
	err error) {
	n := 0
	var last []byte
	err = d.scan(only, []byte(from), func(p place, v value) bool {
		if !within(p.host) {
			return false
		}
		if n++; n > most {
			next = Cursor(p.host) + Cursor(p.hash[:])
			return false
		}
		if !bytes.Equal(last, p.host) {
			last = append(last[:0], p.host...)
			all = append(all, Record{Host: string(p.name)})
		}
		r := &all[len(all)-1]
		v.data = bytes.Clone(v.data)
		r.URLs = append(r.URLs, urlOf(p.hash, v))
		return true
	})
	if err != nil {
		return nil, "", err
	}
	return all, next, nil
}

// scan calls yield with all data from a key on, in order, until yield returns false. If host is not nil, it is the key
// of the only host to scan. The arguments of yield are valid until the next call.
func (d *DB) scan(host, from []byte, yield func(place, value) bool) error {
	for again := true; again; again = from != nil {
		var err error
		if from, err = d.scanSome(host, from, yield); err != nil {
			return err
		}
	}
	return nil
}

// scanURLs is the number of records copied from memory at once. Tests reduce it.
var scanURLs = 1 << 16

// scanSome scans a limited number of records from memory, and the corresponding part of the disk. It returns the key to
// continue at, or nil at the end.
func (d *DB) scanSome(host, from []byte, yield func(place, value) bool) (next []byte, err error) {
	tables, next := d.copyOf(host, from)
	view := d.tiers.Pin() // after the copy of memory: data written to disk in between is seen twice, not missed
	defer func() { err = errors.Join(err, view.Release()) }()
	sources := append(tables, view.Scan(from)...)
	all := run.Merge(mergeValues, sources...)
	for all.Next() {
		key := all.Key()
		if next != nil && bytes.Compare(key, next) >= 0 {
			return bytes.Clone(next), nil
		}
		p, ok := readPlace(key)
		v, sound := readValue(all.Value())
		if !ok || !sound {
			return nil, damaged(key)
		}
		if host != nil && !bytes.Equal(p.host, host) || !yield(p, v) {
			return nil, nil
		}
	}
	return next, all.Err()
}

// copyOf copies the data in memory from a key on; of one host if host is not nil. If there is much, the copy ends
// before the key next.
func (d *DB) copyOf(host, from []byte) (tables []run.Source, next []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range []*table{d.active, d.frozen} {
		if t == nil {
			continue
		}
		some, end := t.copyOf(host, from)
		tables = append(tables, &run.Pairs{All: some})
		if end != nil && (next == nil || bytes.Compare(end, next) < 0) {
			next = end
		}
	}
	return tables, next
}

// copyOf copies whole hosts until it has enough.
func (t *table) copyOf(only, from []byte) (all []run.Pair, next []byte) {
	var urls []mem.Ref
	for _, host := range t.sorted(only, from) {
		if len(all) >= scanURLs {
			return all, slices.Clone(t.Key(host))
		}
		urls = t.urls(host, urls[:0])
		for _, ref := range urls {
			v, _ := t.get(ref)
			if key := t.appendKey(nil, host, ref); bytes.Compare(key, from) >= 0 {
				all = append(all, run.Pair{Key: key, Value: v.append(nil)})
			}
		}
	}
	return all, nil
}
