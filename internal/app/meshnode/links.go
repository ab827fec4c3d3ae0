package meshnode

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"kumo/internal/app/meshnode/control"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/member/peer"
	"kumo/internal/cluster/overlay"
	"kumo/internal/cluster/strategy"
	"kumo/internal/state/history"
)

// The first byte of a message says what the rest is.
const (
	kindPeer  = 'p' // a peer's
	kindOffer = 'o' // links that its sender has found: the number of the batch, the batch
	kindKnow  = 'k' // URLs of which the sender wants to know whether they are known: a number, hosts and hashes
	kindKnown = 'w' // the answer: the number, a byte for each

	kindCount   = 'b' // rules of which the sender wants to know what they would leave out: a number, rules
	kindCounted = 'B' // the answer: the number, JSON; nothing where it cannot be said
	// the number of a batch, and which of its links were refused: how far each lies behind the one before
	kindAnswer = 'a'
)

func (n *Node) send(to strategy.Node, kind byte, data []byte) {
	// may be lost, as any message
	n.sent.Add(int64(1 + len(data)))
	if err := n.cfg.Messenger.Send(to, append([]byte{kind}, data...)); err != nil {
		n.log.Debug("a message is not sent", "to", to, "err", err)
	}
}

// pump offers links to those who remember them, and ends a node that has left once none is left.
func (n *Node) pump() {
	if n.leaving && !n.left && n.hasNobody() {
		n.stop(ErrAlone)
	}
	e := n.engine()
	if e == nil {
		if n.left {
			n.stop(ErrLeft)
		}
		return
	}
	now := time.Now()
	for _, b := range e.Batches(now, n.peer.Machine().First) {
		if b.To == n.self {
			n.offered(n.self, b.Number, b.Data)
			continue
		}
		n.send(b.To, kindOffer, append(binary.AppendUvarint(nil, b.Number), b.Data...))
	}
	if hosts, _ := e.Wanted(); len(hosts) > 0 {
		n.tell(mesh.Wanted{Hosts: hosts})
	}
	if links, _ := e.Outbox(); n.left && links == 0 {
		n.stop(ErrLeft)
	}
}

// receive takes messages in until ctx ends.
func (n *Node) receive(ctx context.Context) error {
	err := n.cfg.Messenger.Receive(ctx, func(from strategy.Node, data []byte) {
		if len(data) == 0 || n.full() {
			return // who sent it sends it again
		}
		kind, data := data[0], slices.Clone(data[1:])
		switch kind {
		case kindPeer:
			n.tell(peer.Message{From: n.contact(from), Data: data})
		case kindOffer:
			if number, size := binary.Uvarint(data); size > 0 {
				n.offered(from, number, data[size:])
			}
		case kindAnswer:
			n.answered(from, data)
		case kindKnow:
			n.askedKnown(from, data)
		case kindKnown:
			n.heardKnown(from, data)
		case kindCount:
			n.askedCount(from, data)
		case kindCounted:
			n.heardCount(from, data)
		case control.KindQuestion:
			n.run("answer a question", func(ctx context.Context) error { n.server.Asked(ctx, from, data); return nil })
		default: // a newer kumo's
		}
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (n *Node) contact(node strategy.Node) overlay.Contact {
	c := n.cfg.Contact(node)
	c.Node = string(node)
	return c
}

// offered has links claimed that a node has found. data is kept.
func (n *Node) offered(from strategy.Node, number uint64, data []byte) {
	o := mesh.Offered{From: from, Number: number}
	err := n.cfg.Read(data, func(host, key string, link []byte) {
		o.Links = append(o.Links, mesh.HostLink{Host: host,
			Link: mesh.Link{Hash: mesh.Hash(history.HashOf(key)), Item: link}})
	})
	switch {
	case errors.Is(err, ErrNotYet):
		return // who sent it sends it again
	case err != nil:
		n.complain(from, fmt.Errorf("read links: %w", err))
		return
	}
	n.tell(o)
}

// answer says what became of links that were offered.
func (n *Node) answer(a mesh.Answer) {
	if a.To == n.self {
		n.engine().Answered(n.self, a.Number, a.Refused, time.Now())
		return
	}
	slices.Sort(a.Refused)
	n.send(a.To, kindAnswer, member.AppendAnswer(nil, a.Number, a.Refused))
}

func (n *Node) answered(from strategy.Node, data []byte) {
	number, refused, err := member.ReadAnswer(data)
	if err != nil {
		n.complain(from, err)
		return
	}
	if e := n.engine(); e != nil {
		e.Answered(from, number, refused, time.Now())
	}
}

// complain logs, once a minute, that what a node has sent cannot be read.
func (n *Node) complain(from strategy.Node, err error) {
	n.mu.Lock()
	due := n.complaints.Due(from, time.Now())
	n.mu.Unlock()
	if due {
		n.log.Warn("a message that cannot be read", "from", from, "err", err)
	}
}
