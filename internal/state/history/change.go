package history

import (
	"bytes"
	"slices"

	"kumo/internal/state/seen/mem"
	"kumo/internal/state/seen/tier"
)

// A State is what is known of a URL.
type State uint8

// The states.
const (
	Unknown State = iota
	Dispatched
	Done
)

// Enter enters URLs of a host: those that are not Done and not known yet as dispatched, the others as done. It appends
// to before what was known of each; where one is given twice, the first counts for the second.
func (d *DB) Enter(host string, urls []URL, before []State) ([]State, error) {
	from := len(before)
	before = append(before, make([]State, len(urls))...)
	if err := d.enter(&Record{host, urls}, before[from:]); err != nil {
		return before[:from], err
	}
	return before, nil
}

// enter applies a record, where there is room for it.
func (d *DB) enter(r *Record, before []State) error {
	if err := r.check(); err != nil {
		return err
	}
	d.change.Lock()
	defer d.change.Unlock()
	if err := d.ready(r); err != nil {
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

// ready is why a record cannot be entered.
func (d *DB) ready(r *Record) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	newHost := d.open[r.Host] == 0 && slices.ContainsFunc(r.URLs, func(u URL) bool { return !u.Done })
	switch {
	case d.log.failed != nil:
		return d.log.failed
	case d.active.Bytes() >= d.full, newHost && len(d.open) >= d.maxHosts:
		return ErrFull
	}
	return nil
}

// room is memory of changes that is used again; guarded by change.
type room struct {
	host  []byte // the host's key
	key   []byte
	asked []asked
	body  []byte
}

// An asked is what was known of a URL.
type asked struct {
	i    int // in the record
	hash Hash
	old  value
	ok   bool
	disk bool // memory does not know
}

// apply enters what is news of a record, in memory and the journal's next batch. before, unless it is nil, comes to be
// what was known of each URL. The caller holds change, or nobody else has the database.
func (d *DB) apply(r *Record, before []State) error {
	d.room.host = appendHost(d.room.host[:0], d.cfg.Key(r.Host), r.Host)
	d.inMemory(r)
	if err := d.onDisk(); err != nil {
		return err
	}
	slices.SortFunc(d.asked, func(a, b asked) int { return a.i - b.i })
	d.mu.Lock()
	defer d.mu.Unlock()
	d.set(r, before)
	return nil
}

// inMemory asks memory what is known.
func (d *DB) inMemory(r *Record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = d.asked[:0]
	var at [2]refs
	for i, t := range [2]*table{d.active, d.frozen} {
		if t != nil {
			at[i] = refs{t, t.Find(string(d.room.host))}
		}
	}
	for i := range r.URLs {
		a := asked{i: i, hash: r.URLs[i].Hash, disk: true}
		for _, l := range at {
			if v, ok := l.getURL(&a.hash); ok {
				a.old, a.ok, a.disk = v, true, false
				break
			}
		}
		d.asked = append(d.asked, a)
	}
}

// onDisk asks the disk for what memory does not know, in the order of keys.
func (d *DB) onDisk() error {
	slices.SortFunc(d.asked, func(a, b asked) int { return bytes.Compare(a.hash[:], b.hash[:]) })
	finder, err := d.reader.finder(d.tiers)
	if err != nil {
		return err
	}
	for i := range d.asked {
		a := &d.asked[i]
		if !a.disk {
			continue
		}
		d.key = append(append(d.key[:0], d.room.host...), a.hash[:]...)
		for b, err := range finder.Find(d.key) { // the newest is more than those before it
			if err != nil {
				return err
			}
			v, ok := readValue(b)
			if !ok {
				return damaged(d.key)
			}
			a.old, a.ok = value{v.done, bytes.Clone(v.data)}, true
			break
		}
	}
	return nil
}

// set enters what is more than what was known, which asked has in the order of the record.
func (d *DB) set(r *Record, before []State) {
	out := Record{Host: r.Host}
	at := d.active.Find(string(d.room.host))
	for i := range r.URLs {
		u := &r.URLs[i]
		v := value{u.Done, u.Data}
		old, known := d.asked[i].old, d.asked[i].ok
		if now, ok := d.active.getURL(at, &u.Hash); ok {
			old, known = now, true // the record has it twice
		}
		if before != nil && known {
			before[i] = old.state()
		}
		if known && (old.done || !v.done) {
			continue
		}
		out.URLs = append(out.URLs, *u)
		at = d.active.host(d.room.host)
		d.active.setURL(at, &u.Hash, v)
		d.count(r.Host, v, known)
	}
	if len(out.URLs) > 0 {
		d.body = appendRecord(d.body[:0], &out)
		d.log.enter(entryRecord, d.body)
	}
}

// count counts a URL that has another value than before.
func (d *DB) count(name string, v value, known bool) {
	if !known {
		d.known++
	}
	switch {
	case !v.done:
		d.open.add(name, 1)
	case known:
		d.open.add(name, -1)
	}
}

// refs is where a host is in a table.
type refs struct {
	t    *table
	host mem.Ref
}

func (r refs) getURL(h *Hash) (value, bool) {
	if r.t == nil {
		return value{}, false
	}
	return r.t.getURL(r.host, h)
}

// A reader looks up what is on the disk; guarded by change.
type reader struct {
	base *tier.View // as which the view was pinned
	view *tier.View
	find *tier.Finder
}

// finder is a finder for the runs as they are now.
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
