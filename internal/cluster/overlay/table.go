package overlay

import (
	"cmp"
	"slices"
	"time"

	"kumo/internal/base/xor"
)

// A peer is a node that has answered, or is in a replacement cache. Times are counted from the Overlay's first step.
type peer struct {
	Contact
	heard     time.Duration // last message
	answered  time.Duration // last answer
	confirmed time.Duration // when the last query that it has answered was sent; 0: none
	failed    time.Duration // last failed query
	next      time.Duration // next query to a neighbor
	version   uint32        // of its list of neighbors, if known; 0: unknown
	fails     uint8         // consecutive failed queries
	live      bool          // in the table
	near      bool          // a neighbor
	pinged    bool          // a ping is in progress
}

// A table stores a node's contacts in buckets, its neighbors, and finds the nodes closest to an id. It sends nothing.
//
// Invariants: near contains the nearest contacts of all buckets. While a contact is live, it is in named and in one
// bucket.
type table struct {
	cfg     *Config
	id      xor.ID // the node's own
	self    *peer
	named   map[string]*peer // contacts in all buckets
	buckets []bucket         // by depth: the number of leading bits shared with the node's own id
	near    []*peer          // neighbors, the nearest first
	version uint32           // of near: changes with it, never 0
	live    int              // contacts in all buckets
	spares  int
	joined  bool          // the node has looked itself up, or is the first
	leaving bool          // the node is about to leave
	changed bool          // contacts were added, removed or confirmed since the last check for Fresh
	due     time.Duration // earliest next query to a neighbor
	prefix  int           // all nodes that share so many leading bits with the node are neighbors, as far as they know
	scratch []*peer       // scratch
}

// A bucket has the contacts whose ids first differ from the node's own in the same bit.
type bucket struct {
	live      []*peer
	spare     []*peer       // replacement cache: nodes that have sent a message and wait for a place
	refreshed time.Duration // last lookup of an id in the bucket; 0: never
	searched  bool          // that lookup has ended
}

// newTable returns a table without contacts.
func newTable(cfg *Config, self *peer) table {
	return table{cfg: cfg, id: self.ID, self: self, named: map[string]*peer{}}
}

func depth(a, b xor.ID) int { return xor.Bits - 1 - a.FirstDiff(b) }

// bucket returns the bucket of an id, which must not be the node's own.
func (t *table) bucket(id xor.ID) *bucket {
	d := depth(t.id, id)
	for len(t.buckets) <= d {
		t.buckets = append(t.buckets, bucket{})
	}
	return &t.buckets[d]
}

func find(peers []*peer, id xor.ID) *peer {
	for _, p := range peers {
		if p.ID == id {
			return p
		}
	}
	return nil
}

// known returns a contact that has answered.
func (t *table) known(node string) *peer { return t.named[node] }

func (t *table) knownSpare(id xor.ID) *peer {
	if d := depth(t.id, id); d < len(t.buckets) {
		return find(t.buckets[d].spare, id)
	}
	return nil
}

// isNear reports whether a node would be a neighbor.
func (t *table) isNear(id xor.ID) bool {
	n := len(t.near)
	return n < t.cfg.Neighbors || xor.Compare(id, t.near[n-1].ID, t.id) < 0
}

// hasRoom reports whether a bucket has room for another contact that is not a neighbor.
func (t *table) hasRoom(b *bucket) bool {
	return t.countFar(b) < t.cfg.K && t.live < t.cfg.Contacts+len(t.near)
}

// needsContacts reports whether a bucket has less than half of its contacts and room for more.
func (t *table) needsContacts(b *bucket) bool { return t.countFar(b) < (t.cfg.K+1)/2 && t.hasRoom(b) }

// countFar counts a bucket's contacts that are not neighbors.
func (t *table) countFar(b *bucket) (n int) {
	for _, p := range b.live {
		if !p.near {
			n++
		}
	}
	return n
}

// insert adds a contact that has answered, and for which there is room. It returns the contact that was displaced, if
// any.
func (t *table) insert(p *peer) (displaced *peer) {
	b := t.bucket(p.ID)
	b.live = append(b.live, p)
	t.named[p.Node], p.live = p, true
	t.changed = true
	t.live++
	if t.isNear(p.ID) {
		displaced = t.addNeighbor(p)
	}
	return displaced
}

// addNeighbor makes a contact a neighbor. The farthest one may no longer be a neighbor; it is returned if its bucket
// has no room for it either.
func (t *table) addNeighbor(p *peer) *peer {
	at, _ := slices.BinarySearchFunc(t.near, p, func(a, b *peer) int { return xor.Compare(a.ID, b.ID, t.id) })
	t.near = slices.Insert(t.near, at, p)
	p.near, p.version = true, 0
	t.due = 0
	t.version++
	var last *peer
	if n := len(t.near) - 1; n == t.cfg.Neighbors {
		last = t.near[n]
		t.near[n] = nil
		t.near = t.near[:n]
		last.near = false
	}
	t.prefix = max(t.prefix, t.watchedPrefix())
	if last == nil {
		return nil
	}
	if b := t.bucket(last.ID); t.countFar(b) > t.cfg.K || t.live > t.cfg.Contacts+len(t.near) {
		t.remove(last)
		return last
	}
	return nil
}

// watchedPrefix returns how many leading bits of its id the node can watch: all nodes that share them must be
// neighbors. Such nodes are each other's neighbors, so each learns of all others. Further nodes may lie beyond the
// farthest neighbor.
func (t *table) watchedPrefix() int {
	if n := len(t.near); n == t.cfg.Neighbors {
		return depth(t.id, t.near[n-1].ID) + 1
	}
	return 0
}

