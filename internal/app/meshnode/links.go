package meshnode

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/base/bounded"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/overlay"
	"kumo/internal/cluster/strategy"
	"kumo/internal/state/history"
)

// The first byte of a message says what the rest is.
const (
	kindPeer         = 'p' // a peer's
	kindOffer        = 'o' // links that its sender has found: the number of the batch, the batch
	kindKnownRequest = 'k' // URLs of which the sender wants to know whether they are known: a number, hosts and hashes
	kindKnownReply   = 'w' // the answer: the number, a byte for each

	kindCountRequest = 'b' // rules of which the sender wants to know what they would leave out: a number, rules
	kindCountReply   = 'B' // the answer: the number, JSON; nothing where it cannot be said
	// the number of a batch, and which of its links were refused: how far each lies behind the one before
	kindOfferReply = 'a'
)

// messages send to other nodes. Any goroutine may use them; mu guards complaints.
type messages struct {
	messenger bus.Messenger
	address   func(strategy.Node) overlay.Contact
	log       *slog.Logger
	sent      atomic.Int64 // bytes

	mu     sync.Mutex
	warned *bounded.Throttle[strategy.Node]
}

func newMessages(cfg *Config) *messages {
	return &messages{messenger: cfg.Messenger, address: cfg.Contact, log: cfg.Log,
		warned: bounded.NewThrottle[strategy.Node](time.Minute, 1<<8)}
}

func (m *messages) send(to strategy.Node, kind byte, data []byte) {
	// may be lost, as any message
	m.sent.Add(int64(1 + len(data)))
	if err := m.messenger.Send(to, append([]byte{kind}, data...)); err != nil {
		m.log.Debug("a message is not sent", "to", to, "err", err)
	}
}

func (m *messages) contact(node strategy.Node) overlay.Contact {
	c := m.address(node)
	c.Node = string(node)
	return c
}

// A linkExchange offers the engine's links to the nodes that remember them, and claims those that others offer. It has
// no state of its own: any goroutine may use it.
type linkExchange struct {
	self   strategy.Node
	read   func(data []byte, f func(host, key string, link []byte)) error
	engine *engineRef
	msgs   *messages
	inbox  *inbox
}

// offer sends batches to the nodes that remember their hosts.
func (x *linkExchange) offer(all []member.Batch) {
	for _, b := range all {
		if b.To == x.self {
			x.receiveOffer(x.self, b.Number, b.Data)
			continue
		}
		x.msgs.send(b.To, kindOffer, append(binary.AppendUvarint(nil, b.Number), b.Data...))
	}
}

// receiveOffer claims links that a node has found. It retains data.
func (x *linkExchange) receiveOffer(from strategy.Node, number uint64, data []byte) {
	o := mesh.Offered{From: from, Number: number}
	err := x.read(data, func(host, key string, link []byte) {
		o.Links = append(o.Links, mesh.HostLink{Host: host,
			Link: mesh.Link{Hash: mesh.Hash(history.HashOf(key)), Item: link}})
	})
	switch {
	case errors.Is(err, ErrSettingsUnknown):
		return // who sent it sends it again
	case err != nil:
		x.msgs.warnUnreadable(from, fmt.Errorf("read links: %w", err))
		return
	}
	x.inbox.send(o)
}

func (x *linkExchange) answer(a mesh.Answer) {
	if a.To == x.self {
		x.engine.get().Answered(x.self, a.Number, a.Refused, time.Now())
		return
	}
	slices.Sort(a.Refused)
	x.msgs.send(a.To, kindOfferReply, member.AppendAnswer(nil, a.Number, a.Refused))
}

func (x *linkExchange) receiveReply(from strategy.Node, data []byte) {
	number, refused, err := member.ReadAnswer(data)
	if err != nil {
		x.msgs.warnUnreadable(from, err)
		return
	}
	if e := x.engine.get(); e != nil {
		e.Answered(from, number, refused, time.Now())
	}
}

// warnUnreadable logs, once a minute for each node, that a message cannot be read.
func (m *messages) warnUnreadable(from strategy.Node, err error) {
	m.mu.Lock()
	due := m.warned.Allow(from, time.Now())
	m.mu.Unlock()
	if due {
		m.log.Warn("a message that cannot be read", "from", from, "err", err)
	}
}
