package quorum

import (
	"errors"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// Messages between members start with a byte for their kind. Their fields follow: numbers as varints, strings and lists
// preceded by their length.
const (
	msgChunk  = 'c' // a chunk of a transfer
	msgAck    = 'a' // acknowledged chunks of it
	msgQuery  = 'q' // query of the complete transfers from a node
	msgAnswer = 'r'
)

var errMessage = errors.New("invalid message between members")

type chunkMsg struct {
	t    member.Transfer
	seq  uint64
	last bool
	data []byte
}

// An ackMsg acknowledges the chunks before next, or, if complete is set, the whole transfer.
type ackMsg struct {
	t        member.Transfer
	next     uint64
	complete bool
	process  uint64 // of the receiver, greater with each process: a new one needs the first chunk again
}

// A queryMsg queries, under an epoch, the complete transfers from a node to another since the last finalized epoch. Its
// receiver is the other node or its takeover node.
type queryMsg struct {
	from, to strategy.Node
	epoch    uint64
}

type answerMsg struct {
	queryMsg
	epochs []uint64 // of complete transfers
}

// A writer adds the fields of members' messages to varint.Writer.
type writer struct{ varint.Writer }

func (w *writer) node(n strategy.Node) { w.String(string(n)) }

func (w *writer) transfer(t member.Transfer) {
	w.node(t.From)
	w.node(t.To)
	w.Uint(t.Epoch)
	w.Uint(t.Attempt)
}

// A reader reads them.
type reader struct{ varint.Reader }

func (r *reader) node() strategy.Node { return strategy.Node(r.Bytes()) }

func (r *reader) transfer() member.Transfer {
	return member.Transfer{From: r.node(), To: r.node(), Epoch: r.Uint(), Attempt: r.Uint()}
}

func (m chunkMsg) encode() []byte {
	w := writer{make(varint.Writer, 0, len(m.data)+len(m.t.From)+len(m.t.To)+32)}
	w.Byte(msgChunk)
	w.transfer(m.t)
	w.Uint(m.seq)
	w.Bool(m.last)
	w.Bytes(m.data)
	return w.Writer
}

func (m ackMsg) encode() []byte {
	w := writer{varint.Writer{msgAck}}
	w.transfer(m.t)
	w.Uint(m.next)
	w.Bool(m.complete)
	w.Uint(m.process)
	return w.Writer
}

func (m queryMsg) encode() []byte {
	w := writer{varint.Writer{msgQuery}}
	m.fields(&w)
	return w.Writer
}

func (m queryMsg) fields(w *writer) {
	w.node(m.from)
	w.node(m.to)
	w.Uint(m.epoch)
}

func (m answerMsg) encode() []byte {
	w := writer{varint.Writer{msgAnswer}}
	m.fields(&w)
	w.Uint(uint64(len(m.epochs)))
	for _, e := range m.epochs {
		w.Uint(e)
	}
	return w.Writer
}

// decode decodes a message: one of the four types.
func decode(data []byte) (any, error) {
	if len(data) == 0 {
		return nil, errMessage
	}
	r := reader{varint.Reader{Rest: data[1:]}}
	var msg any
	switch data[0] {
	case msgChunk:
		msg = chunkMsg{t: r.transfer(), seq: r.Uint(), last: r.Bool(), data: r.Bytes()}
	case msgAck:
		msg = ackMsg{t: r.transfer(), next: r.Uint(), complete: r.Bool(), process: r.Uint()}
	case msgQuery:
		msg = r.query()
	case msgAnswer:
		msg = r.answer()
	default:
		return nil, errMessage
	}
	if !r.Complete() {
		return nil, errMessage
	}
	return msg, nil
}

func (r *reader) query() queryMsg { return queryMsg{from: r.node(), to: r.node(), epoch: r.Uint()} }

func (r *reader) answer() answerMsg {
	m := answerMsg{queryMsg: r.query()}
	for range r.Count() {
		m.epochs = append(m.epochs, r.Uint())
	}
	return m
}

// A Lease is the content of a node's lease.
type Lease struct {
	Instance uint64
	Beat     uint64 // renewals by this instance
	Done     uint64 // last epoch under which the node has received all its hosts, and transferred all others
	Revoked  bool
	Proposal        // the node's batch of moves
	Report   []byte // content of the last member.Report
}

// Encode returns the registry value.
func (l *Lease) Encode() []byte {
	w := writer{make(varint.Writer, 0, len(l.Report)+60)}
	w.Byte(leaseVersion)
	w.Uint(l.Instance)
	w.Uint(l.Beat)
	w.Uint(l.Done)
	w.Bool(l.Revoked)
	w.Uint(l.Batch)
	w.Uint(l.Taken)
	w.Uint(uint64(len(l.To)))
	for _, n := range l.To {
		w.node(n)
	}
	w.Bytes(l.Report)
	return w.Writer
}

const leaseVersion = 2

// ParseLease parses a registry value.
func ParseLease(value []byte) (Lease, error) {
	r := reader{varint.Reader{Rest: value}}
	if r.Byte() != leaseVersion {
		return Lease{}, errMessage
	}
	l := Lease{Instance: r.Uint(), Beat: r.Uint(), Done: r.Uint(), Revoked: r.Bool()}
	l.Proposal = Proposal{Batch: r.Uint(), Taken: r.Uint()}
	for left := r.Uint(); left > 0 && !r.Bad; left-- {
		l.To = append(l.To, r.node())
	}
	l.Report = r.Bytes()
	if !r.Complete() {
		return Lease{}, errMessage
	}
	return l, nil
}
