package history

import (
	"bytes"
	"slices"
	"time"

	"kumo/internal/seen/mem"
	"kumo/internal/seen/tier"
)

// Claim enters URLs of a host that are not known yet as dispatched now, and appends to fresh which of the items those
// are. Where one is given twice, only the first is.
func (d *DB) Claim(now time.Time, host string, items []Item, fresh []bool) ([]bool, error) {
	r := Record{Host: host, URLs: make([]URL, len(items))}
	for i := range items {
		r.URLs[i] = URL{Hash: items[i].Hash, At: now.Unix(), Data: items[i].Data}
	}
	from := len(fresh)
	fresh = append(fresh, make([]bool, len(items))...)
	_, err := d.enter(&r, func(i int, known, _ bool) bool {
		fresh[from+i] = !known
		return !known
	})
	if err != nil {
		return fresh[:from], err
	}
	return fresh, nil
}

// A State is what is known of a URL.
type State uint8

// The states.
const (
	Unknown State = iota
	Dispatched
	Done
)

// Enter enters URLs of a host: those that are not Done and not known yet as dispatched now, the others as done. It
// appends to before what was known of each; where one is given twice, the first counts for the second.
func (d *DB) Enter(now time.Time, host string, urls []URL, before []State) ([]State, error) {
	r := Record{Host: host, URLs: slices.Clone(urls)}
	for i := range r.URLs {
		if u := &r.URLs[i]; !u.Done {
			u.At = now.Unix()
		}
	}
	from := len(before)
	before = append(before, make([]State, len(urls))...)
	_, err := d.enter(&r, func(i int, known, done bool) bool {
		switch {
		case known && done:
			before[from+i] = Done
		case known:
			before[from+i] = Dispatched
		}
		return !known || urls[i].Done
	})
	if err != nil {
		return before[:from], err
	}
	return before, nil
}

// Assign says that a host's URLs that are not done are a node's to fetch, and that they were dispatched to it now, or
// that it has said now that it still has them.
func (d *DB) Assign(now time.Time, host, target string) error {
	_, err := d.enter(&Record{Host: host, Target: target, Assigned: now.Unix()}, nil)
	return err
}

// Done says that URLs of a host are done, and returns of how many that is news. It holds of URLs that were not known,
// too.
func (d *DB) Done(host string, hashes []Hash) (news int, err error) {
	r := Record{Host: host, URLs: make([]URL, len(hashes))}
	for i, h := range hashes {
		r.URLs[i] = URL{Hash: h, Done: true}
	}
	return d.enter(&r, nil)
}

// Merge unites what is known with what another node knows, and returns of how many URLs that is news. What is said to
// have been dispatched after now counts as dispatched now. Where it fails, some records may have been taken in.
func (d *DB) Merge(now time.Time, records []Record) (news int, err error) {
	for i := range records {
		r := records[i]
		r.Assigned = min(r.Assigned, now.Unix())
		r.URLs = slices.Clone(r.URLs)
		for k := range r.URLs {
			r.URLs[k].At = min(r.URLs[k].At, now.Unix())
		}
		n, err := d.enter(&r, nil)
		if news += n; err != nil {
			return news, err
		}
	}
	return news, nil
}

// A filter says whether a URL of a record is entered, which was known before or not, and perhaps done.
type filter func(i int, known, done bool) bool

// enter applies a record, where there is room for it.
func (d *DB) enter(r *Record, may filter) (news int, err error) {
	if err := r.check(); err != nil {
		return 0, err
	}
	d.change.Lock()
	defer d.change.Unlock()
	if err := d.ready(r); err != nil {
		return 0, err
	}
	if news, err = d.apply(r, may); err != nil {
		return 0, err
	}
	d.mu.Lock()
	large := len(d.log.pending) >= commitBytes
	d.mu.Unlock()
	if large {
		err = d.Sync()
	}
	return news, err
}

