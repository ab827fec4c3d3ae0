package hub

import (
	"errors"
	"maps"
	"slices"

	"kumo/internal/strategy"
	"kumo/internal/strategy/hub/hosttable"
	"kumo/internal/varint"
)

// The log is the control unit's memory, which outlives it. An entry begins with the term, the epoch and the node that
// wrote it; then come records. A new control unit's first entry has none: because who writes must have read all that is
// there, nobody of an earlier term can write anything after it. Nor may who knows only of an earlier epoch than there
// is: a node that was given up for dead may find out late, and takes those who came since for nobody.
//
// There is no snapshot beside the log. Instead each entry carries, beside what has changed, some parts of the table as
// they are then, about as many bytes as the changes have, one part after the other in a circle. Whoever reads from the
// beginning of a whole circle has the table. What is older is trimmed. So the log is never longer than a few times the
// table, and nothing ever stops to write it down.
const (
	recordRow  = 'r' // one host's row
	recordPart = 'p' // a part of the table
	recordNote = 'n' // why a host is parked
)

var errLog = errors.New("an entry of the control unit's log that cannot be read")

// A batch is rows that are written together, and what is answered when they are durable.
type batch struct {
	rows    map[string]hosttable.Row
	notes   map[string]note
	order   []string
	answers []answer
	sealed  bool  // it was written, or tried to be
	parts   []int // of the table, that were written with it
}

// An answer waits for a batch to be durable.
type answer struct {
	to strategy.Node
	it item
}

// maxBatch is how many rows an entry has at most: less than half of what a log's entry may have, with the longest of
// names and notes.
const maxBatch = 2000

// entry is what is written for a batch; nil: for a new term.
func (u *controller) entry(b *batch, term uint64) []byte {
	var w varint.Writer
	w.Uint(term)
	w.Uint(u.epoch)
	w.String(string(u.cfg.Self))
	if b == nil {
		return w
	}
	if len(b.parts) > 0 { // it is written once more, as it was
		u.part, b.parts = b.parts[0], nil
	}
	var rows varint.Writer
	for _, host := range b.order {
		appendRow(&rows, host, b.rows[host])
		if n, noted := b.notes[host]; noted {
			appendNote(&rows, host, n)
		}
	}
	for left := len(rows); left > 0 && len(w) < maxEntry; { // parts first: they do not have these rows yet
		before := len(w)
		w.Byte(recordPart)
		w.Uint(uint64(u.part))
		w.Bytes(u.table.AppendPart(nil, u.part))
		b.parts = append(b.parts, u.part)
		for _, host := range slices.Sorted(maps.Keys(u.notes[u.part])) {
			appendNote(&w, host, u.notes[u.part][host])
		}
		u.part = (u.part + 1) % hosttable.Parts
		left -= len(w) - before
	}
	return append(w, rows...)
}

const maxEntry = 3 << 19

func appendRow(w *varint.Writer, host string, r hosttable.Row) {
	w.Byte(recordRow)
	w.String(host)
	w.String(string(r.Owner))
	w.Byte(r.State)
	w.Byte(r.Round)
	w.Uint(uint64(r.Since))
}

// A header says who wrote an entry.
type header struct {
	term  uint64
	epoch uint64
	by    strategy.Node
}

// apply takes an entry of the log in.
func (u *controller) apply(number uint64, data []byte) (header, error) {
	return readEntry(data, reading{
		row:  func(host string, r hosttable.Row) { u.enter(host, r, nil) },
		note: func(host string, n note) { u.note(host, &n) },
		part: func(part int, rows []byte) error {
			if err := u.table.LoadPart(rows); err != nil {
				return err
			}
			u.written[part] = number
			delete(u.notes, part) // those that there are follow
			u.part = (part + 1) % hosttable.Parts
			return nil
		},
	})
}

// reading is what is done with the records of an entry.
type reading struct {
	row  func(host string, r hosttable.Row)
	note func(host string, n note)
	part func(part int, rows []byte) error
}

func readEntry(data []byte, do reading) (header, error) {
	r := varint.Reader{Rest: data}
	h := header{r.Uint(), r.Uint(), strategy.Node(r.String())}
	for !r.Bad && len(r.Rest) > 0 {
		switch r.Byte() {
		case recordRow:
			host := r.String()
			row := hosttable.Row{Owner: strategy.Node(r.String()), State: r.Byte(), Round: r.Byte(), Since: uint32(r.Uint())}
			if !r.Bad {
				do.row(host, row)
			}
		case recordNote:
			host, n := r.String(), readNote(&r)
			if !r.Bad {
				do.note(host, n)
			}
		case recordPart:
			part, rows := r.Uint(), r.Bytes()
			if r.Bad || part >= hosttable.Parts || do.part(int(part), rows) != nil {
				return h, errLog
			}
		default:
			return h, errLog
		}
	}
	if r.Bad {
		return h, errLog
	}
	return h, nil
}

// trim drops what nobody needs any more, once a circle.
func (u *controller) trim() {
	least := u.written[0]
	for _, n := range u.written {
		least = min(least, n)
	}
	if least > u.trimmed {
		u.trimmed = least
		u.do(strategy.Trim{Before: least})
	}
}

// A note says why a host is parked: who has failed to reach it, and when it will be tried again.
type note struct {
	failed []strategy.Node
	again  uint64 // seconds of Unix time
}

func appendNote(w *varint.Writer, host string, n note) {
	w.Byte(recordNote)
	w.String(host)
	w.Uint(n.again)
	w.Uint(uint64(len(n.failed)))
	for _, f := range n.failed {
		w.String(string(f))
	}
}

func readNote(r *varint.Reader) (n note) {
	n.again = r.Uint()
	for left := r.Uint(); left > 0 && !r.Bad; left-- {
		n.failed = append(n.failed, strategy.Node(r.String()))
	}
	return n
}

// enter changes a host's row in the table.
func (u *controller) enter(host string, r hosttable.Row, n *note) {
	u.table.Set(host, r)
	if r.State != rowParked {
		n = nil
	}
	u.note(host, n)
}

// note notes why a host is parked; nil: it is not.
func (u *controller) note(host string, n *note) {
	part := u.table.Part(host)
	switch {
	case n == nil:
		delete(u.notes[part], host)
	case u.notes[part] == nil:
		u.notes[part] = map[string]note{host: *n}
	default:
		u.notes[part][host] = *n
	}
}
