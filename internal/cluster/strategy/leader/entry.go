package leader

import (
	"errors"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
)

// An Entry is an entry of the log. An entry with only a Header starts a term.
type Entry struct {
	Header
	Changes []byte   // to the state before the entry; its parts do not include them
	first   int      // number of the first part
	parts   [][]byte // consecutive parts; after the last part follows part 0
}

// A Header identifies the writer of an entry.
type Header struct {
	Term  uint64
	Epoch uint64 // of members, known to the writer
	By    strategy.Node
}

// ErrEntry is the error of ParseEntry for invalid data.
var ErrEntry = errors.New("leader's log: invalid entry")

// ParseEntry decodes an entry. The result shares memory with data.
func ParseEntry(data []byte) (Entry, error) {
	r := varint.Reader{Rest: data}
	e := Entry{Header: Header{Term: r.Uint(), Epoch: r.Uint(), By: strategy.Node(r.String())}}
	if len(r.Rest) > 0 {
		e.Changes, e.first = r.Bytes(), int(r.Uint()&(1<<31-1))
	}
	for len(r.Rest) > 0 {
		e.parts = append(e.parts, r.Bytes())
	}
	if r.Bad {
		return Entry{}, ErrEntry
	}
	return e, nil
}

func (e *Entry) encode() []byte {
	var w varint.Writer
	w.Uint(e.Term)
	w.Uint(e.Epoch)
	w.String(string(e.By))
	if len(e.parts) > 0 {
		w.Bytes(e.Changes)
		w.Uint(uint64(e.first))
	}
	for _, p := range e.parts {
		w.Bytes(p)
	}
	return w
}

// maxPartBytes bounds the bytes of parts in an entry, except the last part.
const maxPartBytes = 3 << 19

// addParts adds about as many bytes of parts, starting at first, as there are changes, and at least one part.
func (e *Entry) addParts(s State, first int) {
	e.first = first
	for size := 0; len(e.parts) == 0 || size < min(len(e.Changes), maxPartBytes) && len(e.parts) < s.Parts(); {
		p := s.AppendPart(nil, e.part(s, len(e.parts)))
		e.parts = append(e.parts, p)
		size += len(p) + 1
	}
}

// part returns the number of the entry's i-th part.
func (e *Entry) part(s State, i int) int { return (e.first + i) % s.Parts() }

// Load loads an entry into s. After an error s may be partly changed.
func (e *Entry) Load(s State) error {
	if len(e.parts) > s.Parts() {
		return ErrEntry
	}
	for i, p := range e.parts {
		if err := s.LoadPart(e.part(s, i), p); err != nil {
			return err
		}
	}
	if len(e.parts) == 0 {
		return nil
	}
	return s.Apply(e.Changes)
}
