package driver

import (
	"bytes"
	"context"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// A Kind is the subject of a message between nodes.
type Kind byte

// The kinds of messages that a Driver sends and takes.
const (
	KindMember      Kind = 'm' // a member's
	KindStrategy    Kind = 's' // a strategy's
	KindLinks       Kind = 'l' // links for the receiver
	KindForwarded   Kind = 'i' // links of a leaving node, whoever owns their hosts
	KindLinksAnswer Kind = 't' // the answer to links
	KindIdleQuery   Kind = 'q' // are you idle?
	KindIdleReport  Kind = 'r' // the answer
)

const (
	// PumpEvery is the interval between two calls of Pump while there may be links to send.
	PumpEvery    = 100 * time.Millisecond
	maxImporting = 16 // batches on their way into the engine; senders send others again
)

// links guards the batches of links between this node's engine and others'. A batch is answered when the engine has it.
//
// Invariants: a batch is passed to the engine once at a time, and few batches are at a time; the senders send others
// again. A batch is counted as received before it has any effect.
type links struct {
	cfg      *Config
	sent     atomic.Int64 // batches
	received atomic.Int64 // batches

	mu        sync.Mutex // guards below
	importing map[batchKey]bool
}

// A flight is a batch on its way.
type batchKey struct {
	from   strategy.Node
	number uint64
}

// pump sends the links that are due to the owners of their hosts, or all to one node.
func (l *links) pump(owner func(host string) (strategy.Node, bool), target *strategy.Node) {
	kind := KindLinks
	if target != nil {
		owner, kind = func(string) (strategy.Node, bool) { return *target, true }, KindForwarded
	}
	for _, b := range l.cfg.Engine.Batches(l.cfg.Runtime.Now(), owner) {
		l.cfg.Runtime.Send(b.To, kind, append(binary.AppendUvarint(nil, b.Number), b.Data...))
		l.sent.Add(1)
	}
}

// take passes a batch to the engine, and answers it. If it cannot, the sender sends the batch again. A legacy has the
// links of a leaving node: none is refused.
func (l *links) receive(from strategy.Node, data []byte, legacy bool) {
	number, size := binary.Uvarint(data)
	if size <= 0 || !l.begin(batchKey{from, number}) {
		return
	}
	l.received.Add(1)
	batch := bytes.Clone(data[size:])
	l.cfg.Runtime.Go(func(ctx context.Context) {
		defer l.end(batchKey{from, number})
		var refused []int
		var err error
		if legacy {
			err = l.cfg.Engine.AdoptLinks(ctx, batch)
		} else {
			refused, err = l.cfg.Engine.TakeLinks(ctx, batch)
		}
		if err != nil {
			if ctx.Err() == nil {
				l.cfg.Log.Warn("links of another node are not taken", "from", from, "err", err)
			}
			return
		}
		l.cfg.Runtime.Send(from, KindLinksAnswer, member.AppendAnswer(nil, number, refused))
	})
}

// begin reports whether a batch may be passed to the engine now.
func (l *links) begin(f batchKey) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.importing[f] || len(l.importing) >= maxImporting {
		return false
	}
	if l.importing == nil {
		l.importing = map[batchKey]bool{}
	}
	l.importing[f] = true
	return true
}

func (l *links) end(f batchKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.importing, f)
}

// idle reports whether no batch is on its way into the engine.
func (l *links) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.importing) == 0
}

func (l *links) answered(from strategy.Node, data []byte) {
	number, refused, err := member.ReadAnswer(data)
	if err != nil {
		l.cfg.Log.Warn("a message that cannot be read", "from", from, "err", err)
		return
	}
	l.cfg.Engine.Answered(from, number, refused, l.cfg.Runtime.Now())
}
