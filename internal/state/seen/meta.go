package seen

import (
	"encoding/binary"
	"slices"
	"time"

	"kumo/internal/base/varint"
)

// The encoding of a Meta: a byte of bits for the fields present, with hasMore a second one, and the fields; ETag is the
// last. Times are signed seconds since the creation of the database.
const (
	hasFetched uint16 = 1 << iota
	hasDue
	hasStatus
	hasChanges
	hasDigest
	hasModified
	hasETag
	hasMore
	hasEvery
	hasMissing
	hasQueued
	hasKind
	hasEnded
	hasTenure
	hasFrom
	hasContent
)

const maxETag = 256

// appendMeta appends m; nothing if m is empty.
func appendMeta(b []byte, m *Meta, born int64) []byte {
	at, has := len(b), uint16(0)
	b = append(b, 0, 0)
	set := func(bit uint16, yes bool) bool {
		if yes {
			has |= bit
		}
		return yes
	}
	when := func(bit uint16, t time.Time) {
		if set(bit, !t.IsZero()) {
			b = binary.AppendVarint(b, t.Unix()-born)
		}
	}
	count := func(bit uint16, n int) {
		if set(bit, n > 0) {
			b = binary.AppendUvarint(b, uint64(n))
		}
	}
	when(hasFetched, m.Fetched)
	when(hasDue, m.Due)
	count(hasStatus, m.Status)
	count(hasChanges, m.Changes)
	if set(hasDigest, m.Digest != [20]byte{}) {
		b = append(b, m.Digest[:]...)
	}
	when(hasModified, m.Modified)
	count(hasEvery, int(m.Every/time.Second))
	count(hasMissing, m.Missing)
	when(hasQueued, m.Queued)
	if set(hasKind, m.Kind > 0) {
		b = append(b, m.Kind)
	}
	set(hasEnded, m.Ended)
	count(hasTenure, m.Tenure)
	if set(hasFrom, m.From != "") {
		b = append(binary.AppendUvarint(b, uint64(len(m.From))), m.From...)
	}
	if set(hasContent, m.Content != 0) {
		b = binary.LittleEndian.AppendUint64(b, m.Content)
	}
	if set(hasETag, m.ETag != "" && len(m.ETag) <= maxETag) {
		b = append(b, m.ETag...)
	}
	switch {
	case has == 0:
		return b[:at]
	case has < hasEvery:
		b = slices.Delete(b, at+1, at+2)
	default:
		has |= hasMore
		b[at+1] = byte(has >> 8)
	}
	b[at] = byte(has)
	return b
}

func readMeta(b []byte, born int64) (m Meta, ok bool) {
	if len(b) == 0 {
		return m, true
	}
	has, in := uint16(b[0]), varint.Reader{Rest: b[1:]}
	if has&hasMore != 0 {
		has |= uint16(in.Byte()) << 8
	}
	when := func(bit uint16, t *time.Time) {
		if has&bit != 0 {
			*t = time.Unix(born+in.Int(), 0).UTC()
		}
	}
	count := func(bit uint16, n *int) {
		if has&bit != 0 {
			*n = int(in.Uint())
		}
	}
	when(hasFetched, &m.Fetched)
	when(hasDue, &m.Due)
	count(hasStatus, &m.Status)
	count(hasChanges, &m.Changes)
	if has&hasDigest != 0 {
		in.Bad = in.Bad || len(in.Rest) < len(m.Digest)
		in.Rest = in.Rest[copy(m.Digest[:], in.Rest):]
	}
	when(hasModified, &m.Modified)
	if has&hasEvery != 0 {
		m.Every = time.Duration(in.Uint()) * time.Second
	}
	count(hasMissing, &m.Missing)
	when(hasQueued, &m.Queued)
	if has&hasKind != 0 {
		m.Kind = in.Byte()
	}
	m.Ended = has&hasEnded != 0
	count(hasTenure, &m.Tenure)
	if has&hasFrom != 0 {
		m.From = in.String()
	}
	if has&hasContent != 0 {
		m.Content = in.Fixed()
	}
	if has&hasETag != 0 {
		m.ETag = string(in.Rest)
	}
	return m, !in.Bad
}

// AppendMeta appends m with its length before it. Times are encoded relative to base, a Unix time: the nearer, the
// shorter.
func AppendMeta(b []byte, m *Meta, base int64) []byte {
	at := len(b)
	b = appendMeta(b, m, base)
	var n [binary.MaxVarintLen64]byte
	return slices.Insert(b, at, n[:binary.PutUvarint(n[:], uint64(len(b)-at))]...)
}

// ReadMeta decodes the result of AppendMeta, and returns the bytes after it; ok is false if b is invalid.
func ReadMeta(b []byte, base int64) (m Meta, rest []byte, ok bool) {
	in := varint.Reader{Rest: b}
	m, ok = readMeta(in.Bytes(), base)
	return m, in.Rest, ok && !in.Bad
}

// joinMeta returns newer, with missing fields from older. The result is one of the two or a new slice.
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

// keep sets *v to was if it is zero.
func keep[T comparable](v *T, was T) {
	var zero T
	if *v == zero {
		*v = was
	}
}
