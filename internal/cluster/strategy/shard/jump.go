package shard

// jump is a number of nodes.
type jump int

// choose is Lamping and Veach, "A fast, minimal memory, consistent hash algorithm" (2014). A host moves only to the
// last node when one is added behind the others, and only from the last one when that goes; nodes that come or go
// elsewhere in the list, which is sorted, give others another number.
func (n jump) choose(hash uint64) int {
	at, next := int64(-1), int64(0)
	for next < int64(n) {
		at = next
		hash = hash*2862933555777941757 + 1
		next = int64(float64(at+1) * (float64(1<<31) / float64(hash>>33+1)))
	}
	return int(at)
}

// paper is a number of nodes.
type paper int

// choose is the paper's second level.
func (n paper) choose(hash uint64) int { return int(hash % uint64(n)) }
