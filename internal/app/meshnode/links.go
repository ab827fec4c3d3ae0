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

// The first byte of a message.
const (
	kindPeer         = 'p' // a message of package peer
	kindOffer        = 'o' // links found by the sender: a batch number, the batch
	kindKnownRequest = 'k' // asks which URLs are known: a number, hosts and hashes
	kindKnownReply   = 'w' // its reply: the number, a byte per URL

	kindQueryRequest = 'y' // a query about the node's part of the crawl: a number, JSON
	kindQueryReply   = 'Y' // its reply: the number, JSON; empty if it failed
	// The reply to an offer: the batch number, and the rejected links, each as the distance from the previous one.
	kindOfferReply = 'a'
)

// messages sends messages to other nodes. It is safe for concurrent use; mu guards warned.
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
	// Messages may be lost anyway.
	m.sent.Add(int64(1 + len(data)))
	if err := m.messenger.Send(to, append([]byte{kind}, data...)); err != nil {
		m.log.Debug("cannot send a message", "to", to, "err", err)
	}
}

func (m *messages) contact(node strategy.Node) overlay.Contact {
	c := m.address(node)
	c.Node = string(node)
	return c
}

// A linkExchange offers the engine's links to the nodes that remember them, and claims the links that others offer. It
// has no state of its own and is safe for concurrent use.
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

// receiveOffer claims links that another node found. It retains data.
func (x *linkExchange) receiveOffer(from strategy.Node, number uint64, data []byte) {
	o := mesh.Offered{From: from, Number: number}
	err := x.read(data, func(host, key string, link []byte) {
		o.Links = append(o.Links, mesh.HostLink{Host: host,
			Link: mesh.Link{Hash: mesh.Hash(history.HashOf(key)), Item: link}})
	})
	switch {
	case errors.Is(err, ErrSettingsUnknown):
		return // the sender will repeat it
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

// warnUnreadable logs that a node's message cannot be read, at most once a minute per node.
func (m *messages) warnUnreadable(from strategy.Node, err error) {
	m.mu.Lock()
	due := m.warned.Allow(from, time.Now())
	m.mu.Unlock()
	if due {
		m.log.Warn("cannot read a message", "from", from, "err", err)
	}
}
