package seen

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"slices"

	"kumo/internal/base/varint"
	"kumo/internal/state/seen/mem"
	"kumo/internal/state/seen/run"
	"kumo/internal/state/seen/tier"
)

var (
	_ run.Source = (*undecidedSource)(nil)
	_ run.Source = withoutPayload{}
)

// An undecidedSource is a source of a frozen part's undecided offers. The value of a URL is the length of its payload,
// the payload, and its record.
type undecidedSource struct{ walk }

// Next advances to the next undecided offer.
func (p *undecidedSource) Next() bool {
	for p.step() {
		if p.table.Flags(p.ref)&pending != 0 {
			r := load(p.table, p.ref)
			r.meta = nil
			p.value = appendLate(p.value[:0], p.table.Kept(mem.Ref(p.table.Word(p.ref, wordPayload))), &r)
			return true
		}
	}
	return false
}

func appendLate(b, payload []byte, r *record) []byte {
	b = binary.AppendUvarint(b, uint64(len(payload)))
	return r.append(append(b, payload...))
}

// readLate decodes a value of appendLate; payload and record point into b.
func readLate(b []byte) (payload []byte, r record, ok bool) {
	in := varint.Reader{Rest: b}
	payload = in.Bytes()
	r, ok = readRecord(in.Rest)
	return payload, r, ok && !in.Bad
}

// A withoutPayload source returns undecided offers without their payloads. Values that cannot be decoded are returned
// unchanged.
type withoutPayload struct{ run.Source }

func (b withoutPayload) Value() []byte {
	v := b.Source.Value()
	if payload, _, ok := readLate(v); ok {
		return v[bytesOf(payload):]
	}
	return v
}

// onDisk returns sources of all data on disk from a URL on.
func onDisk(view *tier.View, from string) (all []run.Source) {
	for _, s := range view.Waiting().Scan([]byte(from)) {
		all = append(all, withoutPayload{s})
	}
	return append(all, view.Scan([]byte(from))...)
}

// bytesOf returns the size of a payload with its length.
func bytesOf(payload []byte) int {
	var room [binary.MaxVarintLen64]byte
	return binary.PutUvarint(room[:], uint64(len(payload))) + len(payload)
}

// A Decided is an undecided URL that was found to be new.
type Decided struct {
	URL       // State and Depth are the best offered; Payload is valid until the call returns
	News News // Fresh or Nearer
}

// Late iterates over the undecided URLs on disk, in order. It reads the disk as it goes.
func (m *merger) Late() iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		view := m.tiers.Pin()
		defer view.Release() //nolint:errcheck // the data read is correct regardless
		all := run.Merge(m.mergeOffers, view.Waiting().Scan(nil)...)
		for all.Next() {
			if !yield(string(all.Key()), nil) {
				return
			}
		}
		if err := all.Err(); err != nil {
			yield("", err)
		}
	}
}

func (m *merger) decideWaiting(ctx context.Context, decided func([]Decided) error) error {
	view := m.tiers.Pin()
	err := m.decide(ctx, view, decided)
	if err == nil {
		err = m.tiers.DropWaiting(m.relies)
	}
	return errors.Join(err, view.Release())
}

// decide merges the undecided offers with the disk, in order.
func (m *merger) decide(ctx context.Context, view *tier.View, decided func([]Decided) error) error {
	all, disk := run.Merge(m.mergeOffers, view.Waiting().Scan(nil)...), view.Finder()
	for n := 0; all.Next(); n++ {
		if n%chunk == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		payload, r, ok := readLate(all.Value())
		if !ok {
			return damaged(all.Key())
		}
		old, err := findOnDisk(disk, all.Key())
		if err != nil {
			return err
		}
		u := URL{State: r.state, Depth: r.depth, Payload: payload}
		if m.judge(old.entry, &u) == Nothing {
			continue
		}
		u.URL = string(all.Key())
		m.resolve(&u, old.entry, r.first)
		if len(m.undelivered) == chunk {
			if err := m.deliver(decided); err != nil {
				return err
			}
		}
	}
	return errors.Join(all.Err(), m.deliver(decided))
}

// resolve enters an undecided offer that is news to the disk, if it is news to memory, too, and adds it to undelivered.
// From then on memory knows the URL, so that no other offer is the same news. If a better undecided offer is in memory,
// that one is delivered instead.
func (m *merger) resolve(u *URL, disk entry, first uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ref, e, flags := m.lookUp(u.URL)
	if flags&pending != 0 {
		if better := (URL{State: e.state, Depth: e.depth}); m.judge(entry{u.State, u.Depth}, &better) != Nothing {
			u.State, u.Depth, u.Payload = e.state, e.depth, m.active.Kept(mem.Ref(m.active.Word(ref, wordPayload)))
		}
		e = entry{}
	}
	news := min(m.judge(disk, u), m.judge(e, u))
	switch {
	case news == Nothing:
		return
	case e.state != Unknown:
	case disk.state == Unknown:
		flags = counted
	default:
		flags = 0
	}
	m.enter(ref, u, flags, first)
	u.Payload = bytes.Clone(u.Payload)
	m.undelivered = append(m.undelivered, Decided{*u, news})
}

func (m *merger) deliver(decided func([]Decided) error) error {
	if len(m.undelivered) == 0 {
		return nil
	}
	if err := decided(m.undelivered); err != nil {
		return err
	}
	m.undelivered = slices.Delete(m.undelivered, 0, len(m.undelivered))
	return nil
}

// SetRelies records, while decisions are being delivered, up to which position the journal has them durably.
func (m *merger) SetRelies(at uint64) { m.relies = max(m.relies, at) }
