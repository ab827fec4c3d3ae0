package driver

import (
	"bytes"
	"context"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// Message takes a message of another node. data is not kept. One goroutine calls it.
func (d *Driver) Message(ctx context.Context, from strategy.Node, kind Kind, data []byte) {
	switch kind {
	case KindMember:
		if !d.full(data) {
			d.tell(ctx, member.Message{From: from, Data: bytes.Clone(data)})
		}
	case KindStrategy:
		d.inform(ctx, strategy.Message{From: from, Data: bytes.Clone(data)})
	case KindLinks:
		d.takeLinks(from, data, false)
	case KindLegacy:
		if !d.Leaving() { // who leaves, too, takes nothing any more
			d.takeLinks(from, data, true)
		}
	case KindTaken:
		d.answered(from, data)
	case KindAsk, KindTally:
		d.termination(ctx, from, kind, bytes.Clone(data))
	default: // a newer kumo's, which says no more than this one understands
	}
}
