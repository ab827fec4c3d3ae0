package history

import (
	"bytes"
	"slices"

	"kumo/internal/state/seen/mem"
	"kumo/internal/state/seen/tier"
)

// A State is the state of a URL.
type State uint8

// The states.
const (
	Unknown State = iota
	Dispatched
	Done
)

// Insert inserts URLs of a host. URLs that are neither Done nor Scheduled are inserted as dispatched, unless they are
// known; the others are marked as done or scheduled. A later visit replaces an earlier one of the same URL, so all
// earlier visits are done; of the same visit, dispatched replaces scheduled.
//
// Insert appends the previous state of each URL to before, as seen from the inserted visit: Done if that was done, or a
// later one is known; Dispatched if it was dispatched, or if it is not dispatched itself and an earlier visit was;
// Unknown otherwise. If a URL occurs twice, the previous state of the second is the one that the first has set.
func (d *DB) Insert(host string, urls []URL, before []State) ([]State, error) {
	from := len(before)
	before = append(before, make([]State, len(urls))...)
	if err := d.insert(&Record{host, urls}, before[from:]); err != nil {
		return before[:from], err
	}
	return before, nil
}

// insert applies a record if there is space.
func (d *DB) insert(r *Record, before []State) error {
	if err := r.check(); err != nil {
		return err
	}
	d.change.Lock()
	defer d.change.Unlock()
	if err := d.checkRoom(r); err != nil {
		return err
	}
	if err := d.apply(r, before); err != nil {
		return err
	}
	d.mu.Lock()
	large := len(d.log.pending) >= commitBytes
	d.mu.Unlock()
	if large {
		return d.Sync()
	}
	return nil
}

// checkRoom returns the reason why a record cannot be inserted now, or nil.
func (d *DB) checkRoom(r *Record) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	newHost := d.open[r.Host] == 0 && slices.ContainsFunc(r.URLs, func(u URL) bool { return !u.Done && !u.Scheduled })
	switch {
	case d.log.failed != nil:
		return d.log.failed
	case d.active.Bytes() >= d.full, newHost && len(d.open) >= d.maxHosts:
		return ErrFull
	}
	return nil
}

// scratch contains reusable buffers for changes. Guarded by change.
type scratch struct {
	host    []byte // the host's key
	key     []byte
	lookups []lookup
	body    []byte
}

// A lookup is the previous value of a URL.
type lookup struct {
	index       int // in the record
	hash        Hash
	old         value
	known       bool
	notInMemory bool // memory has no value; look on disk
}

// apply inserts the changes of a record in memory and in the journal's next batch. It sets before, if not nil, to the
// previous state of each URL. The caller holds change, or has exclusive access to the database.
func (d *DB) apply(r *Record, before []State) error {
	d.scratch.host = appendHost(d.scratch.host[:0], d.cfg.Key(r.Host), r.Host)
	d.lookUpMemory(r)
	if err := d.lookUpDisk(); err != nil {
		return err
	}
	slices.SortFunc(d.lookups, func(a, b lookup) int { return a.index - b.index })
	d.mu.Lock()
	defer d.mu.Unlock()
	d.applyNew(r, before)
	return nil
}

// lookUpMemory looks URLs up in memory.
func (d *DB) lookUpMemory(r *Record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lookups = d.lookups[:0]
	var at [2]tableHost
	for i, t := range [2]*table{d.active, d.frozen} {
		if t != nil {
			at[i] = tableHost{t, t.Find(string(d.scratch.host))}
		}
	}
	for i := range r.URLs {
		a := lookup{index: i, hash: r.URLs[i].Hash, notInMemory: true}
		for _, l := range at {
			if v, ok := l.getURL(&a.hash); ok {
				a.old, a.known, a.notInMemory = v, true, false
				break
			}
		}
		d.lookups = append(d.lookups, a)
	}
}

// lookUpDisk looks up on disk the URLs that memory does not have, in the order of keys.
func (d *DB) lookUpDisk() error {
	slices.SortFunc(d.lookups, func(a, b lookup) int { return bytes.Compare(a.hash[:], b.hash[:]) })
	finder, err := d.reader.finder(d.tiers)
	if err != nil {
		return err
	}
	for i := range d.lookups {
		a := &d.lookups[i]
		if !a.notInMemory {
			continue
		}
		d.key = append(append(d.key[:0], d.scratch.host...), a.hash[:]...)
		for b, err := range finder.Find(d.key) { // the newest value comes first and replaces the others
			if err != nil {
				return err
			}
			v, ok := readValue(b)
			if !ok {
				return damaged(d.key)
			}
			v.data = bytes.Clone(v.data)
			a.old, a.known = v, true
			break
		}
	}
	return nil
}

// applyNew inserts the values that advance the state. The lookups are in the order of the record.
func (d *DB) applyNew(r *Record, before []State) {
	out := Record{Host: r.Host}
	at := d.active.Find(string(d.scratch.host))
	for i := range r.URLs {
		u := &r.URLs[i]
		v := valueOf(u)
		old, known := d.lookups[i].old, d.lookups[i].known
		if now, ok := d.active.getURL(at, &u.Hash); ok {
			old, known = now, true // the record contains it twice
		}
		if before != nil && known {
			before[i] = old.stateBefore(&v)
		}
		if known && !v.advances(&old) {
			continue
		}
		out.URLs = append(out.URLs, *u)
		at = d.active.host(d.scratch.host)
		d.active.setURL(at, &u.Hash, v)
		d.count(r.Host, &v, known, &old)
	}
	if len(out.URLs) > 0 {
		d.body = appendRecord(d.body[:0], &out)
		kind := byte(entryRecord)
		if out.revisits() {
			kind = entryVisits
		}
		d.log.enqueue(kind, d.body)
	}
}

// count updates the counts for a URL with a new value; old is the previous one, if it is known.
func (d *DB) count(name string, v *value, known bool, old *value) {
	if !known {
		d.known++
	}
	switch is, was := v.open(), known && old.open(); {
	case is && !was:
		d.open.add(name, 1)
	case was && !is:
		d.open.add(name, -1)
	}
}

// A tableHost is a host in a table.
type tableHost struct {
	t    *table
	host mem.Ref
}

func (r tableHost) getURL(h *Hash) (value, bool) {
	if r.t == nil {
		return value{}, false
	}
	return r.t.getURL(r.host, h)
}

// A reader looks up values on disk. Guarded by change.
type reader struct {
	base *tier.View // the live view when view was pinned
	view *tier.View
	find *tier.Finder
}

// finder returns a finder for the current runs.
func (r *reader) finder(tiers *tier.Set) (*tier.Finder, error) {
	if now := tiers.View(); r.find == nil || now != r.base {
		if err := r.release(); err != nil {
			return nil, err
		}
		r.base, r.view = now, tiers.Pin()
		r.find = r.view.Finder()
	}
	return r.find, nil
}

func (r *reader) release() error {
	if r.find == nil {
		return nil
	}
	v := r.view
	*r = reader{}
	return v.Release()
}
