package seen

import (
	"context"
	"errors"
	"fmt"

	"kumo/internal/state/seen/mem"
	"kumo/internal/state/seen/run"
	"kumo/internal/state/seen/tier"
)

// A merger merges memory into the disk, and decides undecided URLs.
type merger struct {
	*records
	share       int64
	undelivered []Decided // decided, and not accepted by the caller yet; guarded by busy
	relies      uint64    // the journal has the decisions up to this position; guarded by busy
}

// Merge writes the frozen part to disk in one pass, and makes it durable. Position is then the frozen part's. Undecided
// URLs are stored there until there are enough to decide them, as DecideAll does. After an error, it can be retried.
func (m *merger) Merge(ctx context.Context, decided func([]Decided) error) error {
	return m.mergeAndDecide(ctx, decided, false)
}

// DecideAll is a Merge that decides all undecided URLs. It calls decided with the new ones, in order, and removes them
// from disk once that has succeeded. They are not delivered again by this process; the next one delivers them again
// unless InsertKnown has added them.
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

// chunk is the number of URLs between checks of the context, and of decided URLs per call.
const chunk = 1024

// A walk iterates over a table's records, in the order of items, as a source for a run.
type walk struct {
	ctx   context.Context
	table *mem.Table
	items []mem.Item
	ref   mem.Ref // current record
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

// A joiner is a source of a frozen part's records that need no decision.
type joiner struct {
	walk
	disk    *tier.Finder
	counted int64 // keys that were counted as new before
	found   int64 // keys that were found to be new
}

// Next advances to the next record with data.
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

// load returns a record of a table in the disk's form.
func load(t *mem.Table, ref mem.Ref) record {
	e, _ := read(t, ref)
	return record{e, t.Word(ref, wordFirst), t.Kept(mem.Ref(t.Word(ref, wordMeta)))}
}

// findOnDisk returns the data about a key on disk, without meta.
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