// remove removes a contact from the table. If it was a neighbor, the nearest other contact replaces it.
func (t *table) remove(p *peer) {
	b := t.bucket(p.ID)
	b.live = removePeer(b.live, p)
	delete(t.named, p.Node)
	p.live = false
	t.changed = true
	t.live--
	if !p.near {
		return
	}
	p.near = false
	t.near = removePeer(t.near, p)
	t.version++
	if next := t.nearestFar(); next != nil {
		t.addNeighbor(next)
	}
}

// nearestFar returns the closest contact that is not a neighbor; nil if there is none.
func (t *table) nearestFar() (best *peer) {
	for i := len(t.buckets) - 1; i >= 0 && best == nil; i-- {
		for _, p := range t.buckets[i].live {
			if !p.near && (best == nil || xor.Compare(p.ID, best.ID, t.id) < 0) {
				best = p
			}
		}
	}
	return best
}

// removePeer removes a peer from a slice, and keeps the order.
func removePeer(peers []*peer, p *peer) []*peer {
	i := slices.Index(peers, p)
	if i < 0 {
		return peers
	}
	return slices.Delete(peers, i, i+1)
}

// addSpare adds a node to its bucket's replacement cache. If that is full, it replaces a node that was silent for long.
func (t *table) addSpare(c Contact, now time.Duration) {
	b := t.bucket(c.ID)
	if len(b.spare) < t.cfg.Spares && t.live+t.spares < t.cfg.Contacts {
		b.spare = append(b.spare, &peer{Contact: c, heard: now})
		t.spares++
		return
	}
	if p := stalest(b.spare); p != nil && now-p.heard > t.cfg.Check {
		*p = peer{Contact: c, heard: now}
	}
}

func (t *table) dropSpare(id xor.ID) {
	if p := t.knownSpare(id); p != nil {
		b := t.bucket(id)
		b.spare = removePeer(b.spare, p)
		t.spares--
	}
}

// stalest returns the peer that was silent for longest.
func stalest(peers []*peer) *peer {
	if len(peers) == 0 {
		return nil
	}
	return slices.MinFunc(peers, func(p, q *peer) int { return cmp.Compare(p.heard, q.heard) })
}

// successorDepth returns the depth of the nearest bucket that has contacts; -1 if there is none. For ids to which this
// node is the closest, the second closest node is in that bucket. These nodes take its place when it dies.
func (t *table) successorDepth() int {
	for d := len(t.buckets) - 1; d >= 0; d-- {
		if len(t.buckets[d].live) > 0 {
			return d
		}
	}
	return -1
}

// closest appends the contacts closest to an id, at most n, the closest first. The node itself is included unless it is
// about to leave.
//
// Contacts in the id's own bucket are the closest; then come those in nearer buckets with the node itself, then the
// farther buckets one by one.
func (t *table) closest(id xor.ID, n int, out []*peer) []*peer {
	begin := len(out)
	mine := depth(t.id, id) // xor.Bits for the node's own id
	if mine < len(t.buckets) {
		out = addSorted(out, t.buckets[mine].live, id, begin, begin+n)
	}
	if len(out)-begin < n {
		from, end := len(out), begin+n
		if !t.leaving {
			out = insertSorted(out, t.self, id, from, end)
		}
		for d := mine + 1; d < len(t.buckets); d++ {
			out = addSorted(out, t.buckets[d].live, id, from, end)
		}
	}
	for d := min(mine, len(t.buckets)) - 1; d >= 0 && len(out)-begin < n; d-- {
		out = addSorted(out, t.buckets[d].live, id, len(out), begin+n)
	}
	return out
}

func addSorted(out, peers []*peer, id xor.ID, from, end int) []*peer {
	for _, p := range peers {
		out = insertSorted(out, p, id, from, end)
	}
	return out
}

// insertSorted inserts a contact into out[from:], which is sorted by distance from an id, unless its index would be end
// or more.
func insertSorted(out []*peer, p *peer, id xor.ID, from, end int) []*peer {
	i := len(out)
	for i > from && xor.Compare(p.ID, out[i-1].ID, id) < 0 {
		i--
	}
	switch {
	case i >= end:
		return out
	case len(out) < end:
		out = append(out, nil)
	}
	copy(out[i+1:], out[i:])
	out[i] = p
	return out
}

// exact returns how many contacts at the front of a list from closest are all nodes so close to the id; one more than
// the list's length if there are no other nodes at all.
func (t *table) exact(id xor.ID, list []*peer) (n int) {
	if depth(t.id, id) < t.prefix {
		return 0
	}
	for n < len(list) && depth(t.id, list[n].ID) >= t.prefix {
		n++
	}
	all := t.live
	if !t.leaving {
		all++
	}
	if t.prefix == 0 && n == all {
		n++
	}
	return n
}

// appendClosest implements Overlay.Closest.
func (t *table) appendClosest(id xor.ID, n int, out []Contact) (closest []Contact, exact bool) {
	t.scratch = t.closest(id, n, t.scratch[:0])
	exact = t.joined && len(t.scratch) > 0 && t.exact(id, t.scratch) >= min(n, len(t.scratch)+1)
	for _, p := range t.scratch {
		out = append(out, p.Contact)
		exact = exact && p.fails == 0
	}
	return out, exact
}

// idOf returns the id of a node, without computing it for contacts.
func (t *table) idOf(node string) xor.ID {
	if p := t.known(node); p != nil {
		return p.ID
	}
	return IDOf(node).Truncate(t.cfg.Width)
}

// indexed returns the bucket with an index; nil if it never had a contact.
func (t *table) indexed(index int) *bucket {
	if d := xor.Bits - 1 - index; d >= 0 && d < len(t.buckets) {
		return &t.buckets[d]
	}
	return nil
}
