package seen

import (
	"context"
	"errors"
	"fmt"

	"kumo/internal/state/seen/mem"
	"kumo/internal/state/seen/run"
	"kumo/internal/state/seen/tier"
)

// A merger brings memory to the disk, and decides what waits there.
type merger struct {
	*records
	share       int64
	undelivered []Decided // in memory, and not accepted by the caller yet; guarded by busy
	relies      uint64    // the journal has what was decided up to here; guarded by busy
}

// Merge writes the frozen part to the disk in one pass, and makes it durable: Position becomes the frozen part's. URLs
// that were Later are put aside there until they are many enough to decide, as Settle does. It can be retried.
func (m *merger) Merge(ctx context.Context, decided func([]Decided) error) error {
	return m.mergeAndDecide(ctx, decided, false)
}

// DecideAll is a Merge that decides all pending URLs: it calls decided with those that are news, in order, and drops them
// from the disk once that has succeeded. Only a new process gets them again, unless InsertKnown has entered them.
func (m *merger) DecideAll(ctx context.Context, decided func([]Decided) error) error {
	return m.mergeAndDecide(ctx, decided, true)
}

func (m *merger) mergeAndDecide(ctx context.Context, decided func([]Decided) error, all bool) error {
	m.busy.Lock()
	defer m.busy.Unlock()
	defer m.begin()()
	err := m.deliver(decided)
	if err == nil {
		err = m.write(ctx)
	}
	if st := m.tiers.View().Stats(); err == nil && (all || st.Waiting*m.share >= st.Entries) {
		err = m.decideWaiting(ctx, decided)
	}
	if err != nil {
		return fmt.Errorf("merge the URL database: %w", err)
	}
	return nil
}

func (m *merger) write(ctx context.Context) error {
	t, pos := m.waiting()
	if t == nil {
		return nil
	}
	view := m.tiers.Pin()
	items := m.sorted(t)
	news := &joiner{walk: walk{ctx: ctx, table: t, items: items}, disk: view.Finder()}
	late := &undecidedSource{walk{ctx: ctx, table: t, items: items}}
	err := m.tiers.Add(ctx, news, late, func(to *tier.Manifest) {
		to.Position, to.Born = pos, m.created
		to.Keys += news.counted + news.found
	})
	if err := errors.Join(err, view.Release()); err != nil {
		return err
	}
	m.parts.merged(func() {
		m.known += news.found
		m.merges++
	})
	return nil
}

// chunk is how many URLs are gone through between two looks at the context, and how many decided ones are handed out at
// once.
const chunk = 1024

// A walk goes through a table's records, in the order of items, as a source for a run.
type walk struct {
	ctx   context.Context
	table *mem.Table
	items []mem.Item
	ref   mem.Ref // of the record at hand
	value []byte
	err   error
}

func (w *walk) step() bool {
	if len(w.items) == 0 || w.err != nil {
		return false
	}
	w.ref, w.items = w.items[0].Ref, w.items[1:]
	if len(w.items)%chunk == 0 {
		w.err = w.ctx.Err()
	}
	return w.err == nil
}

func (w *walk) Key() []byte   { return w.table.Key(w.ref) }
func (w *walk) Value() []byte { return w.value }
func (w *walk) Err() error    { return w.err }

var _ run.Source = (*joiner)(nil)

// A joiner is what a frozen part says for certain.
type joiner struct {
	walk
	disk    *tier.Finder
	counted int64 // keys that were known to be new
	found   int64 // keys that turned out to be
}

// Next goes to the next record that has something to say.
func (j *joiner) Next() bool {
	for j.step() {
		r, flags := load(j.table, j.ref), j.table.Flags(j.ref)
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
	old, err := findOnDisk(j.disk, j.Key())
	if j.err = err; old.state == Unknown {
		j.found++
	}
}

// load is a record in memory as it goes to the disk.
func load(t *mem.Table, ref mem.Ref) record {
	e, _ := read(t, ref)
	return record{e, t.Word(ref, wordFirst), t.Kept(mem.Ref(t.Word(ref, wordMeta)))}
}

// findOnDisk is what the disk says of a key. Its meta is not to be used.
func findOnDisk(disk *tier.Finder, key []byte) (record, error) {
	old := emptyRecord()
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
