package overlay

import (
	"cmp"
	"slices"
	"time"

	"kumo/internal/base/xor"
)

// A peer is what is known of a node that has answered, or waits in a replacement cache. Times are since the Overlay's
// first step.
type peer struct {
	Contact
	heard     time.Duration // when a message of it came, the last time
	answered  time.Duration // the same of an answer
	confirmed time.Duration // when the last question was asked that it has answered; 0: none was
	failed    time.Duration // when a question to it failed, the last time
	next      time.Duration // a neighbour's: when it is asked again
	version   uint32        // of its list of neighbours, as far as that is known; 0: it is not
	fails     uint8         // questions that failed since it was heard of
	live      bool          // it is in the table
	near      bool          // it is a neighbour
	pinged    bool          // a question whether it lives is under way
}

// A table guards the contacts of a node: who is in which bucket, who the neighbours are, and which nodes are closest to
// an id. It sends nothing.
//
// Invariants: near holds the nearest contacts of all buckets. While a contact is live, it is in named and in one bucket.
type table struct {
	cfg     *Config
	id      xor.ID // the node's own
	self    *peer
	named   map[string]*peer // contacts in all buckets
	buckets []bucket         // by depth: how many bits at the front of an id are the node's own
	near    []*peer          // the nearest nodes, the nearest first
	version uint32           // of near: another one after each change, never 0
	live    int              // contacts in all buckets
	spares  int
	joined  bool          // the node has looked itself up, or is the first
	leaving bool          // the node is about to leave
	changed bool          // contacts have come, gone, or vouched for this node since the last Fresh was considered
	due     time.Duration // earliest time of the next question to a neighbour
	prefix  int           // all nodes that share so many first bits with the node are neighbours, as far as those know
	scratch []*peer       // scratch
}

// A bucket is the contacts whose ids have their first difference from the node's own at one bit.
type bucket struct {
	live      []*peer
	spare     []*peer       // have sent something, and wait for a place
	refreshed time.Duration // when an id in it was looked up; 0: never
	searched  bool          // that has come to an end
}

// newTable is the table of a node that knows nobody.
func newTable(cfg *Config, self *peer) table {
	return table{cfg: cfg, id: self.ID, self: self, named: map[string]*peer{}}
}

func depth(a, b xor.ID) int { return xor.Bits - 1 - a.FirstDiff(b) }

// bucket is the one in which an id lies. It is none for the node's own.
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

// hasExact finds a contact that has answered.
func (t *table) known(node string) *peer { return t.named[node] }

func (t *table) knownSpare(id xor.ID) *peer {
	if d := depth(t.id, id); d < len(t.buckets) {
		return find(t.buckets[d].spare, id)
	}
	return nil
}

// isNear reports whether a node would be a neighbour.
func (t *table) isNear(id xor.ID) bool {
	n := len(t.near)
	return n < t.cfg.Neighbors || xor.Compare(id, t.near[n-1].ID, t.id) < 0
}

// hasRoom reports whether a bucket takes one more contact that is no neighbour.
func (t *table) hasRoom(b *bucket) bool {
	return t.countFar(b) < t.cfg.K && t.live < t.cfg.Contacts+len(t.near)
}

// needsContacts reports whether a bucket has less than half of the contacts for which it has room: others are looked for.
func (t *table) needsContacts(b *bucket) bool { return t.countFar(b) < (t.cfg.K+1)/2 && t.hasRoom(b) }

// countFar counts a bucket's contacts that are no neighbours.
func (t *table) countFar(b *bucket) (n int) {
	for _, p := range b.live {
		if !p.near {
			n++
		}
	}
	return n
}

// insert puts a contact into the table that has answered, and for which there is room. It returns the one that had to
// go for it.
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

// addNeighbor makes a contact a neighbour. The farthest one may not be a neighbour any more; it is returned if there is no
// room for it elsewhere.
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

// watchedPrefix is for how many first bits of its own id the node has room to know all nodes that have them, too: those are
// each other's neighbours, so that each hears of all. Others may lie beyond the farthest neighbour.
func (t *table) watchedPrefix() int {
	if n := len(t.near); n == t.cfg.Neighbors {
		return depth(t.id, t.near[n-1].ID) + 1
	}
	return 0
}

// remove takes a contact out of the table, and lets the nearest that is no neighbour take its place among those.
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

// nearestFar is the contact closest to the node that is no neighbour, if there is one.
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

// removePeer takes one out of a slice whose order means nothing unless it is the neighbours'.
func removePeer(peers []*peer, p *peer) []*peer {
	i := slices.Index(peers, p)
	if i < 0 {
		return peers
	}
	return slices.Delete(peers, i, i+1)
}

// addSpare lets a node wait for a place in its bucket. Where all places of the cache are taken too, it needs one of a node
// that was not heard of for long.
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

// stalest is the one that was not heard of for longest.
func stalest(peers []*peer) *peer {
	if len(peers) == 0 {
		return nil
	}
	return slices.MinFunc(peers, func(p, q *peer) int { return cmp.Compare(p.heard, q.heard) })
}

// successorDepth is the depth of the nearest bucket that has contacts, -1 if none has. Of the ids to which no node is closer
// than this one, the second closest node is always one of that bucket: they take its place if they find it gone.
func (t *table) successorDepth() int {
	for d := len(t.buckets) - 1; d >= 0; d-- {
		if len(t.buckets[d].live) > 0 {
			return d
		}
	}
	return -1
}

// closest appends the contacts closest to an id, n of them at most, the node itself among them unless it is about to
// go, the closest first.
//
// Contacts in the id's own bucket are closer to it than all others; then come those in nearer buckets with the node
// itself, then the farther buckets one by one.
func (t *table) closest(id xor.ID, n int, out []*peer) []*peer {
	begin := len(out)
	mine := depth(t.id, id) // xor.Bits if the id is the node's own
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

// insertSorted puts a contact where it belongs in out[from:], which is sorted by distance from an id, unless it would
// lie at end or behind.
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

// exact is how many at the front of a list that closest has made are all nodes there are so close to the id; one more
// than the list has if there is no other node at all.
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

// appendClosest is Overlay.Closest.
func (t *table) appendClosest(id xor.ID, n int, out []Contact) (closest []Contact, exact bool) {
	t.scratch = t.closest(id, n, t.scratch[:0])
	exact = t.joined && len(t.scratch) > 0 && t.exact(id, t.scratch) >= min(n, len(t.scratch)+1)
	for _, p := range t.scratch {
		out = append(out, p.Contact)
		exact = exact && p.fails == 0
	}
	return out, exact
}

// idOf is the id of a node, which need not be computed for a contact.
func (t *table) idOf(node string) xor.ID {
	if p := t.known(node); p != nil {
		return p.ID
	}
	return IDOf(node).Truncate(t.cfg.Width)
}

// indexed is a bucket; nil if it never had anybody.
func (t *table) indexed(index int) *bucket {
	if d := xor.Bits - 1 - index; d >= 0 && d < len(t.buckets) {
		return &t.buckets[d]
	}
	return nil
}
