package seen

import (
	"encoding/binary"
	"time"
)

// An Entry is the data about a URL.
type Entry struct {
	URL   string
	State State     // Unknown if it has metadata but was never offered
	Depth int32     // the least at which it was met in this state
	First time.Time // when the URL was first met, to the minute
	Meta
}

// Meta is the result of visits, with times in whole seconds. Zero fields keep the values of earlier visits. But
// Modified and ETag belong to Digest, and Every and Missing to Due: with it, they replace the earlier values even if
// they are zero.
type Meta struct {
	Fetched  time.Time // the last visit
	Due      time.Time // the next one
	Modified time.Time // Last-Modified
	ETag     string
	Digest   [20]byte      // of the body
	Content  uint64        // page.Record.Content of the body with that digest
	Status   int           // HTTP status
	Changes  int           // how often the body was another one than before
	Every    time.Duration // interval between the last visit and the next
	Missing  int           // visits in a row that did not find the page
	Queued   time.Time     // time of the last recrawl's queueing
	Kind     uint8         // of the link that led to it, a page.Kind
	From     string        // page that linked to it, in a crawl with recrawls; "" for a seed
	Ended    bool          // filtered at its visit, or abandoned: it is not pending any more
	Tenure   int           // the host's tenure when the URL was last queued: how often the host had been released
}

// Answered reports whether the last visit was answered: then the URL counts as a page.
func (m *Meta) Answered() bool { return !m.Fetched.IsZero() && m.Status > 0 }

// Over reports whether the URL was fetched, has failed, or was filtered or abandoned.
func (m *Meta) Over() bool { return m.Ended || !m.Fetched.IsZero() }

// Waits reports whether a recrawl of the URL is queued and has not been done.
func (m *Meta) Waits() bool { return !m.Queued.IsZero() && !m.Due.After(m.Queued) }

// The first byte of an entry's value: two bits for the state, one if there is metadata, five for the depth. The rest of
// the depth, the minute of First and the metadata follow.
const (
	stateBits = 3
	metaBit   = 4
	depthAt   = 3
	depthMost = 31
)

// A record is an Entry in the database's form: with encoded Meta, and times since the creation of the database.
type record struct {
	entry
	first uint32 // minutes
	meta  []byte
}

func (r *record) append(b []byte) []byte {
	head := byte(r.state) | byte(min(uint32(r.depth), depthMost))<<depthAt
	if len(r.meta) > 0 {
		head |= metaBit
	}
	b = append(b, head)
	if head>>depthAt == depthMost {
		b = binary.AppendUvarint(b, uint64(uint32(r.depth)-depthMost))
	}
	b = binary.AppendUvarint(b, uint64(r.first))
	return append(b, r.meta...)
}

// readRecord decodes a value. Its meta points into b.
func readRecord(b []byte) (r record, ok bool) {
	if len(b) == 0 || b[0]&stateBits > byte(Known) {
		return r, false
	}
	head, depth := b[0], uint64(b[0]>>depthAt)
	b = b[1:]
	if depth == depthMost {
		more, n := binary.Uvarint(b)
		if n <= 0 {
			return r, false
		}
		depth, b = depth+more, b[n:]
	}
	first, n := binary.Uvarint(b)
	if n <= 0 {
		return r, false
	}
	r = record{entry: entry{State(head & stateBits), int32(uint32(depth))}, first: uint32(first)}
	if head&metaBit != 0 {
		r.meta = b[n:]
	}
	return r, true
}

// join adds the data of an older record. The zero record has none.
func (r *record) join(older record) {
	switch {
	case r.state < older.state:
		r.entry = older.entry
	case r.state == older.state:
		r.depth = min(r.depth, older.depth)
	}
	r.first = min(r.first, older.first)
	r.meta = joinMeta(r.meta, older.meta)
}

// emptyRecord returns the neutral element of join.
func emptyRecord() record { return record{first: ^uint32(0)} }

// mergeValues is join for values on disk, which are valid, as their checksums are.
func mergeValues(newer, older []byte) []byte {
	a, okA := readRecord(newer)
	b, okB := readRecord(older)
	switch {
	case !okB:
		return newer
	case !okA:
		return append(newer[:0], older...)
	}
	a.join(b)
	if len(a.meta) == 0 {
		return a.append(newer[:0])
	}
	return a.append(make([]byte, 0, len(a.meta)+12)) // the meta may point into newer
}
