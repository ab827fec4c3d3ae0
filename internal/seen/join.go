package seen

import (
	"context"
	"fmt"

	"kumo/internal/seen/mem"
	"kumo/internal/seen/run"
	"kumo/internal/seen/tier"
)

// A Decided is a URL whose news was Later.
type Decided struct {
	URL       // State and Depth are the best offered; Payload is valid until the call that hands it out returns
	News News // Fresh or Nearer
}

// chunk is how many decided URLs are handed out at once.
const chunk = 1024

// Merge writes the frozen part to the disk, in one sequential pass that decides what was Later. It calls decided with what
// of it is news, in order; only when that has been accepted does it make the new state durable, and Position becomes the
// frozen part's. A merge that fails or is cancelled can be tried again, and does not hand out again what decided has
// accepted.
func (d *DB) Merge(ctx context.Context, decided func([]Decided) error) error {
	d.merging.Lock()
	defer d.merging.Unlock()
	t, pos := d.waiting()
	if t == nil {
		return nil
	}
	view := d.tiers.Pin()
	j := &joiner{ctx: ctx, db: d, table: t, items: d.sorted(t), disk: view.Finder(), decided: decided, handed: d.handed}
	err := d.tiers.Add(ctx, j, func(m *tier.Manifest) {
		m.Position, m.Born = pos, d.born
		m.Keys += j.counted + j.found
	})
	if closeErr := view.Release(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("merge the URL database: %w", err)
	}
	d.handed = 0
	d.parts.merged(func() {
		d.known += j.found
		d.merges++
	})
	return nil
}

// Compact merges files of about one size into one where there are enough of them, and reports whether there were. It may run
// beside Merge.
func (d *DB) Compact(ctx context.Context) (bool, error) { return d.tiers.Compact(ctx) }

var _ run.Source = (*joiner)(nil)

// A joiner is the frozen part as a source for a run: it decides as it goes, and leaves out what the disk has already.
type joiner struct {
	ctx     context.Context
	db      *DB
	table   *mem.Table
	items   []mem.Item
	disk    *tier.Finder
	decided func([]Decided) error
	news    []Decided
	handed  int // how many an earlier attempt has handed out

	counted int64 // keys that were known to be new
	found   int64 // keys that turned out to be

	key, value []byte
	err        error
}

// Next goes to the next record that has something to say.
func (j *joiner) Next() bool {
	for len(j.items) > 0 && j.err == nil {
		ref := j.items[0].Ref
		j.items = j.items[1:]
		if len(j.items)%chunk == 0 {
			j.err = j.ctx.Err()
		}
		j.key = j.table.Key(ref)
		e, flags := read(j.table, ref)
		if j.says(ref, e, flags) && j.err == nil {
			r := load(j.table, ref)
			j.value = r.append(j.value[:0])
			return true
		}
	}
	j.hand()
	return false
}

// says counts and decides a record, and reports whether it says more than the disk does.
func (j *joiner) says(ref mem.Ref, e entry, flags uint8) bool {
	if flags&counted != 0 {
		j.counted++
	}
	if flags&(pending|uncounted) == 0 {
		return true
	}
	old := nobody()
	for value, err := range j.disk.Find(j.key) {
		if err != nil {
			j.err = err
			return false
		}
		older, ok := readRecord(value)
		if !ok {
			j.err = damaged(j.key)
			return false
		}
		old.join(older)
	}
	if old.state == Unknown {
		j.found++
	}
	if flags&pending == 0 {
		return true
	}
	u := URL{State: e.state, Depth: e.depth}
	news := j.db.judge(old.entry, &u)
	if news == Nothing {
		return j.table.Word(ref, wordMeta) != 0
	}
	j.tell(ref, u, news)
	return true
}

// tell hands a URL out, unless an attempt before has.
func (j *joiner) tell(ref mem.Ref, u URL, news News) {
	if j.handed > 0 {
		j.handed--
		return
	}
	u.URL, u.Payload = string(j.key), j.table.Kept(mem.Ref(j.table.Word(ref, wordPayload)))
	if j.news = append(j.news, Decided{u, news}); len(j.news) == chunk {
		j.hand()
	}
}

func (j *joiner) hand() {
	if len(j.news) == 0 || j.err != nil {
		return
	}
	if j.err = j.decided(j.news); j.err == nil {
		j.db.handed += len(j.news)
	}
	clear(j.news)
	j.news = j.news[:0]
}

func (j *joiner) Key() []byte   { return j.key }
func (j *joiner) Value() []byte { return j.value }
func (j *joiner) Err() error    { return j.err }

// load is a record in memory as it goes to the disk.
func load(t *mem.Table, ref mem.Ref) record {
	e, _ := read(t, ref)
	return record{e, t.Word(ref, wordFirst), t.Kept(mem.Ref(t.Word(ref, wordMeta)))}
}
