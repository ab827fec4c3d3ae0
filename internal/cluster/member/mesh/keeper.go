package mesh

import (
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
)

// A keeper is a node that has copies of a node's lists of pages at risk.
type keeper struct {
	has     map[string]int64 // sizes that it has acknowledged; nil: none
	number  uint64           // of the unacknowledged message; 0: none
	at      time.Time        // time of the last message
	tries   int              // times that it was sent
	reading bool             // a piece is being read
	changed bool             // the set of lists has changed since
	excused bool             // it has answered that it need not have them for now
}

func (k *keeper) hasAll(sizes map[string]int64) bool {
	for name, size := range sizes {
		if k.has[name] < size {
			return false
		}
	}
	return k.has != nil
}

// acknowledged processes a keeper's answer. It reports false if the answer is not to the last message.
func (k *keeper) acknowledged(number uint64, has map[string]int64, over bool) bool {
	if k.number != number {
		return false
	}
	k.has, k.number, k.excused = has, 0, over
	return true
}

// A riskSender sends lists of pages at risk to keepers, a piece at a time: messageRisks.
type riskSender struct {
	core    *core
	reading map[uint64]func(RiskRead)
}

// send sends a keeper the parts that it lacks of the lists of a node: this node, or a node that has been missing for a
// while.
func (s *riskSender) send(n strategy.Node, k *keeper, of strategy.Node, sizes map[string]int64, missed time.Duration) {
	since := s.core.now.Sub(k.at)
	if k.reading || k.excused && since < riskBeat || k.number > 0 && since < min(riskEvery<<min(k.tries-1, 3), riskBeat) {
		return
	}
	if k.excused { // it may need them now
		k.excused, k.has, k.changed = false, nil, true
	}
	own := of == s.core.self
	msg := risksMessage{of: of, missed: missed, names: sortedKeys(sizes)}
	for i, name := range msg.names {
		from := k.has[name]
		if k.has == nil || from == sizes[name] || from > sizes[name] && !own {
			continue
		}
		if from > sizes[name] { // this node has lost the end of the list
			from, msg.rewrite = 0, true
		}
		s.sendPiece(n, k, msg, i, from)
		return
	}
	if k.changed || k.number > 0 || own && since >= riskBeat {
		s.sendTo(n, k, msg)
	}
}

// sendPiece reads a piece of a list from a position on, and sends it.
func (s *riskSender) sendPiece(n strategy.Node, k *keeper, msg risksMessage, list int, from int64) {
	k.reading = true
	id := s.core.number()
	s.reading[id] = func(e RiskRead) {
		if k.reading = false; len(e.Data) == 0 {
			return // it was dropped in the meantime
		}
		msg.piece, msg.at, msg.data = list, from, e.Data
		s.sendTo(n, k, msg)
	}
	s.core.do(ReadRisk{ID: id, Node: msg.of, Name: msg.names[list], From: from, Most: riskPiece})
}

// sendTo sends a message to a keeper. A repeated message keeps its number, so that a slow answer still counts.
func (s *riskSender) sendTo(n strategy.Node, k *keeper, msg risksMessage) {
	if k.number == 0 {
		k.number, k.tries = s.core.number(), 0
	}
	k.at, k.changed = s.core.now, false
	k.tries++
	msg.number = k.number
	s.post(n, msg)
}

func (s *riskSender) post(n strategy.Node, msg risksMessage) {
	if msg.of == s.core.self {
		msg.of = ""
	}
	s.core.do(Send{To: n, Data: msg.encode()})
}

// A risksMessage names the lists of a node, with a piece of one of them.
type risksMessage struct {
	number  uint64
	of      strategy.Node // "": the sender
	missed  time.Duration // how long that node has been missing
	names   []string
	piece   int  // index of the piece's list in names
	rewrite bool // the keeper's copy differs from the node's list
	at      int64
	data    []byte
}

func (msg *risksMessage) encode() []byte {
	w := varint.Writer{messageRisks}
	w.Uint(msg.number)
	w.String(string(msg.of))
	w.Uint(uint64(msg.missed / time.Millisecond))
	w.Uint(uint64(len(msg.names)))
	for _, name := range msg.names {
		w.String(name)
	}
	w.Uint(uint64(msg.piece))
	w.Bool(msg.rewrite)
	w.Uint(uint64(msg.at))
	w.Bytes(msg.data)
	return w
}

func readRisks(r *varint.Reader) (msg risksMessage, err error) {
	msg.number, msg.of = r.Uint(), strategy.Node(r.String())
	msg.missed = time.Duration(r.Uint()%(1<<40)) * time.Millisecond
	n := r.Uint()
	// copies of a node's lists are files with the node's name
	if n > maxRisks || msg.of != "" && bus.CheckNode(msg.of) != nil {
		return msg, errMessage
	}
	for range n {
		name := r.String()
		if r.Bad || name == "" || len(name) > maxName {
			return msg, errMessage
		}
		msg.names = append(msg.names, name)
	}
	piece := r.Uint()
	msg.rewrite = r.Bool()
	at := r.Uint()
	msg.data = r.Bytes()
	if !r.Complete() || at > 1<<50 || len(msg.data) > riskPiece || len(msg.data) > 0 && piece >= n {
		return msg, errMessage
	}
	msg.piece, msg.at = int(piece), int64(at)
	return msg, nil
}
