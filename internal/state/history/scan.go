package history

import (
	"bytes"
	"errors"
	"slices"

	"kumo/internal/state/seen/mem"
	"kumo/internal/state/seen/run"
)

// Get returns what is known of a URL.
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

// Dispatched returns URLs of a host that were dispatched and are not done, from a hash on. At most so many are
// returned, and 64 times as many looked at; more says whether there may be others from next on.
func (d *DB) Dispatched(host string, from Hash, most int) (urls []URL, next Hash, more bool, err error) {
	seen := 0
	err = d.urls(host, from, func(u URL) bool {
		if len(urls) >= most || seen >= 64*most {
			next, more = u.Hash, true
			return false
		}
		if seen++; !u.Done {
			u.Data = bytes.Clone(u.Data)
			urls = append(urls, u)
		}
		return true
	})
	return urls, next, more, err
}

// urls gives a host's URLs from a hash on, until it is told to stop. Data are valid until it is told the next.
func (d *DB) urls(host string, from Hash, yield func(URL) bool) error {
	key := appendHost(nil, d.cfg.Key(host), host)
	return d.scan(key, slices.Concat(key, from[:]), func(p place, v value) bool { return yield(urlOf(p.hash, v)) })
}

func urlOf(h Hash, v value) URL { return URL{h, v.done, v.data} }

// A Cursor is how far records were read. It stays good when the history is opened again, and nobody but who made it can
// read it. The zero Cursor is the beginning.
type Cursor string

// Records returns what is known of a host, or of all in the order of their keys if none is named, most URLs at once,
// and the Cursor behind them: empty at the end. A host with many URLs comes in several records. What changes meanwhile
// may be missing: a transfer begins when changes go to the new holder, too.
func (d *DB) Records(host string, from Cursor, most int) (all []Record, next Cursor, err error) {
	var only []byte
	if host != "" {
		only = appendHost(nil, d.cfg.Key(host), host)
	}
	n := 0
	var last []byte
	err = d.scan(only, []byte(max(string(from), string(only))), func(p place, v value) bool {
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

// scan gives all that is known from a key on, of the host with a key alone unless that is nil, in order, until it is
// told to stop. What it gives is valid until it is told the next.
func (d *DB) scan(host, from []byte, yield func(place, value) bool) error {
	for again := true; again; again = from != nil {
		var err error
		if from, err = d.scanSome(host, from, yield); err != nil {
			return err
		}
	}
	return nil
}

// scanURLs is how many records of memory are copied at once; tests have it smaller.
var scanURLs = 1 << 16

// scanSome is scan as far as some records of memory go, and returns where it goes on; nil: it does not.
func (d *DB) scanSome(host, from []byte, yield func(place, value) bool) (next []byte, err error) {
	tables, next := d.copyOf(host, from)
	view := d.tiers.Pin() // after memory was looked at: what goes to the disk meanwhile comes twice, and not never
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

// copyOf copies from memory from a key on, a host alone unless that is nil. If that is much, it ends before the key
// next.
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

// copyOf copies whole hosts, until it has enough.
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
