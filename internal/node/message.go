package node

import (
	"bytes"
	"context"

	"kumo/internal/member"
	"kumo/internal/strategy"
)

// message is told of a message; data is its sender's. It is called by one goroutine.
func (n *Node) message(ctx context.Context, from strategy.Node, data []byte) {
	kind, data, err := open(data, n.cfg.Crawl)
	if err != nil {
		n.refuse(from, err)
		return
	}
	switch kind {
	case kindMember:
		if n.executor.full(data) {
			return
		}
		n.tell(ctx, member.Message{From: from, Data: bytes.Clone(data)})
	case kindStrategy:
		if n.driver != nil {
			n.driver.tell(ctx, strategy.Message{From: from, Data: bytes.Clone(data)})
		}
	case kindLinks:
		n.links.take(from, data, false)
	case kindLegacy:
		if n.executor.heir.Load() == nil { // who leaves, too, takes nothing any more
			n.links.take(from, data, true)
		}
	case kindTaken:
		n.links.answered(from, data)
	case kindAsk:
		data = bytes.Clone(data)
		n.call(ctx, func() { n.ending.asked(from, data) })
	case kindTally:
		data = bytes.Clone(data)
		n.call(ctx, func() { n.ending.answered(from, data) })
	case kindKnow:
		n.askedKnown(from, bytes.Clone(data))
	default: // a newer kumo's, which says no more than this one understands
	}
}

// maxRefused bounds how many senders are remembered whose messages were refused.
const maxRefused = 1000

// refuse says once that another node speaks otherwise.
func (n *Node) refuse(from strategy.Node, err error) {
	if n.refused[from] || len(n.refused) >= maxRefused {
		return
	}
	n.refused[from] = true
	n.log.Warn("messages of a node are refused", "from", from, "why", err)
}
