package driver

import (
	"bytes"
	"context"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// Message applies a message of another node. data is not kept. One goroutine calls it.
func (d *Driver) Message(ctx context.Context, from strategy.Node, kind Kind, data []byte) {
	switch kind {
	case KindMember:
		if !d.transfers.full(data) {
			d.tell(ctx, member.Message{From: from, Data: bytes.Clone(data)})
		}
	case KindStrategy:
		d.inform(ctx, strategy.Message{From: from, Data: bytes.Clone(data)})
	case KindLinks:
		d.links.take(from, data, false)
	case KindLegacy:
		if !d.Leaving() { // a leaving node takes nothing
			d.links.take(from, data, true)
		}
	case KindTaken:
		d.links.answered(from, data)
	case KindAsk, KindTally:
		d.end.message(ctx, from, kind, bytes.Clone(data))
	default: // of a newer version, which copes without an answer
	}
}
