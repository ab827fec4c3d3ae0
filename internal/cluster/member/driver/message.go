package driver

import (
	"bytes"
	"context"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// Message processes a message of another node. It does not keep data. One goroutine calls it.
func (d *Driver) Message(ctx context.Context, from strategy.Node, kind Kind, data []byte) {
	switch kind {
	case KindMember:
		if !d.transfers.full(data) {
			d.postEvent(ctx, member.Message{From: from, Data: bytes.Clone(data)})
		}
	case KindStrategy:
		d.postStrategyEvent(ctx, strategy.Message{From: from, Data: bytes.Clone(data)})
	case KindLinks:
		d.links.receive(from, data, false)
	case KindForwarded:
		if !d.Leaving() { // a leaving node accepts no links
			d.links.receive(from, data, true)
		}
	case KindLinksAnswer:
		d.links.answered(from, data)
	case KindIdleQuery, KindIdleReport:
		d.end.message(ctx, from, kind, bytes.Clone(data))
	default: // sent by a newer version, which works without an answer
	}
}
