package central

import (
	"errors"
	"maps"
	"slices"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central/hosttable"
	"kumo/internal/cluster/strategy/leader"
)

// logState is what the leader's log keeps: the table, why hosts are parked, and the policy's records. Its parts are the
// table's, and behind them the records'.
type logState struct {
	table   *hosttable.Table
	reasons map[int]map[string]parkReason // by part
	records leader.State                  // nil: none
}

var _ leader.State = (*logState)(nil)

func newHosts(key hosttable.Key, records leader.State) logState {
	return logState{table: hosttable.New(key), reasons: map[int]map[string]parkReason{}, records: records}
}

// What changes are made of, and a part behind the table's.
const (
	recordRow    = 'r' // one host's row
	recordReason = 'n' // why a host is parked; behind its row
	recordPolicy = 'p' // the policy's: bytes
)

var errChanges = errors.New("changes in the leader's log that cannot be read")

// A batch is rows that are written together, and what is answered when they are durable.
type batch struct {
	rows    map[string]hosttable.Row
	reasons map[string]parkReason
	order   []string
	records [][]byte
	answers []answer
	sealed  bool // it is being written
}

// An answer waits for a batch to be durable.
type answer struct {
	to strategy.Node
	it item
}

// maxBatch is how many rows an entry has at most: less than half of what a log's entry may have, with the longest of
// names and notes.
const maxBatch = 2000

func (b *batch) len() int { return len(b.order) + len(b.records) }

func (b *batch) changes() []byte {
	var w varint.Writer
	for _, host := range b.order {
		appendRow(&w, host, b.rows[host])
		if n, noted := b.reasons[host]; noted {
			appendReason(&w, host, n)
		}
	}
	for _, r := range b.records {
		w.Byte(recordPolicy)
		w.Bytes(r)
	}
	return w
}

func appendRow(w *varint.Writer, host string, r hosttable.Row) {
	w.Byte(recordRow)
	w.String(host)
	w.String(string(r.Owner))
	w.Byte(r.State)
	w.Byte(r.Round)
	w.Uint(uint64(r.Since))
}

// readChanges calls row, note and record with what they are made of.
func readChanges(b []byte, row func(host string, r hosttable.Row), note func(host string, n parkReason),
	record func([]byte) error) error {
	r := varint.Reader{Rest: b}
	for len(r.Rest) > 0 {
		switch kind := r.Byte(); kind {
		case recordRow:
			host := r.String()
			is := hosttable.Row{Owner: strategy.Node(r.String()), State: r.Byte(), Round: r.Byte(), Since: uint32(r.Uint())}
			if !r.Bad {
				row(host, is)
			}
		case recordReason:
			host := r.String()
			if n := readReason(&r); !r.Bad {
				note(host, n)
			}
		case recordPolicy:
			if change := r.Bytes(); !r.Bad {
				if err := record(change); err != nil {
					return err
				}
			}
		default:
			return errChanges
		}
	}
	if r.Bad {
		return errChanges
	}
	return nil
}

// Parts, AppendPart, LoadPart and Apply are for the log.
func (s *logState) Parts() int {
	if s.records == nil {
		return hosttable.Parts
	}
	return hosttable.Parts + s.records.Parts()
}

// AppendPart appends a part of the table, and why its hosts are parked; or one of the records.
func (s *logState) AppendPart(b []byte, part int) []byte {
	if part >= hosttable.Parts {
		return s.records.AppendPart(b, part-hosttable.Parts)
	}
	w := varint.Writer(b)
	w.Bytes(s.table.AppendPart(nil, part))
	for _, host := range slices.Sorted(maps.Keys(s.reasons[part])) {
		appendReason(&w, host, s.reasons[part][host])
	}
	return w
}

// LoadPart replaces what is said of a part's hosts.
func (s *logState) LoadPart(part int, b []byte) error {
	if part >= hosttable.Parts {
		return s.records.LoadPart(part-hosttable.Parts, b)
	}
	r := varint.Reader{Rest: b}
	if err := s.table.LoadPart(r.Bytes()); err != nil {
		return err
	}
	delete(s.reasons, part)
	return s.Apply(r.Rest)
}

// Apply changes rows and records.
func (s *logState) Apply(changes []byte) error {
	return readChanges(changes, s.setRow, s.setReason, func(change []byte) error {
		if s.records == nil {
			return errChanges
		}
		return s.records.Apply(change)
	})
}

// setRow changes a host's row in the table.
func (s *logState) setRow(host string, r hosttable.Row) {
	s.table.Set(host, r)
	delete(s.reasons[s.table.Part(host)], host) // why it is parked follows
}

// A note says why a host is parked: who has failed to reach it, and when it will be tried again.
type parkReason struct {
	failed  []strategy.Node
	retryAt uint64 // seconds of Unix time
}

func (s *logState) setReason(host string, n parkReason) {
	part := s.table.Part(host)
	if s.reasons[part] == nil {
		s.reasons[part] = map[string]parkReason{}
	}
	s.reasons[part][host] = n
}

func appendReason(w *varint.Writer, host string, n parkReason) {
	w.Byte(recordReason)
	w.String(host)
	w.Uint(n.retryAt)
	w.Uint(uint64(len(n.failed)))
	for _, f := range n.failed {
		w.String(string(f))
	}
}

func readReason(r *varint.Reader) (n parkReason) {
	n.retryAt = r.Uint()
	for left := r.Uint(); left > 0 && !r.Bad; left-- {
		n.failed = append(n.failed, strategy.Node(r.String()))
	}
	return n
}
