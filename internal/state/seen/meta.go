package seen

import (
	"encoding/binary"
	"slices"
	"time"

	"kumo/internal/base/varint"
)

// A Meta's value: a byte that says which fields follow, and the fields. Times are signed seconds from when the database
// was made.
const (
	hasFetched = 1 << iota
	hasDue
	hasStatus
	hasChanges
	hasDigest
	hasModified
	hasETag
	hasMore // a second byte of this kind follows
)

const (
	hasEvery = 1 << iota
	hasMissing
	hasQueued
	hasKind
	hasEnded
	hasTenure
	hasFrom
	hasContent
)

const maxETag = 256

// appendMeta appends m; nothing when m says nothing.
func appendMeta(b []byte, m *Meta, born int64) []byte {
	at := len(b)
	b = append(b, 0)
	if more := m.more(); more != 0 {
		b[at] = hasMore
		b = append(b, more)
	}
	has := func(bit byte, yes bool) bool {
		if yes {
			b[at] |= bit
		}
		return yes
	}
	if has(hasFetched, !m.Fetched.IsZero()) {
		b = binary.AppendVarint(b, m.Fetched.Unix()-born)
	}
	if has(hasDue, !m.Due.IsZero()) {
		b = binary.AppendVarint(b, m.Due.Unix()-born)
	}
	if has(hasStatus, m.Status > 0) {
		b = binary.AppendUvarint(b, uint64(m.Status))
	}
	if has(hasChanges, m.Changes > 0) {
		b = binary.AppendUvarint(b, uint64(m.Changes))
	}
	if has(hasDigest, m.Digest != [20]byte{}) {
		b = append(b, m.Digest[:]...)
	}
	if has(hasModified, !m.Modified.IsZero()) {
		b = binary.AppendVarint(b, m.Modified.Unix()-born)
	}
	b = m.appendMore(b, born)
	if has(hasETag, m.ETag != "" && len(m.ETag) <= maxETag) {
		b = append(b, m.ETag...)
	}
	if b[at] == 0 {
		return b[:at]
	}
	return b
}

func (m *Meta) more() (has byte) {
	for i, there := range []bool{m.Every > 0, m.Missing > 0, !m.Queued.IsZero(), m.Kind > 0, m.Ended, m.Tenure > 0,
		m.From != "", m.Content != 0} {
		if there {
			has |= 1 << i
		}
	}
	return has
}

func (m *Meta) appendMore(b []byte, born int64) []byte {
	if m.Every > 0 {
		b = binary.AppendUvarint(b, uint64(m.Every/time.Second))
	}
	if m.Missing > 0 {
		b = binary.AppendUvarint(b, uint64(m.Missing))
	}
	if !m.Queued.IsZero() {
		b = binary.AppendVarint(b, m.Queued.Unix()-born)
	}
	if m.Kind > 0 {
		b = append(b, m.Kind)
	}
	if m.Tenure > 0 {
		b = binary.AppendUvarint(b, uint64(m.Tenure))
	}
	if m.From != "" {
		b = append(binary.AppendUvarint(b, uint64(len(m.From))), m.From...)
	}
	if m.Content != 0 {
		b = binary.LittleEndian.AppendUint64(b, m.Content)
	}
	return b
}

func (m *Meta) readMore(in *decoder, has byte, born int64) {
	if has&hasEvery != 0 {
		m.Every = time.Duration(in.Uint()) * time.Second
	}
	if has&hasMissing != 0 {
		m.Missing = int(in.Uint())
	}
	if has&hasQueued != 0 {
		m.Queued = in.time(born)
	}
	if has&hasKind != 0 {
		m.Kind = in.Byte()
	}
	m.Ended = has&hasEnded != 0
	if has&hasTenure != 0 {
		m.Tenure = int(in.Uint())
	}
	if has&hasFrom != 0 {
		m.From = in.String()
	}
	if has&hasContent != 0 {
		m.Content = in.Fixed()
	}
}

func readMeta(b []byte, born int64) (m Meta, ok bool) {
	if len(b) == 0 {
		return m, true
	}
	has, more, in := b[0], byte(0), decoderOf(b[1:])
	if has&hasMore != 0 {
		more = in.Byte()
	}
	if has&hasFetched != 0 {
		m.Fetched = in.time(born)
	}
	if has&hasDue != 0 {
		m.Due = in.time(born)
	}
	if has&hasStatus != 0 {
		m.Status = int(in.Uint())
	}
	if has&hasChanges != 0 {
		m.Changes = int(in.Uint())
	}
	if has&hasDigest != 0 {
		in.Bad = in.Bad || len(in.Rest) < len(m.Digest)
		in.Rest = in.Rest[copy(m.Digest[:], in.Rest):]
	}
	if has&hasModified != 0 {
		m.Modified = in.time(born)
	}
	m.readMore(&in, more, born)
	if has&hasETag != 0 {
		m.ETag = string(in.Rest)
	}
	return m, !in.Bad
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

// joinMeta is newer, with what only older has. It returns one of the two or a new slice.
func joinMeta(newer, older []byte) []byte {
	switch {
	case len(older) == 0:
		return newer
	case len(newer) == 0:
		return older
	}
	a, okA := readMeta(newer, 0)
	b, okB := readMeta(older, 0)
	if !okA || !okB {
		return newer
	}
	return appendMeta(nil, a.join(&b), 0)
}

func (m *Meta) join(older *Meta) *Meta {
	keep(&m.Fetched, older.Fetched)
	if m.Due.IsZero() {
		m.Due, m.Every, m.Missing = older.Due, older.Every, older.Missing
	}
	keep(&m.Queued, older.Queued)
	keep(&m.Kind, older.Kind)
	keep(&m.From, older.From)
	keep(&m.Ended, older.Ended)
	m.Tenure = max(m.Tenure, older.Tenure)
	keep(&m.Status, older.Status)
	keep(&m.Changes, older.Changes)
	if m.Digest == [20]byte{} {
		m.Digest, m.Content = older.Digest, older.Content
		keep(&m.Modified, older.Modified)
		keep(&m.ETag, older.ETag)
	}
	return m
}

// keep sets what is zero to what it was.
func keep[T comparable](v *T, was T) {
	var zero T
	if *v == zero {
		*v = was
	}
}

// A decoder reads fields, and times that are stored relative to a birth.
type decoder struct{ varint.Reader }

func decoderOf(b []byte) decoder { return decoder{varint.Reader{Rest: b}} }

func (d *decoder) time(born int64) time.Time { return time.Unix(born+d.Int(), 0).UTC() }
