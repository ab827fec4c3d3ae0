package seen

import (
	"context"
	"sync"

	"kumo/internal/state/seen/mem"
)

const defaultMemory = 256 << 20

// Parts are what of a late merge is in memory: a part that takes, and one that is frozen and waits to be merged, or is
// just being merged. A frozen part does not change.
type parts struct {
	mu             sync.Mutex    // guards all of this, and the active table
	active, frozen *mem.Table    // frozen is nil when all is on the disk but active
	spare          *mem.Table    // empty
	merging        bool          // a merge runs: nothing can be frozen
	pins           int           // who reads tables without the lock
	position       uint64        // of frozen
	full           int64         // bytes
	freeze         chan struct{} // closed by the next Freeze
	items          []mem.Item    // for sorting
}

// Full reports whether the part that takes has had its share of memory.
func (p *parts) Full() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.active.Bytes() >= p.full
}

// Room waits while the part that takes is full, until a Freeze: who calls it before an Offer keeps memory within its
// bound, however long a merge takes. Its error is the context's.
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

// Freeze makes all that is in memory what the next merge takes; pos is the position of the journal that it includes. It
// returns false, and does nothing, while an earlier part has not been merged, or a merge runs.
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

// begin keeps parts from being frozen until end is called.
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

// merged lets go of the frozen part; account is called with the lock held. The table is used again, unless somebody
// reads it.
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

// sorted is the frozen part in order. Only the one who merges calls it.
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

// tables are the active part and the frozen one, if any. The caller holds mu.
func (p *parts) tables() []*mem.Table {
	if p.frozen == nil {
		return []*mem.Table{p.active}
	}
	return []*mem.Table{p.active, p.frozen}
}

// pin returns the tables, which are not reused until unpin.
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