// ready is why a record cannot be entered.
func (d *DB) ready(r *Record) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	newHost := d.hosts.byName[r.Host] == nil && slices.ContainsFunc(r.URLs, func(u URL) bool { return !u.Done })
	switch {
	case d.log.failed != nil:
		return d.log.failed
	case d.active.Bytes() >= d.full, newHost && len(d.hosts.queue) >= d.maxHosts:
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

// An asked is what was known of a URL, or of its host's assignment.
type asked struct {
	i    int // in the record; -1 for the host
	hash Hash
	old  value
	ok   bool
	disk bool // memory does not know
}

// apply enters what is news of a record, in memory and the journal's next batch, and returns how many URLs it is of.
// The caller holds change, or nobody else has the database.
func (d *DB) apply(r *Record, may filter) (news int, err error) {
	id := d.cfg.Key(r.Host)
	d.room.host = appendHost(d.room.host[:0], id, r.Host)
	d.inMemory(r)
	if err := d.onDisk(); err != nil {
		return 0, err
	}
	slices.SortFunc(d.asked, func(a, b asked) int { return a.i - b.i })
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.set(r, id.FirstDiff(d.cfg.Self), may), nil
}

// inMemory asks memory what is known.
func (d *DB) inMemory(r *Record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	layers := [2]*table{d.active, d.frozen}
	d.asked = d.asked[:0]
	host := asked{i: -1, disk: true}
	if h := d.hosts.byName[r.Host]; h != nil {
		target := h.target.Value()
		host.old, host.disk = value{at: h.assigned, data: []byte(target)}, false
		host.ok = h.assigned > 0 || target != ""
	}
	var at [2]refs
	for i, t := range layers {
		if t == nil {
			continue
		}
		at[i] = refs{t, t.Find(string(d.room.host))}
		if v, ok := t.get(at[i].host); ok && host.disk {
			host.old, host.ok, host.disk = v, true, false
		}
	}
	d.asked = append(d.asked, host)
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
	slices.SortFunc(d.asked, func(a, b asked) int {
		if a.i < 0 || b.i < 0 {
			return min(a.i, 0) - min(b.i, 0)
		}
		return bytes.Compare(a.hash[:], b.hash[:])
	})
	finder, err := d.reader.finder(d.tiers)
	if err != nil {
		return err
	}
	for i := range d.asked {
		a := &d.asked[i]
		if !a.disk {
			continue
		}
		d.key = append(d.key[:0], d.room.host...)
		if a.i >= 0 {
			d.key = append(d.key, a.hash[:]...)
		}
		for b, err := range finder.Find(d.key) { // the newest is more than those before it
			if err != nil {
				return err
			}
			v, ok := readValue(b)
			if !ok {
				return damaged(d.key)
			}
			a.old, a.ok = value{v.done, v.at, bytes.Clone(v.data)}, true
			break
		}
	}
	return nil
}

// set enters what is more than what was known: asked has that in the order of the record, the host first.
func (d *DB) set(r *Record, list int, may filter) (news int) {
	out := Record{Host: r.Host}
	at, host := d.active.Find(string(d.room.host)), d.asked[0]
	v := value{at: seconds(r.Assigned), data: []byte(r.Target)}
	if (v.at > 0 || len(v.data) > 0) && (!host.ok || v.more(host.old)) {
		host.old = v
		out.Assigned, out.Target = r.Assigned, r.Target
		at = d.active.host(d.room.host)
		d.active.set(at, v)
		d.hosts.assign(r.Host, v)
	}
	for i := range r.URLs {
		u := &r.URLs[i]
		v := value{done: u.Done, at: seconds(u.At), data: u.Data}
		old, known := d.asked[i+1].old, d.asked[i+1].ok
		if now, ok := d.active.getURL(at, &u.Hash); ok {
			old, known = now, true // the record has it twice
		}
		if may != nil && !may(i, known, old.done) || known && !v.more(old) {
			continue
		}
		news++
		out.URLs = append(out.URLs, *u)
		at = d.active.host(d.room.host)
		d.active.setURL(at, &u.Hash, v)
		d.count(r.Host, list, v, old, known, host.old)
	}
	if news > 0 || out.Assigned != 0 || out.Target != "" {
		d.body = AppendRecord(d.body[:0], &out)
		d.log.enter(entryRecord, d.body)
	}
	return news
}

// count counts a URL that has another value than before. assigned is its host's.
func (d *DB) count(name string, list int, v, old value, known bool, assigned value) {
	if !known {
		d.lists[list+1]++
	}
	switch wasOpen := known && !old.done; {
	case !v.done && !wasOpen:
		d.hosts.dispatched(name, list, v.at, assigned, 1)
	case !v.done:
		d.hosts.dispatched(name, list, v.at, assigned, 0)
	case wasOpen:
		d.hosts.done(name)
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
