package fetch

import "sync/atomic"

// A budget is the memory that all responses in progress share. The first readSize bytes of each response are outside of
// it, so short responses never use it. Memory is acquired when a buffer grows, not at each read.
type budget struct {
	size int64
	lent atomic.Int64
}

// maxInMemory is the largest part of the budget that one response may hold. Longer responses go to disk.
func (b *budget) maxInMemory() int { return int(min(max(b.size/8, 4*readSize), 8<<20)) }

// bodyLimit is the part of the budget that bodies may hold. Bodies can go to disk, heads cannot.
func (b *budget) bodyLimit() int64 { return b.size / 4 * 3 }

// tryAcquire takes n bytes unless the total would exceed most. It reports whether it took them.
func (b *budget) tryAcquire(n, most int64) bool {
	if b.lent.Add(n) <= most {
		return true
	}
	b.lent.Add(-n)
	return false
}

// Return gives n bytes back to the budget.
func (b *budget) Return(n int64) { b.lent.Add(-n) }
