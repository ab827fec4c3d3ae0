package seen

import (
	"context"
	"fmt"

	"kumo/internal/state/seen/mem"
	"kumo/internal/state/seen/run"
	"kumo/internal/state/seen/tier"
)

// Merge writes the frozen part to the disk, in one sequential pass, and makes the new state durable: Position becomes
// the frozen part's. URLs whose news was Later are put aside there, until they are so many that it is worth while to
// read all of the disk for them; then Merge does what Settle does. A merge that fails or is cancelled can be tried
// again.
func (d *DB) Merge(ctx context.Context, decided func([]Decided) error) error {
	return d.tend(ctx, decided, false)
}

// Settle is a Merge that decides all that it finds waiting: for when there is nothing else to do.
//
// It calls decided with what of it is news, in order, and only when that has been accepted does it forget on the disk
// that the URLs waited. What decided has accepted is not handed out again, but for a new process, to which Know has not
// told it.
func (d *DB) Settle(ctx context.Context, decided func([]Decided) error) error {
	return d.tend(ctx, decided, true)
}

func (d *DB) tend(ctx context.Context, decided func([]Decided) error, all bool) error {
	d.busy.Lock()
	defer d.busy.Unlock()
	defer d.begin()()
	err := d.hand(decided)
	if err == nil {
		err = d.write(ctx)
	}
	if st := d.tiers.View().Stats(); err == nil && (all || st.Waiting*int64(d.cfg.Share) >= st.Entries) {
		err = d.settle(ctx, decided)
	}
	if err != nil {
		return fmt.Errorf("merge the URL database: %w", err)
	}
	return nil
}

// write brings the frozen part to the disk.
func (d *DB) write(ctx context.Context) error {
	t, pos := d.waiting()
	if t == nil {
		return nil
	}
	view := d.tiers.Pin()
	items := d.sorted(t)
	news := &joiner{ctx: ctx, table: t, items: items, disk: view.Finder()}
	late := &putAside{ctx: ctx, table: t, items: items}
	err := d.tiers.Add(ctx, news, late, func(m *tier.Manifest) {
		m.Position, m.Born = pos, d.born
		m.Keys += news.counted + news.found
	})
	if closeErr := view.Release(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	d.parts.merged(func() {
		d.known += news.found
		d.merges++
	})
	return nil
}

// Compact merges files of about one size into one where there are enough of them, and reports whether there were. It
// may run beside Merge.
func (d *DB) Compact(ctx context.Context) (bool, error) { return d.tiers.Compact(ctx) }

// chunk is how many URLs are gone through between two looks at the context, and how many decided ones are handed out at
// once.
const chunk = 1024

var _ run.Source = (*joiner)(nil)

// A joiner is what a frozen part says for certain, as a source for a run.
type joiner struct {
	ctx   context.Context
	table *mem.Table
	items []mem.Item
	disk  *tier.Finder

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
		r := load(j.table, ref)
		flags := j.table.Flags(ref)
		j.count(flags)
		if flags&pending != 0 {
			r.entry = entry{}
		}
		if j.err == nil && (flags&pending == 0 || len(r.meta) > 0) {
			j.value = r.append(j.value[:0])
			return true
		}
	}
	return false
}

func (j *joiner) count(flags uint8) {
	if flags&counted != 0 {
		j.counted++
	}
	if flags&uncounted == 0 {
		return
	}
	old, err := look(j.disk, j.key)
	if j.err = err; old.state == Unknown {
		j.found++
	}
}

func (j *joiner) Key() []byte   { return j.key }
func (j *joiner) Value() []byte { return j.value }
func (j *joiner) Err() error    { return j.err }

// load is a record in memory as it goes to the disk.
func load(t *mem.Table, ref mem.Ref) record {
	e, _ := read(t, ref)
	return record{e, t.Word(ref, wordFirst), t.Kept(mem.Ref(t.Word(ref, wordMeta)))}
}

// look is what the disk says of a key. Its meta is not to be used.
func look(disk *tier.Finder, key []byte) (record, error) {
	old := nobody()
	for value, err := range disk.Find(key) {
		if err != nil {
			return old, err
		}
		older, ok := readRecord(value)
		if !ok {
			return old, damaged(key)
		}
		older.meta = nil
		old.join(older)
	}
	return old, nil
}
