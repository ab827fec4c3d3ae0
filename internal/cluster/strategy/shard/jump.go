package shard

// jump is jump hashing over a number of nodes.
type jump int

// choose implements Lamping and Veach, "A fast, minimal memory, consistent hash algorithm" (2014). Hosts move only to
// the last node when it is added, and only from the last node when it is removed. Nodes that join or leave elsewhere in
// the sorted list change the numbers of others.
func (n jump) choose(hash uint64) int {
	at, next := int64(-1), int64(0)
	for next < int64(n) {
		at = next
		hash = hash*2862933555777941757 + 1
		next = int64(float64(at+1) * (float64(1<<31) / float64(hash>>33+1)))
	}
	return int(at)
}

// paper is the paper's second level for a number of nodes.
type paper int

// choose is the paper's second level.
func (n paper) choose(hash uint64) int { return int(hash % uint64(n)) }
