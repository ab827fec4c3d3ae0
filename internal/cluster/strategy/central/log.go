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

// logState is the state that the leader's log stores: the table, the reasons why hosts are parked, and the policy's
// records. Its parts are those of the table, followed by those of the records.
type logState struct {
	table   *hosttable.Table
	reasons map[int]map[string]parkReason // by part
	records leader.State                  // nil: none
}

var _ leader.State = (*logState)(nil)

func newLogState(key hosttable.Key, records leader.State) logState {
	return logState{table: hosttable.New(key), reasons: map[int]map[string]parkReason{}, records: records}
}

// Kinds of changes, which also follow a part of the table.
const (
	recordRow    = 'r' // one host's row
	recordReason = 'n' // why a host is parked; follows its row
	recordPolicy = 'p' // a change of the policy's records
)

var errChanges = errors.New("leader's log: damaged changes")

// A batch is a set of changes that are written together, with the answers to send when they are durable.
type batch struct {
	rows    map[string]hosttable.Row
	reasons map[string]parkReason
	order   []string
	records [][]byte
	answers []answer
	sealed  bool // the batch is being written
}

// An answer is an answer that waits for a batch.
type answer struct {
	to strategy.Node
	it item
}

// maxBatch is the maximum number of changes in an entry. With the longest names and reasons they take less than half of
// the log's limit.
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

// readChanges calls row, note and record with the changes in b.
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

// Parts returns the number of parts, for the log.
func (s *logState) Parts() int {
	if s.records == nil {
		return hosttable.Parts
	}
	return hosttable.Parts + s.records.Parts()
}

// AppendPart appends a part of the table with its park reasons, or a part of the records.
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

// LoadPart replaces a part.
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

// Apply applies changes of rows, reasons and records.
func (s *logState) Apply(changes []byte) error {
	return readChanges(changes, s.setRow, s.setReason, func(change []byte) error {
		if s.records == nil {
			return errChanges
		}
		return s.records.Apply(change)
	})
}

// setRow sets a host's row in the table.
func (s *logState) setRow(host string, r hosttable.Row) {
	s.table.Set(host, r)
	delete(s.reasons[s.table.Part(host)], host) // its reason follows the row
}

// A parkReason lists the nodes that could not reach a parked host, and when it is tried again.
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
