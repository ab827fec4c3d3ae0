package seen

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/base/vfs"
	"kumo/internal/state/seen/mem"
	"kumo/internal/state/seen/run"
	"kumo/internal/state/seen/tier"
)

// A Ref refers to the record that holds a body.
type Ref struct {
	URL  string
	Time time.Time
	ID   string // its WARC-Record-ID
	// Chunked is the digest of the body with its chunked transfer coding, which the record has as the payload's; zero
	// if it was not chunked.
	Chunked [20]byte
}

// Digests maps the digest of each body to its last record. Look-ups are exact: if neither memory nor a filter decides,
// they read one block of a file. Each merge is a checkpoint, as of a [DB]. It is safe for concurrent use.
type Digests struct {
	store
}

// OpenDigests opens the index in dir, and creates it if necessary. Depths and Now of cfg are ignored.
func OpenDigests(disk vfs.FS, dir string, cfg Config) (*Digests, error) {
	tiers, err := tier.Open(disk, dir, tier.Config{Merge: newest, Ratio: cfg.Ratio, Rate: cfg.Rate})
	if err != nil {
		return nil, fmt.Errorf("open index of digests %s: %w", dir, err)
	}
	return &Digests{newStore(tiers, cfg.Memory)}, nil
}

func newest(newer, _ []byte) []byte { return newer }

// Put adds a body.
func (d *Digests) Put(digest [20]byte, r Ref) {
	b := binary.AppendVarint(nil, r.Time.UnixNano())
	size := uint64(len(r.ID)) << 1
	if r.Chunked != [20]byte{} {
		b = append(binary.AppendUvarint(b, size|1), r.Chunked[:]...)
	} else {
		b = binary.AppendUvarint(b, size)
	}
	b = append(append(b, r.ID...), r.URL...)
	key := string(digest[:])
	d.mu.Lock()
	defer d.mu.Unlock()
	ref := d.active.Find(key)
	if ref == 0 {
		ref = d.active.Add(key)
	}
	d.active.SetWord(ref, wordPayload, uint32(d.active.Keep(b)))
}

// Get returns the record of a body; false if there is none.
func (d *Digests) Get(digest [20]byte) (Ref, bool, error) {
	key := string(digest[:])
	b, view := d.lookUp(key)
	var err error
	for value, readErr := range view.Get(key) {
		b, err = slices.Clone(value), readErr
		break
	}
	if err = errors.Join(err, view.Release()); b == nil || err != nil {
		return Ref{}, false, err
	}
	r, ok := readRef(b)
	if !ok {
		return Ref{}, false, damaged(digest[:])
	}
	return r, true, nil
}

// lookUp returns a copy of the value in memory, or nil and the view of the disk to search.
func (d *Digests) lookUp(key string) ([]byte, *tier.View) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range d.tables() {
		if ref := t.Find(key); ref != 0 {
			return slices.Clone(t.Kept(mem.Ref(t.Word(ref, wordPayload)))), &tier.View{}
		}
	}
	return nil, d.tiers.Pin()
}

func readRef(b []byte) (Ref, bool) {
	in := varint.Reader{Rest: b}
	r := Ref{Time: time.Unix(0, in.Int()).UTC()}
	size := in.Uint()
	if size&1 != 0 && !in.Bad && len(in.Rest) >= len(r.Chunked) {
		in.Rest = in.Rest[copy(r.Chunked[:], in.Rest):]
	}
	n := size >> 1
	if in.Bad || n > uint64(len(in.Rest)) {
		return Ref{}, false
	}
	r.URL, r.ID = string(in.Rest[n:]), string(in.Rest[:n])
	return r, true
}

// Merge writes the frozen part to disk. Position is then the frozen part's.
func (d *Digests) Merge(ctx context.Context) error {
	d.busy.Lock()
	defer d.busy.Unlock()
	t, pos := d.waiting()
	if t == nil {
		return nil
	}
	src := &values{walk{ctx: ctx, table: t, items: d.sorted(t)}}
	if err := d.tiers.Add(ctx, src, nil, func(m *tier.Manifest) { m.Position = pos }); err != nil {
		return fmt.Errorf("merge the index of digests: %w", err)
	}
	d.parts.merged(func() {})
	return nil
}

// Stats returns the size of the index.
func (d *Digests) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return Stats{Stats: d.tiers.View().Stats(), Parts: d.bytes()}
}

var _ run.Source = (*values)(nil)

// values is a source of records whose value is the payload.
type values struct{ walk }

func (v *values) Next() bool {
	if !v.step() {
		return false
	}
	v.value = v.table.Kept(mem.Ref(v.table.Word(v.ref, wordPayload)))
	return true
}
