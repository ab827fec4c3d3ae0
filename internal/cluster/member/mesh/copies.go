package mesh

import (
	"slices"
	"time"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/member/mesh/lists"
	"kumo/internal/cluster/strategy"
)

// copies keep each host's history at as many nodes as the host has backups.
//
// When the nodes around this one have changed, it sweeps over all hosts of its history (Sweep, Swept). A node that has
// become a backup receives everything about the host from the first of the earlier backups. A node that is no longer a
// backup sends it to all backups, and drops it (Drop).
//
// Invariants: a host is dropped only after all its backups have stored all of it, including later changes. At most
// maxCopying hosts are being sent, and the sweep waits while there are so many.
type copies struct {
	core      *core
	place     *place
	absences  *absences
	lookups   finder
	transfers sender
	hosts     *openHosts
	postponed func() bool // whether open URLs must be sent first: see disclosure

	byLists bool // the history moves in whole lists: the strategy is StrategyPaper
	moved   Moves
	before  []neighbor // this node and those around it at the last sweep
	began   time.Time  // the last sweep
	died    time.Time  // when the last node died
	again   bool       // the nodes around have changed since the last sweep
	armed   bool
	sweep   sweep
	sending int // hosts
	pending map[string]*hostCopy
}

// A sweep goes over all hosts of the history, part by part.
type sweep struct {
	running bool
	parts   []lists.Part // the rest, the current one first
	old     []neighbor   // this node and those around it at the sweep before
	proven  time.Time    // nodes that joined before this time have received everything; zero: all have
	found   int          // hosts
	next    func()       // continues the sweep when few hosts are being sent
}

const (
	sweepAfter = 2 * time.Second // after the nodes around have changed: others join and leave at the same time
	maxCopying = 64
	copyAgain  = 10 * time.Second
	// A node that joined less than this before another died may have received some of its hosts only in part: the dead
	// node may have been sending them.
	youngAge = time.Minute
)

// A hostCopy is a host that is being sent to other nodes.
type hostCopy struct {
	to      []strategy.Node // nodes that still need it
	has     []strategy.Node // nodes that have all of it
	found   []strategy.Node // its backups, looked up: this node is too far away to know all of them
	busy    bool            // it is being sent
	changed bool            // some of it was recorded since sending began
}

// A neighbor is a node around this one, or this one.
type neighbor struct {
	node  strategy.Node
	id    xor.ID
	since time.Time // when this node first saw it
}

// sweepSoon schedules a sweep.
func (c *copies) sweepSoon() {
	c.again = true
	if c.sweep.running || c.armed {
		return
	}
	c.armed = true
	c.core.after(sweepAfter, func() {
		c.armed = false
		if c.again && !c.sweep.running {
			c.begin()
		}
	})
}

// leave starts a sweep that sends everything to other nodes.
func (c *copies) leave() {
	c.sweepSoon()
	c.sweep.found = -1 // no sweep has ended since
}

// isEmpty reports whether the last sweep has found no hosts.
func (c *copies) isEmpty() bool { return c.sweep.found == 0 }

// isResting reports whether no sweep is running or planned, and no host is being sent.
func (c *copies) isResting() bool { return !c.sweep.running && !c.armed && c.sending == 0 }

// neighborhood returns this node and those near it, sorted by distance.
func (c *copies) neighborhood() []neighbor {
	nodes := c.place.overlay.Neighbors()
	since := make(map[strategy.Node]time.Time, len(c.before))
	for _, n := range c.before {
		since[n.node] = n.since
	}
	all := make([]neighbor, 0, len(nodes)+1)
	if !c.place.leaving {
		all = append(all, neighbor{node: c.core.self, id: c.place.id})
	}
	for _, n := range nodes {
		at, met := since[n]
		if !met && c.before != nil { // nodes that were there before this one have had time
			at = c.core.now
		}
		all = append(all, neighbor{n, c.place.nodeID(n), at})
	}
	slices.SortFunc(all, func(a, b neighbor) int { return xor.Compare(a.id, b.id, c.place.id) })
	return all
}

// begin starts a sweep if the nodes around have changed.
func (c *copies) begin() {
	if c.postponed() {
		c.again = true
		return
	}
	before, now, began := c.before, c.neighborhood(), c.began
	c.again, c.before, c.began = false, now, c.core.now
	same := slices.EqualFunc(before, now, func(a, b neighbor) bool { return a.node == b.node })
	if same && !c.place.leaving {
		return
	}
	c.sweep.old, c.sweep.proven = before, time.Time{}
	if c.died.After(began) {
		c.sweep.proven = c.died.Add(-youngAge)
	}
	c.sweep.running, c.sweep.found = true, 0
	c.sweep.parts = []lists.Part{{}}
	if c.byLists {
		c.sweep.parts = c.divide(now)
	}
	c.sweepPart()
}

// swept copies the hosts that a sweep has found.
func (c *copies) swept(e Swept) {
	if !c.sweep.running {
		return
	}
	c.sweep.found += len(e.Hosts)
	part := c.sweep.parts[0]
	if part.Whole = part.Whole && !c.again; part.Whole {
		c.copyWhole(part.Range, e.Hosts)
	} else {
		for _, host := range e.Hosts {
			c.copy(host)
		}
	}
	c.sweep.next = func() {
		if e.Next != "" {
			c.core.do(Sweep{From: e.Next, In: part.Range})
			return
		}
		c.sweep.parts = c.sweep.parts[1:]
		c.sweepPart()
	}
	c.resume()
}

