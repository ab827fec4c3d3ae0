package seen

import (
	"encoding/binary"
	"slices"
	"time"

	"kumo/internal/state/seen/run"
)

// Import enters what another database knew: [DB.Know] and [DB.Note] for many URLs at once, whose First it keeps where
// that is earlier. What is known here of a URL stays as far as the entry does not say more.
func (d *DB) Import(entries []Entry) {
	metas, ends := d.metas(entries)
	d.mu.Lock()
	defer d.mu.Unlock()
	may := d.mayHave(entries)
	at := 0
	for i := range entries {
		e, first := &entries[i], d.minute(entries[i].First)
		if e.State != Unknown {
			d.insertKnown(&URL{URL: e.URL, Depth: e.Depth, State: e.State}, func(string) bool { return may[i] }, first)
		}
		if ends[i] > at {
			d.updateMeta(e.URL, metas[at:ends[i]], first)
		}
		at = ends[i]
	}
}

// metas encodes what entries say of visits, one after the other, and where each ends.
func (d *DB) metas(entries []Entry) (metas []byte, ends []int) {
	ends = make([]int, len(entries))
	for i := range entries {
		m := &entries[i].Meta
		if len(m.ETag) > maxETag {
			m.ETag = ""
		}
		metas = appendMeta(metas, m, d.born)
		ends[i] = len(metas)
	}
	return metas, ends
}

// mayHave asks filters of all URLs at once that memory does not know.
func (d *DB) mayHave(entries []Entry) []bool {
	d.probes = d.probes[:0]
	asked := make([]int, 0, len(entries))
	for i := range entries {
		if _, old, _ := d.lookUp(entries[i].URL); old.state == Unknown {
			d.probes = append(d.probes, run.Probe{Key: entries[i].URL, Hash: run.HashString(entries[i].URL)})
			asked = append(asked, i)
		}
	}
	d.tiers.View().Probe(d.probes)
	may := make([]bool, len(entries))
	for n, i := range asked {
		may[i] = d.probes[n].May
	}
	clear(d.probes)
	return may
}

// minute is a time in minutes since the database was made; zero is now.
func (d *DB) minute(t time.Time) uint32 {
	if t.IsZero() {
		return d.minutes()
	}
	return uint32(max(t.Unix()-d.born, 0) / 60)
}

// AppendMeta appends m as it is written down, with its length before it. Times are written by how far they are from
// base, a Unix time: the nearer, the shorter.
func AppendMeta(b []byte, m *Meta, base int64) []byte {
	at := len(b)
	b = appendMeta(b, m, base)
	var n [binary.MaxVarintLen64]byte
	return slices.Insert(b, at, n[:binary.PutUvarint(n[:], uint64(len(b)-at))]...)
}

// ReadMeta reads what AppendMeta wrote, and returns what follows it; false if it is nothing that AppendMeta writes.
func ReadMeta(b []byte, base int64) (m Meta, rest []byte, ok bool) {
	in := decoderOf(b)
	n := in.Uint()
	if in.Bad || n > uint64(len(in.Rest)) {
		return m, nil, false
	}
	m, ok = readMeta(in.Rest[:n], base)
	return m, in.Rest[n:], ok
}
