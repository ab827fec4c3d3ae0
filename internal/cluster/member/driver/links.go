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

// The kinds of messages that a Driver sends and receives.
const (
	KindMember      Kind = 'm' // for the member
	KindStrategy    Kind = 's' // for the strategy
	KindLinks       Kind = 'l' // links to hosts of the receiver
	KindForwarded   Kind = 'i' // links of a leaving node, to any hosts
	KindLinksAnswer Kind = 't' // answer to links
	KindIdleQuery   Kind = 'q' // query whether the receiver is idle
	KindIdleReport  Kind = 'r' // answer to that query
)

const (
	// PumpEvery is the interval between two calls of Pump while there may be links to send.
	PumpEvery    = 100 * time.Millisecond
	maxImporting = 16 // batches that the engine is importing; senders repeat the others
)

// links guards the batches of links between this node's engine and others. A batch is answered once the engine has it.
//
// Invariants: the engine imports a batch once at a time, and at most maxImporting batches at a time; the senders repeat
// the others. A batch is counted as received before it has any effect.
type links struct {
	cfg      *Config
	sent     atomic.Int64 // batches
	received atomic.Int64 // batches

	mu        sync.Mutex // guards below
	importing map[batchKey]bool
}

// A batchKey identifies a batch of another node.
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

// receive passes a batch to the engine, and answers it. After an error the sender repeats the batch. A forwarded batch
// has the links of a leaving node: none is refused.
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
				l.cfg.Log.Warn("links of another node cannot be imported", "from", from, "err", err)
			}
			return
		}
		l.cfg.Runtime.Send(from, KindLinksAnswer, member.AppendAnswer(nil, number, refused))
	})
}

// begin reports whether the engine may import a batch now.
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

// idle reports whether the engine is importing no batch.
func (l *links) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.importing) == 0
}

func (l *links) answered(from strategy.Node, data []byte) {
	number, refused, err := member.ReadAnswer(data)
	if err != nil {
		l.cfg.Log.Warn("invalid answer to links", "from", from, "err", err)
		return
	}
	l.cfg.Engine.Answered(from, number, refused, l.cfg.Runtime.Now())
}
