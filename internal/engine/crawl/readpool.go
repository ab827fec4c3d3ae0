package crawl

import (
	"context"
	"sync"
	"sync/atomic"

	"kumo/internal/base/page"
	"kumo/internal/content/duplicate"
	"kumo/internal/content/fetch"
)

// Most workers wait for a server. They get buffers when an answer begins to arrive, and a slot to read it when a
// processor is free, so a thousand workers need little more memory than ten.
//
// An answer that outgrows its buffers is on disk until it is read. A reader needs only processors and disks to finish,
// so every worker that waits for a slot gets one. A page that is too long for an ordinary slot is read again at one of
// the few large slots; it leaves its first one, so that only large pages wait for each other.

// A readSlot has the parser and the buffers to read one answer at a time.
type readSlot struct {
	parser Parser
	page   page.Page
	signer duplicate.Reader
	body   []byte
	room   int64 // bytes of a decoded body that are read
	large  bool
}

// A readPool has the slots and the idle buffers for answers.
type readPool struct {
	newParser func(room int64) Parser
	shares    Shares
	turns     chan struct{}  // held while a slot is in use
	large     chan *readSlot // free large slots; nil for a slot that does not exist yet
	waiting   atomic.Int32   // number of workers that wait for a large slot

	mu          sync.Mutex
	slots       []*readSlot    // free ones, used as a stack
	idleBuffers []page.Buffers // used as a stack
}

func newReadPool(newParser func(room int64) Parser, s Shares) *readPool {
	o := &readPool{newParser: newParser, shares: s, turns: make(chan struct{}, s.slots()),
		large: make(chan *readSlot, s.largeSlots())}
	for range cap(o.large) {
		o.large <- nil
	}
	return o
}

// An answer is the response that a worker receives, and the slot to read it.
type answer struct {
	*readSlot // nil unless an answer is being read
	hasTurn   bool
	resp      page.Response
	pool      *readPool
	decoder   *fetch.Decoder
}

// acquireBuffers takes idle buffers for an answer.
func (a *answer) acquireBuffers() {
	o := a.pool
	o.mu.Lock()
	defer o.mu.Unlock()
	if last := len(o.idleBuffers) - 1; last >= 0 {
		request := a.resp.Buffers.Request
		a.resp.Buffers, o.idleBuffers = o.idleBuffers[last], o.idleBuffers[:last]
		a.resp.Buffers.Request = request
	}
}

// acquireSlot waits for an ordinary slot.
func (a *answer) acquireSlot() {
	o := a.pool
	o.turns <- struct{}{}
	a.hasTurn = true
	o.mu.Lock()
	if last := len(o.slots) - 1; last >= 0 {
		a.readSlot, o.slots = o.slots[last], o.slots[:last]
	}
	o.mu.Unlock()
	if a.readSlot == nil {
		room := o.shares.SlotRoom()
		a.readSlot = &readSlot{parser: o.newParser(room), room: room}
	}
	a.resp.Buffers.Body = a.body
}

// acquireLargeSlot returns the ordinary slot, and waits for a large one. It returns false if ctx ends first.
func (a *answer) acquireLargeSlot(ctx context.Context) bool {
	o := a.pool
	a.returnSlot()
	a.releaseTurn()
	o.waiting.Add(1)
	defer o.waiting.Add(-1)
	var d *readSlot
	select {
	case d = <-o.large:
	case <-ctx.Done():
		return false
	}
	if d == nil {
		room := o.shares.largeRoom()
		d = &readSlot{parser: o.newParser(room), room: room, large: true}
	}
	if d.body == nil {
		d.body = make([]byte, 0, d.room+1<<10) // grown step by step, it would take more than twice as much
	}
	a.readSlot = d
	o.turns <- struct{}{}
	a.hasTurn = true
	a.resp.Buffers.Body = a.body
	return true
}

// releaseTurn lets another worker read, but keeps the slot's data: the next steps may take long and need no processor.
func (a *answer) releaseTurn() {
	if a.hasTurn {
		a.hasTurn = false
		<-a.pool.turns
	}
}

// returnSlot returns the slot to the pool.
func (a *answer) returnSlot() {
	d, o := a.readSlot, a.pool
	if d == nil {
		return
	}
	a.readSlot = nil
	d.body, a.resp.Buffers.Body, a.resp.Body = a.resp.Buffers.Body, nil, nil
	if cap(d.page.Links) > maxBatchLinks {
		d.page.Links = nil
	}
	if d.large {
		if o.waiting.Load() == 0 {
			d = nil // it may be long until the next large page
		}
		o.large <- d
		return
	}
	if cap(d.body) > maxBody {
		d.body = nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.slots) < cap(o.turns) {
		o.slots = append(o.slots, d)
	}
}

// release returns everything that the visit has used.
func (a *answer) release() {
	a.returnSlot()
	a.releaseTurn()
	o, room := a.pool, a.resp.Buffers
	room.Empty()
	a.resp = page.Response{Buffers: page.Buffers{Request: room.Request}}
	room.Request = nil
	o.mu.Lock()
	defer o.mu.Unlock()
	if cap(room.Raw) > 0 && len(o.idleBuffers) < o.shares.idleBuffers() {
		o.idleBuffers = append(o.idleBuffers, room)
	}
}

// maxBody bounds the buffers of bodies that are reused, in bytes.
const maxBody = 512 << 10
