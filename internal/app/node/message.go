package node

import (
	"bytes"
	"context"

	"kumo/internal/cluster/member/driver"
	"kumo/internal/cluster/strategy"
)

// message is told of a message; data is its sender's. It is called by one goroutine.
func (n *Node) message(ctx context.Context, from strategy.Node, data []byte) {
	kind, data, err := open(data, n.cfg.Crawl)
	if err != nil {
		n.refuse(from, err)
		return
	}
	switch kind {
	case kindKnow:
		n.askedKnown(from, bytes.Clone(data))
		return
	case kindCount:
		n.askedCount(from, bytes.Clone(data))
		return
	}
	n.driver.Message(ctx, from, driver.Kind(kind), data)
	if driver.Kind(kind) == driver.KindTaken {
		n.pumpSoon()
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
