package overlay

import (
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/base/xor"
)

// interval is the time until a neighbour that was just heard of is asked again.
func (o *Overlay) interval() time.Duration {
	every := o.cfg.every()
	return every - time.Duration(o.rng.Int64N(int64(every)/8))
}

// askAt has a neighbour asked at a time.
func (o *Overlay) askAt(p *peer, at time.Duration) {
	p.next = at
	o.due = min(o.due, at)
}

// early is by how much something is done early because the node is awake.
func (o *Overlay) early() time.Duration { return o.cfg.every() / slack }

// askNeighbours asks those whose time has come.
func (o *Overlay) askNeighbours() {
	early := o.early()
	if o.due > o.now+early {
		return
	}
	o.due = forever
	for _, p := range o.near {
		if p.next <= o.now+early {
			o.ping(p)
		}
		if !p.pinged {
			o.due = min(o.due, p.next)
		}
	}
}

// forever is later than anything is due.
const forever = time.Duration(1) << 62

// told takes in a neighbour's list of neighbours: nodes of which the node did not know, and that would be its own, are
// asked whether they live.
func (o *Overlay) told(p *peer, m note) {
	switch {
	case !m.listed:
	case o.tryTold(p.ID, m):
		p.version = m.version
	default:
		p.version = 0 // it tells again when there is room
		o.askAt(p, min(p.next, o.now+o.cfg.Timeout))
	}
}

// tryTold asks those of the nodes that another has named. It reports whether there was room for all.
func (o *Overlay) tryTold(teller xor.ID, m note) bool {
	all := true
	r := varint.Reader{Rest: m.list}
	for range m.count {
		c := nextTold(&r)
		if len(c.name) == 0 {
			continue
		}
		if o.known(string(c.name)) != nil {
			continue
		}
		id := IDOf(string(c.name)).Truncate(o.cfg.Width)
		if id == o.id || !o.isNear(id) {
			continue
		}
		if known := c.contact(id); !o.isAbsent(known) {
			all = o.tryNear(known, short(teller)) && all
		}
	}
	return all
}

// unsettle lets all neighbours tell their lists again, because one died, and there is room for a larger part of the
// space among them: who else lies in it may be in those. Until they have told them, prefix stays as it is.
func (o *Overlay) unsettle() {
	o.settled = false
	for _, p := range o.near {
		p.version = 0
	}
}

// settle widens prefix when all neighbours have told theirs, and those have answered of whom they told.
func (o *Overlay) settle() {
	if o.settled || !o.joined {
		return
	}
	for _, p := range o.near {
		if p.version == 0 {
			return
		}
	}
	for i := range o.questions {
		if q := &o.questions[i]; q.lookUp == nil && !q.healed && o.known(q.to.Node) == nil && o.isNear(q.to.ID) {
			return
		}
	}
	o.settled, o.prefix = true, o.watched()
}

// isPlaced reports whether the node knows its place: its neighbours, and somebody in each farther bucket, unless it has
// looked and found nobody.
func (o *Overlay) isPlaced() bool {
	if !o.joined || !o.settled || o.left {
		return false
	}
	for d := range min(o.prefix, len(o.buckets)) {
		if b := &o.buckets[d]; len(b.live) == 0 && !b.searched {
			return false
		}
	}
	return true
}

// margin is for how long at least no neighbour takes this node for dead that has heard of it: until it asks again, and
// for all its questions.
func (o *Overlay) margin() time.Duration {
	return o.cfg.every()*3/4 + time.Duration(o.cfg.Tries)*o.cfg.Timeout
}

// freshen says until when what the node knows holds: until one of those who would take its place may have found it
// gone.
func (o *Overlay) freshen() {
	if !o.placed {
		o.placed, o.moved = o.isPlaced(), true
	}
	if !o.placed || !o.moved && o.live > 0 {
		return
	}
	o.moved = false
	since := o.now
	if d := o.guards(); d >= 0 {
		for _, p := range o.buckets[d].live {
			if p.near {
				since = min(since, p.vouched)
			}
		}
	}
	if until := since + o.margin(); until > o.now && until >= o.fresh+o.cfg.Timeout {
		o.fresh = until
		o.do(Fresh{Until: o.began.Add(until)})
	}
}

// join begins to become part of the network.
func (o *Overlay) join(contacts []Contact) {
	o.bootstrap = o.bootstrap[:0]
	for _, c := range contacts[:min(len(contacts), mostDeparted)] {
		c.ID, c.Addrs = o.idOf(c.Node), clean(c.Addrs)
		if c.ID != o.id && c.Node != "" && len(c.Node) <= MaxName {
			o.bootstrap = append(o.bootstrap, c)
		}
	}
	if len(o.bootstrap) == 0 && o.live == 0 {
		o.joined = true
	}
	o.selfAt, o.chores, o.pause = o.now, o.now, 0
}

// doChores does what is done now and then.
func (o *Overlay) doChores() {
	o.chores = o.now + o.cfg.Check/32
	o.lookUpSelf()
	if o.selfAt > o.now {
		o.chores = min(o.chores, o.selfAt)
	}
	o.refresh()
	o.check()
	o.heal()
}

