package node

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"kumo/internal/cluster/member/driver"
	"kumo/internal/cluster/strategy"
)

func (n *Node) handleMessage(ctx context.Context, from strategy.Node, data []byte) {
	kind, data, err := openEnvelope(data, n.cfg.Crawl)
	if err != nil {
		n.refuse(from, err)
		return
	}
	switch kind {
	case kindKnownRequest:
		n.handleKnown(from, bytes.Clone(data))
		return
	case kindQueryRequest:
		n.handleQuery(from, bytes.Clone(data))
		return
	}
	n.driver.Message(ctx, from, driver.Kind(kind), data)
	if driver.Kind(kind) == driver.KindLinksAnswer {
		n.pumpSoon()
	}
}

// maxRefused limits the number of remembered senders of rejected messages.
const maxRefused = 1000

// refuse logs once per node that its messages are rejected.
func (n *Node) refuse(from strategy.Node, err error) {
	if n.refused[from] || len(n.refused) >= maxRefused {
		return
	}
	n.refused[from] = true
	n.log.Warn("the messages of a node are rejected", "from", from, "why", err)
}

// Protocol is the version of the protocol between nodes.
const Protocol = 3

// A message between nodes consists of a byte for the protocol version, a byte for the kind, the crawl's name preceded
// by its length, and the body.
const version = Protocol

// The kinds of messages besides those of the driver.
const (
	kindKnownRequest = 'k' // which of these URLs are known?
	kindKnownReply   = 'w' // the answer

	kindQueryRequest = 'y' // a query about the node's part of the crawl
	kindQueryReply   = 'Y' // the answer
)

func envelope(crawl string, kind byte, data []byte) []byte {
	msg := make([]byte, 0, len(data)+len(crawl)+binary.MaxVarintLen64+2)
	msg = append(msg, version, kind)
	msg = binary.AppendUvarint(msg, uint64(len(crawl)))
	return append(append(msg, crawl...), data...)
}

// openEnvelope decodes an envelope. data aliases msg.
func openEnvelope(msg []byte, crawl string) (kind byte, data []byte, err error) {
	if len(msg) < 3 || msg[0] != version {
		return 0, nil, fmt.Errorf("it begins with %q, but this kumo uses protocol version %d",
			msg[:min(len(msg), 2)], version)
	}
	size, n := binary.Uvarint(msg[2:])
	if n <= 0 || size > uint64(len(msg)-2-n) {
		return 0, nil, fmt.Errorf("it is truncated to %d bytes", len(msg))
	}
	rest := msg[2+n:]
	if name := string(rest[:size]); name != crawl {
		return 0, nil, fmt.Errorf("it belongs to the crawl %q; this node's is %q", name, crawl)
	}
	return msg[1], rest[size:], nil
}
