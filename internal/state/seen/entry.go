package seen

import (
	"encoding/binary"
	"time"
)

// An Entry is what is known of a URL.
type Entry struct {
	URL   string
	State State     // Unknown if it was noted and never offered
	Depth int32     // the least at which it was met in this state
	First time.Time // when it was first met, to the minute
	Meta
}

// Meta is what visits have found, in whole seconds. Zero fields leave what earlier visits found; but Modified and ETag
// belong to Digest, and Every and Missing to Due: with it, they replace what was known even if they are zero.
type Meta struct {
	Fetched  time.Time // the last visit
	Due      time.Time // the next one
	Modified time.Time // Last-Modified
	ETag     string
	Digest   [20]byte      // of the body
	Content  uint64        // page.Record.Content of the body with that digest
	Status   int           // HTTP status
	Changes  int           // how often the body was another one than before
	Every    time.Duration // from the last visit to the next
	Missing  int           // visits in a row that found nothing there
	Queued   time.Time     // when it was last taken for a recrawl
	Kind     uint8         // of the link that led to it, a page.Kind
	From     string        // the page that named it, in a crawl with recrawls; "" for a seed
	Ended    bool          // it was left out when its turn came, or given up: nothing of it waits
	Tenure   int           // how often its host had been given away when it was taken in last
}

// Answered reports whether the last visit was answered: the URL counts as a page.
func (m *Meta) Answered() bool { return !m.Fetched.IsZero() && m.Status > 0 }

// Over reports whether the URL was fetched, or has failed, or was left out or given up.
func (m *Meta) Over() bool { return m.Ended || !m.Fetched.IsZero() }

// Waits reports whether a recrawl that the URL was taken for is still to come.
func (m *Meta) Waits() bool { return !m.Queued.IsZero() && !m.Due.After(m.Queued) }

// What an entry's value begins with: two bits for the state, one that says whether there is meta, five for the depth;
// then what is left of the depth, the minute of First, and the meta.
const (
	stateBits = 3
	metaBit   = 4
	depthAt   = 3
	depthMost = 31
)

// A record is an entry as the database handles it: an Entry's Meta encoded, times counted from when the database was
// made.
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

// readRecord reads a value. Its meta points into b.
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

// join adds what an older record says. The zero record says nothing.
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

// emptyRecord is what join starts from.
func emptyRecord() record { return record{first: ^uint32(0)} }

// mergeValues is join for values on the disk. Checksums have made sure that they are what was written.
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
	return a.append(make([]byte, 0, len(a.meta)+12)) // the meta may be part of newer
}
