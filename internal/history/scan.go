package history

import (
	"bytes"
	"errors"
	"slices"

	"kumo/internal/seen/mem"
	"kumo/internal/seen/run"
	"kumo/internal/xor"
)

// Get returns what is known of a URL, At as it is with its host's assignment.
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

// Dispatched returns URLs of a host that were dispatched and are not done, from a hash on, with the times at which they
// were, or the host was assigned if that was later. At most so many are returned, and 64 times as many looked at; more
// says whether there may be others from next on.
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
	id := d.cfg.Key(host)
	key := appendHost(nil, id, host)
	d.mu.Lock()
	var assigned uint32
	if h := d.hosts.byName[host]; h != nil {
		assigned = h.assigned
	}
	d.mu.Unlock()
	return d.scan(selection{xor.Prefix(id, xor.Bits), key}, slices.Concat(key, from[:]), func(p place, v value) bool {
		return bytes.Equal(p.host, key) && (!p.url || yield(urlOf(p.hash, v, assigned)))
	})
}

func urlOf(h Hash, v value, assigned uint32) URL {
	if v.done {
		return URL{Hash: h, Done: true}
	}
	return URL{Hash: h, At: int64(max(v.at, assigned)), Data: v.data}
}

// A Cursor is how far a part of the space was read. It stays good when the history is opened again, and nobody but who
// made it can read it. The zero Cursor is the beginning.
type Cursor string

// Records returns what is known of hosts whose keys are in a part of the space, in the order of keys, most URLs and
// hosts at once, and the Cursor behind them: empty at the end. A host with many URLs comes in several records, of which
// the first says to whom it is assigned. What changes meanwhile may be missing: a transfer begins when changes go to
// the new holder, too.
func (d *DB) Records(part xor.Pattern, from Cursor, most int) (all []Record, next Cursor, err error) {
	n := 0
	var last []byte
	err = d.scan(selection{part: part}, []byte(from), func(p place, v value) bool {
		if n++; n > most {
			next = Cursor(p.host)
			if p.url {
				next += Cursor(p.hash[:])
			}
			return false
		}
		if !bytes.Equal(last, p.host) {
			last = append(last[:0], p.host...)
			all = append(all, Record{Host: string(p.name)})
		}
		r := &all[len(all)-1]
		if !p.url {
			r.Assigned, r.Target = int64(v.at), string(v.data)
			return true
		}
		v.data = bytes.Clone(v.data)
		r.URLs = append(r.URLs, urlOf(p.hash, v, 0))
		return true
	})
	if err != nil {
		return nil, "", err
	}
	return all, next, nil
}

// A selection is what a scan gives.
type selection struct {
	part xor.Pattern
	host []byte // key of the only host that is of interest; nil: all are
}

// scan gives all that is known of a selection from a key on, in order, until it is told to stop. What it gives
// is valid until it is told the next.
func (d *DB) scan(sel selection, from []byte, yield func(place, value) bool) error {
	first, last := sel.part.First(), sel.part.Last()
	if bytes.Compare(from, first[:]) < 0 {
		from = first[:]
	}
	for from != nil {
		next, err := d.scanSome(sel, from, last[:], yield)
		if err != nil {
			return err
		}
		from = next
	}
	return nil
}

// scanURLs is how many records of memory are copied at once; tests have it smaller.
var scanURLs = 1 << 16

// scanSome is scan as far as some records of memory go, and returns where it goes on; nil: it does not.
func (d *DB) scanSome(sel selection, from, last []byte, yield func(place, value) bool) (next []byte, err error) {
	tables, next := d.copyOf(sel, from)
	view := d.tiers.Pin() // after memory was looked at: what goes to the disk meanwhile comes twice, and not never
	defer func() { err = errors.Join(err, view.Release()) }()
	sources := append(tables, view.Scan(from)...)
	all := run.Merge(fold, sources...)
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
		if bytes.Compare(key[:xor.Size], last) > 0 {
			return nil, nil
		}
		if sel.part.Contains(p.id()) && !yield(p, v) {
			return nil, nil
		}
	}
	return next, all.Err()
}

// An entry is a record of memory as the disk would have it.
type entry struct{ key, value []byte }

// entries are a source of what they are.
type entries struct {
	all []entry
	at  int
}

func (e *entries) Next() bool    { e.at++; return e.at <= len(e.all) }
func (e *entries) Key() []byte   { return e.all[e.at-1].key }
func (e *entries) Value() []byte { return e.all[e.at-1].value }
func (e *entries) Err() error    { return nil }

var _ run.Source = (*entries)(nil)

// copyOf copies from memory what is selected, from a key on. If that is much, it ends before the key next.
func (d *DB) copyOf(sel selection, from []byte) (tables []run.Source, next []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range []*table{d.active, d.frozen} {
		if t == nil {
			continue
		}
		some, end := t.copyOf(sel, from)
		tables = append(tables, &entries{all: some})
		if end != nil && (next == nil || bytes.Compare(end, next) < 0) {
			next = end
		}
	}
	return tables, next
}

// copyOf copies whole hosts, until it has enough.
func (t *table) copyOf(sel selection, from []byte) (all []entry, next []byte) {
	var urls []mem.Ref
	for _, host := range t.sorted(sel, from) {
		if len(all) >= scanURLs {
			return all, slices.Clone(t.Key(host))
		}
		if v, ok := t.get(host); ok && bytes.Compare(t.Key(host), from) >= 0 {
			all = append(all, entry{slices.Clone(t.Key(host)), v.append(nil)})
		}
		urls = t.urls(host, urls[:0])
		for _, ref := range urls {
			v, _ := t.get(ref)
			if key := t.appendKey(nil, host, ref); bytes.Compare(key, from) >= 0 {
				all = append(all, entry{key, v.append(nil)})
			}
		}
	}
	return all, nil
}
