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

// A Kind says what a message between nodes is about.
type Kind byte

// The kinds of messages that a Driver sends and takes.
const (
	KindMember   Kind = 'm' // a member's
	KindStrategy Kind = 's' // a strategy's
	KindLinks    Kind = 'l' // links for the receiver
	KindLegacy   Kind = 'i' // links of one that leaves, whoever owns their hosts
	KindTaken    Kind = 't' // what became of links
	KindAsk      Kind = 'q' // are you idle?
	KindTally    Kind = 'r' // the answer
)

const (
	// PumpEvery is how often Pump is called while there may be links to send.
	PumpEvery = 100 * time.Millisecond
	maxTaking = 16 // batches that are taken in at once; who sent more sends them again
)

// links are what is on its way between this node's engine and others'.
type links struct {
	sent     atomic.Int64 // batches
	received atomic.Int64 // batches, counted before anything is done with them

	mu     sync.Mutex // guards below
	taking map[flight]bool
}

// A flight is a batch on its way.
type flight struct {
	from   strategy.Node
	number uint64
}

// Pump sends the links that are to be sent now: owner says to whom, false while nobody can take them. One goroutine
// calls it, again and again.
func (d *Driver) Pump(ctx context.Context, owner func(host string) (strategy.Node, bool)) {
	kind := KindLinks
	if to := d.drainTarget.Load(); to != nil {
		owner, kind = func(string) (strategy.Node, bool) { return *to, true }, KindLegacy
	}
	for _, b := range d.cfg.Engine.Batches(d.cfg.Runtime.Now(), owner) {
		d.cfg.Runtime.Send(b.To, kind, append(binary.AppendUvarint(nil, b.Number), b.Data...))
		d.links.sent.Add(1)
	}
	if d.cfg.Strategy == nil {
		return
	}
	if hosts, links := d.cfg.Engine.Wanted(); len(hosts) > 0 {
		d.inform(ctx, strategy.Wanted{Hosts: hosts, Links: links})
	}
}

// Batches is how many batches of links were sent, and came. Any goroutine may ask.
func (d *Driver) Batches() (sent, received int64) {
	return d.links.sent.Load(), d.links.received.Load()
}

// takeLinks takes a batch in, beside others, and answers. Where this cannot be done the batch will come again. A legacy
// is links of one that leaves: none is refused.
func (d *Driver) takeLinks(from strategy.Node, data []byte, legacy bool) {
	number, size := binary.Uvarint(data)
	if size <= 0 || !d.links.begin(flight{from, number}) {
		return
	}
	d.links.received.Add(1)
	batch := bytes.Clone(data[size:])
	d.cfg.Runtime.Go(func(ctx context.Context) {
		defer d.links.end(flight{from, number})
		var refused []int
		var err error
		if legacy {
			err = d.cfg.Engine.Inherit(ctx, batch)
		} else {
			refused, err = d.cfg.Engine.TakeLinks(ctx, batch)
		}
		if err != nil {
			if ctx.Err() == nil {
				d.cfg.Log.Warn("links of another node are not taken", "from", from, "err", err)
			}
			return
		}
		d.cfg.Runtime.Send(from, KindTaken, member.AppendAnswer(nil, number, refused))
	})
}

// begin reports whether a batch may be taken in now.
func (l *links) begin(f flight) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taking[f] || len(l.taking) >= maxTaking {
		return false
	}
	if l.taking == nil {
		l.taking = map[flight]bool{}
	}
	l.taking[f] = true
	return true
}

func (l *links) end(f flight) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.taking, f)
}

// idle reports whether nothing is being taken in.
func (l *links) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.taking) == 0
}

// answered tells the engine what became of a batch.
func (d *Driver) answered(from strategy.Node, data []byte) {
	number, refused, err := member.ReadAnswer(data)
	if err != nil {
		d.cfg.Log.Warn("a message that cannot be read", "from", from, "err", err)
		return
	}
	d.cfg.Engine.Answered(from, number, refused, d.cfg.Runtime.Now())
}
