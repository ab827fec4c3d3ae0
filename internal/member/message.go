package member

import (
	"encoding/binary"
	"errors"

	"kumo/internal/strategy"
)

// Messages between members, each a byte that says which, then its fields: numbers as varints, strings and lists with their length
// before them.
const (
	msgChunk  = 'c' // a chunk of a transfer
	msgAck    = 'a' // what was taken of it
	msgAsk    = 'q' // what has come whole from a node?
	msgAnswer = 'r'
)

var errMessage = errors.New("a message that is not as members write them")

type chunkMsg struct {
	t    Transfer
	seq  uint64
	last bool
	data []byte
}

// An ackMsg says which chunk is wanted next; whole, that none is.
type ackMsg struct {
	t       Transfer
	next    uint64
	whole   bool
	process uint64 // the receiver's, greater with each: a new one wants the first chunk again
}

// An askMsg asks, under an epoch, what came whole from a node to another since the last settled epoch. The one asked is that other or
// folds its estate.
type askMsg struct {
	from, to strategy.Node
	epoch    uint64
}

type answerMsg struct {
	askMsg
	epochs []uint64 // under which something came whole
}

type writer []byte

func (w *writer) uint(n uint64) { *w = binary.AppendUvarint(*w, n) }
func (w *writer) bytes(b []byte) {
	w.uint(uint64(len(b)))
	*w = append(*w, b...)
}
func (w *writer) node(n strategy.Node) { w.bytes([]byte(n)) }
func (w *writer) bool(v bool) {
	b := byte(0)
	if v {
		b = 1
	}
	*w = append(*w, b)
}

func (w *writer) transfer(t Transfer) {
	w.node(t.From)
	w.node(t.To)
	w.uint(t.Epoch)
	w.uint(t.Attempt)
}

// A reader reads fields; after the first that is not there all are zero and bad is set.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) uint() uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *reader) bytes() []byte {
	n := r.uint()
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) node() strategy.Node { return strategy.Node(r.bytes()) }

func (r *reader) bool() bool {
	if len(r.b) == 0 {
		r.bad = true
		return false
	}
	v := r.b[0] != 0
	r.b = r.b[1:]
	return v
}

func (r *reader) transfer() Transfer {
	return Transfer{From: r.node(), To: r.node(), Epoch: r.uint(), Attempt: r.uint()}
}

func (m chunkMsg) encode() []byte {
	w := make(writer, 0, len(m.data)+len(m.t.From)+len(m.t.To)+32)
	w = append(w, msgChunk)
	w.transfer(m.t)
	w.uint(m.seq)
	w.bool(m.last)
	w.bytes(m.data)
	return w
}

func (m ackMsg) encode() []byte {
	w := writer{msgAck}
	w.transfer(m.t)
	w.uint(m.next)
	w.bool(m.whole)
	w.uint(m.process)
	return w
}

func (m askMsg) encode() []byte {
	w := writer{msgAsk}
	m.fields(&w)
	return w
}

func (m askMsg) fields(w *writer) {
	w.node(m.from)
	w.node(m.to)
	w.uint(m.epoch)
}

func (m answerMsg) encode() []byte {
	w := writer{msgAnswer}
	m.fields(&w)
	w.uint(uint64(len(m.epochs)))
	for _, e := range m.epochs {
		w.uint(e)
	}
	return w
}

// decode reads a message: one of the four types.
func decode(data []byte) (any, error) {
	if len(data) == 0 {
		return nil, errMessage
	}
	r := reader{b: data[1:]}
	var msg any
	switch data[0] {
	case msgChunk:
		msg = chunkMsg{t: r.transfer(), seq: r.uint(), last: r.bool(), data: r.bytes()}
	case msgAck:
		msg = ackMsg{t: r.transfer(), next: r.uint(), whole: r.bool(), process: r.uint()}
	case msgAsk:
		msg = r.ask()
	case msgAnswer:
		msg = r.answer()
	default:
		return nil, errMessage
	}
	if r.bad || len(r.b) > 0 {
		return nil, errMessage
	}
	return msg, nil
}

func (r *reader) ask() askMsg { return askMsg{from: r.node(), to: r.node(), epoch: r.uint()} }

func (r *reader) answer() answerMsg {
	m := answerMsg{askMsg: r.ask()}
	n := r.uint()
	if n > uint64(len(r.b)) { // each has a byte or more
		r.bad = true
		return m
	}
	for range n {
		m.epochs = append(m.epochs, r.uint())
	}
	return m
}

// A Lease is what a node's lease says.
type Lease struct {
	Instance uint64
	Beat     uint64 // renewals by this instance
	Done     uint64 // the epoch under which the node has all that is its own, and nothing of others'
	Revoked  bool
	Report   []byte // as the node has given it
}

// Encode is the lease as the registry has it.
func (l *Lease) Encode() []byte {
	w := make(writer, 0, len(l.Report)+40)
	w = append(w, 1) // the version
	w.uint(l.Instance)
	w.uint(l.Beat)
	w.uint(l.Done)
	w.bool(l.Revoked)
	w.bytes(l.Report)
	return w
}

// ParseLease reads a lease as the registry has it.
func ParseLease(value []byte) (Lease, error) {
	r := reader{b: value}
	if len(value) == 0 || value[0] != 1 {
		return Lease{}, errMessage
	}
	r.b = r.b[1:]
	l := Lease{Instance: r.uint(), Beat: r.uint(), Done: r.uint(), Revoked: r.bool(), Report: r.bytes()}
	if r.bad || len(r.b) > 0 {
		return Lease{}, errMessage
	}
	return l, nil
}
