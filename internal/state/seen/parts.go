package seen

import (
	"context"
	"sync"

	"kumo/internal/state/seen/mem"
)

const defaultMemory = 256 << 20

// parts is the memory of a late merge: the active part, and a frozen part that waits to be merged or is being merged. A
// frozen part does not change.
type parts struct {
	mu             sync.Mutex    // guards all fields, and the active table
	active, frozen *mem.Table    // frozen is nil when everything but active is on disk
	spare          *mem.Table    // empty
	merging        bool          // a merge runs: Freeze does nothing
	pins           int           // readers of tables that do not hold mu
	position       uint64        // of frozen
	full           int64         // size of a full part, in bytes
	freeze         chan struct{} // closed by the next Freeze
	items          []mem.Item    // for sorting
}

// Full reports whether the active part has used its share of memory.
func (p *parts) Full() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.active.Bytes() >= p.full
}

// Room waits while the active part is full, until a Freeze. Calling it before each Offer keeps memory within its bound,
// however long a merge takes. Its error is the context's.
func (p *parts) Room(ctx context.Context) error {
	for {
		p.mu.Lock()
		full, frees := p.active.Bytes() >= p.full, p.freeze
		p.mu.Unlock()
		if !full {
			return ctx.Err()
		}
		select {
		case <-frees:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Freeze freezes the active part for the next merge; pos is the journal position that it includes. While an earlier
// part is not merged, or a merge runs, it does nothing and returns false.
func (p *parts) Freeze(pos uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen != nil || p.merging {
		return false
	}
	close(p.freeze)
	p.freeze = make(chan struct{})
	p.frozen, p.active, p.spare, p.position = p.active, p.spare, nil, pos
	if p.active == nil {
		p.active = mem.New()
	}
	return true
}

// begin prevents Freeze until end is called.
func (p *parts) begin() (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.merging = true
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.merging = false
	}
}

func (p *parts) waiting() (*mem.Table, uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.frozen, p.position
}

// merged releases the frozen part; account is called with mu held. The table is reused, unless it is pinned.
func (p *parts) merged(account func()) {
	p.mu.Lock()
	t, read := p.frozen, p.pins > 0
	p.frozen = nil
	account()
	p.mu.Unlock()
	if read {
		return
	}
	t.Reset()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spare = t
}

// sorted returns the records of the frozen part, sorted by key. Only the merger calls it.
func (p *parts) sorted(t *mem.Table) []mem.Item {
	p.items = t.Sorted(p.items[:0])
	return p.items
}

func (p *parts) bytes() int64 {
	n := p.active.Bytes()
	if p.frozen != nil {
		n += p.frozen.Bytes()
	}
	return n
}

// tables returns the active part and the frozen one, if any. The caller holds mu.
func (p *parts) tables() []*mem.Table {
	if p.frozen == nil {
		return []*mem.Table{p.active}
	}
	return []*mem.Table{p.active, p.frozen}
}

// pin returns the tables, and prevents their reuse until unpin.
func (p *parts) pin() []*mem.Table {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pins++
	return p.tables()
}

func (p *parts) unpin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pins--
}
