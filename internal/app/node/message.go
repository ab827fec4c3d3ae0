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
	case kindCountRequest:
		n.handleCount(from, bytes.Clone(data))
		return
	}
	n.driver.Message(ctx, from, driver.Kind(kind), data)
	if driver.Kind(kind) == driver.KindLinksAnswer {
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

// Protocol is the version of all that nodes say to each other.
const Protocol = 3

// A message between nodes is a byte for the version of all that nodes say to each other, one for the kind, the crawl's
// name with its length before it, and what the kind has to say.
const version = Protocol

// The kinds of messages that are none of a driver's.
const (
	kindKnownRequest = 'k' // do you know these URLs?
	kindKnownReply   = 'w' // the answer

	kindCountRequest = 'b' // how much of what waits would these rules leave out?
	kindCountReply   = 'B' // the answer
)

func envelope(crawl string, kind byte, data []byte) []byte {
	msg := make([]byte, 0, len(data)+len(crawl)+binary.MaxVarintLen64+2)
	msg = append(msg, version, kind)
	msg = binary.AppendUvarint(msg, uint64(len(crawl)))
	return append(append(msg, crawl...), data...)
}

// openEnvelope reads an envelope. data is a part of msg.
func openEnvelope(msg []byte, crawl string) (kind byte, data []byte, err error) {
	if len(msg) < 3 || msg[0] != version {
		return 0, nil, fmt.Errorf("it begins with %q, and this kumo understands messages of version %d",
			msg[:min(len(msg), 2)], version)
	}
	size, n := binary.Uvarint(msg[2:])
	if n <= 0 || size > uint64(len(msg)-2-n) {
		return 0, nil, fmt.Errorf("it has %d bytes and ends early", len(msg))
	}
	rest := msg[2+n:]
	if name := string(rest[:size]); name != crawl {
		return 0, nil, fmt.Errorf("it is of the crawl %q, and this node's is %q", name, crawl)
	}
	return msg[1], rest[size:], nil
}
