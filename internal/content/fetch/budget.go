package fetch

import "sync/atomic"

// A budget is the memory that answers under way share. Each answer has its first readSize bytes beside it, so that one
// that is short never asks. It is asked when a buffer grows, not at each read.
type budget struct {
	size int64
	lent atomic.Int64
}

// maxInMemory is the share of the budget that one answer may have in memory. What is longer goes to the disk.
func (b *budget) maxInMemory() int { return int(min(max(b.size/8, 4*readSize), 8<<20)) }

// bodyLimit is how much of the budget bodies may have: they can go to the disk, heads cannot.
func (b *budget) bodyLimit() int64 { return b.size / 4 * 3 }

// take reports whether n bytes could be had without more than most being lent.
func (b *budget) tryAcquire(n, most int64) bool {
	if b.lent.Add(n) <= most {
		return true
	}
	b.lent.Add(-n)
	return false
}

// Return takes back what is not used any more.
func (b *budget) Return(n int64) { b.lent.Add(-n) }