// lookUpSelf finds the neighbours, or others in place of those that died. Soon after the node has joined it does so
// again, and then ever less often: those it has asked may have been about to join themselves.
func (o *Overlay) lookUpSelf() {
	known := len(o.bootstrap)+len(o.departed)+o.live > 0
	if o.losses > o.cfg.Neighbours/4 {
		o.selfAt, o.pause = o.now, 0
	}
	if !known || o.selfAt > o.now || o.looking(forSelf) > 0 {
		return
	}
	o.losses = 0
	most := o.cfg.Refresh
	if o.live == 0 {
		most = lastAlone * o.cfg.Timeout
	}
	o.pause = min(max(4*o.pause, firstPause*o.cfg.Timeout), most)
	o.selfAt = o.now + o.around(o.pause)
	want := o.cfg.breadth()
	if o.joined && o.live >= o.cfg.Neighbours {
		// its neighbours tell of others themselves; what all of them miss may be known to who is far from them
		want = min(again, want)
		o.askFar()
	}
	l := o.newLookUp(o.id, want, forSelf)
	for _, all := range [][]Contact{o.bootstrap, o.departed} {
		for _, c := range all {
			if o.known(c.Node) == nil {
				l.add(c, 0, &o.cfg)
			}
		}
	}
	o.advance(l)
}

// again is how many of the closest a node asks that looks itself up again.
const again = 4

// askFar asks one of the contacts in the farthest bucket which nodes it knows that are closest to this one.
func (o *Overlay) askFar() {
	for i := range o.buckets {
		if live := o.buckets[i].live; len(live) > 0 {
			p := live[o.rng.IntN(len(live))]
			o.ask(question{kind: findQuestion, to: p.Contact, healed: true})
			return
		}
	}
}

// hasLookedUpSelf goes on after that.
func (o *Overlay) hasLookedUpSelf() {
	if o.live > 0 || len(o.bootstrap) == 0 && len(o.departed) == 0 {
		o.joined, o.chores = true, o.now
	}
}

// around is a time that is about another: a quarter less or more.
func (o *Overlay) around(d time.Duration) time.Duration {
	return d*3/4 + time.Duration(o.rng.Int64N(int64(d)/2))
}

const (
	mostRefreshed = 2 // buckets that are looked up at a time
	sample        = 5 // contacts that have to answer then
)

// refresh looks up an id in each bucket where that was not done for long, as far as the neighbours, unless half of the
// contacts for which it has room were heard of lately.
func (o *Overlay) refresh() {
	if !o.joined || len(o.near) == 0 || o.prefix == 0 {
		return
	}
	last := depth(o.id, o.near[len(o.near)-1].ID)
	for d := 0; d <= last && o.looking(forBucket) < mostRefreshed; d++ {
		b := &o.buckets[d]
		if b.refreshed != 0 && b.refreshed+o.cfg.Refresh > o.now {
			continue
		}
		b.searched = false
		b.refreshed = max(o.now-time.Duration(o.rng.Int64N(int64(o.cfg.Refresh)/4)), 1)
		if o.lively(b) < (o.cfg.K+1)/2 {
			o.advance(o.newLookUp(o.randomIn(d), min(sample, o.cfg.K), forBucket))
		}
	}
}

// lively counts a bucket's contacts that were heard of not long ago.
func (o *Overlay) lively(b *bucket) (n int) {
	for _, p := range b.live {
		if o.now-p.heard <= o.cfg.Check {
			n++
		}
	}
	return n
}

// randomIn is an id in the bucket of a depth.
func (o *Overlay) randomIn(d int) xor.ID {
	id := o.id
	for i := d / 8; i < len(id); i++ {
		random, from := byte(o.rng.Uint32()), byte(0xff)
		if i == d/8 {
			bit := byte(0x80) >> (d % 8)
			id[i] ^= bit
			from = bit - 1
		}
		id[i] = id[i]&^from | random&from
	}
	return id.Truncate(o.cfg.Width)
}

// mostChecked is how many contacts are asked at a time whether they live.
const mostChecked = 8

// check asks contacts that are no neighbours and were not heard of for long, or have only asked for longer.
func (o *Overlay) check() {
	asked := 0
	for i := range o.buckets {
		for _, p := range o.buckets[i].live {
			old := o.now-p.heard > o.cfg.Check || o.now-p.answered > 2*o.cfg.Check
			if old && !p.near && asked < mostChecked {
				o.ping(p)
				asked++
			}
		}
	}
}

// heal asks one of the nodes that died, or by which this one joined, whether it knows nodes that would be neighbours:
// those of another part of the network, if it was cut.
func (o *Overlay) heal() {
	n := len(o.bootstrap) + len(o.departed)
	if n == 0 || o.healAt > o.now && o.live > n { // in a large network others look, too
		return
	}
	o.healAt = o.now + o.cfg.Check/12
	var c Contact
	if i := o.rng.IntN(n); i < len(o.bootstrap) {
		c = o.bootstrap[i]
	} else {
		c = o.departed[i-len(o.bootstrap)]
	}
	if o.known(c.Node) == nil && !o.isAbsent(c) {
		o.ask(question{kind: findQuestion, to: c, healed: true})
	}
}