// resume continues the sweep when few hosts are being sent.
func (c *copies) resume() {
	if next := c.sweep.next; next != nil && c.sending < maxCopying {
		c.sweep.next = nil
		next()
	}
}

// changing records that URLs of a host are being recorded.
func (c *copies) changing(host string) {
	if h := c.pending[host]; h != nil {
		h.changed = true
	}
}

// copy sends a host to the nodes that have become its backups.
func (c *copies) copy(host string) {
	c.moved.Compared++
	h := c.pendingCopy(host)
	others, is := c.backups(host, h)
	c.copyTo(host, h, others, is, c.oldBackups(c.place.backupID(host)))
}

func (c *copies) pendingCopy(host string) *hostCopy {
	if h := c.pending[host]; h != nil {
		return h
	}
	return &hostCopy{}
}

// copyTo sends a host to those of its backups that may lack it. is reports whether this node is one, too. old are the
// former backups.
func (c *copies) copyTo(host string, h *hostCopy, others []strategy.Node, is bool, old []strategy.Node) {
	has := func(n strategy.Node) bool { return slices.Contains(h.has, n) }
	if is {
		has = func(n strategy.Node) bool { return slices.Contains(old, n) && !slices.Contains(h.to, n) }
		for _, n := range others { // the first of the nodes that have it sends it
			if has(n) && c.place.closerThanSelf(n, c.place.backupID(host)) {
				return
			}
		}
	}
	to := slices.DeleteFunc(slices.Clone(others), has)
	if len(to) == 0 {
		return
	}
	c.pending[host] = h
	for _, n := range to {
		h.add(n)
	}
	c.send(host, h)
}

// add adds a node to those that need the host.
func (h *hostCopy) add(n strategy.Node) {
	if !slices.Contains(h.to, n) {
		h.to = append(h.to, n)
	}
	h.has = slices.DeleteFunc(h.has, func(o strategy.Node) bool { return o == n })
}

// oldBackups returns a host's backups among the old neighbors, without those that may have received only a part. The
// nodes that would be backups in their place may have dropped the host.
func (c *copies) oldBackups(id xor.ID) []strategy.Node {
	var best []neighbor
	for _, o := range c.sweep.old {
		i := len(best)
		for i > 0 && xor.Compare(o.id, best[i-1].id, id) < 0 {
			i--
		}
		if i < c.place.backups {
			best = slices.Insert(best, i, o)
			best = best[:min(len(best), c.place.backups)]
		}
	}
	nodes := make([]strategy.Node, 0, len(best))
	for _, b := range best {
		if b.node == c.core.self || c.sweep.proven.IsZero() || !b.since.After(c.sweep.proven) {
			nodes = append(nodes, b.node)
		}
	}
	return nodes
}

// send sends a host to the nodes that need it, and then drops it if this node is not a backup.
func (c *copies) send(host string, h *hostCopy) {
	if h.busy {
		return
	}
	c.sending++
	h.busy, h.changed = true, false
	to := slices.Clone(h.to)
	c.transfers.sendAll(host, to, func(stored []strategy.Node) {
		c.sending--
		h.busy = false
		h.has = append(h.has, stored...)
		h.to = slices.DeleteFunc(h.to, func(n strategy.Node) bool { return slices.Contains(stored, n) })
		wait := copyAgain
		if len(stored) == len(to) {
			wait = pause
		}
		others, is := c.backups(host, h)
		c.retainBackups(h, others, is)
		switch {
		case len(h.to) > 0:
			c.core.after(wait, func() { c.sendAgain(host, h) })
		case is || len(others) == 0:
			delete(c.pending, host)
			c.hosts.share(host, h.has)
		case c.absences.tooFew(len(others)): // others may come back
			c.core.after(wait, func() { c.send(host, h) })
		default:
			delete(c.pending, host)
			c.hosts.opened(host, 0, 0)
			c.core.do(Drop{Host: host})
		}
		c.resume()
	})
}

// backups returns a host's backups without this node, and whether this node is one.
//
// If other nodes were gone, this node may have a host that is far from it. Then the nodes that it knows may not be the
// closest, and refuse: the backups that were looked up count.
func (c *copies) backups(host string, h *hostCopy) (others []strategy.Node, is bool) {
	if others, is = c.place.otherBackups(host); is || h.found == nil {
		return others, is
	}
	if _, exact := c.place.nearBackups(host); exact {
		return others, false
	}
	return h.found, false
}

// retainBackups keeps only backups among the nodes that need a host. If this node is none, each backup must get all of
// the host before it is dropped here.
func (c *copies) retainBackups(h *hostCopy, others []strategy.Node, is bool) {
	h.to = slices.DeleteFunc(h.to, func(n strategy.Node) bool { return !slices.Contains(others, n) })
	if is {
		return
	}
	for _, n := range others {
		if h.changed || !slices.Contains(h.has, n) {
			h.add(n)
		}
	}
}

// sendAgain sends a host again. A node that is not one of its backups first looks the backups up.
func (c *copies) sendAgain(host string, h *hostCopy) {
	if _, is := c.place.otherBackups(host); is {
		c.send(host, h)
		return
	}
	c.lookups.find(c.place.backupID(host), true, func(nodes []strategy.Node) {
		nodes = slices.DeleteFunc(slices.Clone(nodes), func(n strategy.Node) bool { return n == c.core.self })
		if h.found = nil; len(nodes) > 0 {
			h.found = nodes
		}
		if others, is := c.backups(host, h); !h.busy {
			c.retainBackups(h, others, is)
		}
		c.send(host, h)
	})
}
