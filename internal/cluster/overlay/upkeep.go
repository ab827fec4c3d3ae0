package overlay

import (
	"time"

	"kumo/internal/base/xor"
)

// An upkeep maintains the table: it joins the network, looks up this node's own id and old buckets, pings contacts that
// were silent for long, and queries departed nodes, so that the parts of a partitioned network find each other.
//
// It has no messages of its own. Invariant: the node has joined when it has looked itself up and found a contact, or
// when it knows no node to query.
type upkeep struct {
	env       *env
	table     *table
	absences  *absences
	questions questions
	lookUps   *lookUps

	choresAt       time.Duration // next periodic work
	selfAt         time.Duration // next lookup of this node's own id
	healAt         time.Duration // next query to a departed node
	selfInterval   time.Duration // between lookups of the own id; grows fourfold
	neighborDeaths int           // since the last lookup of the own id
	bootstrap      []Contact     // contacts of the last Join
	departed       ring[Contact] // contacts that were in the table and died
}

const (
	maxDeparted   = 16 // departed contacts that are kept, and contacts of Join
	firstPause    = 2  // Timeouts between the first two lookups of the own id
	maxAlonePause = 30 // maximum of that while there are no contacts
	selfSample    = 4  // closest nodes to query in a repeated lookup of the own id
	maxRefreshed  = 2  // concurrent bucket lookups
	bucketSample  = 5  // contacts that must answer a bucket lookup
	maxChecked    = 8  // concurrent checks
)

// join starts joining the network through contacts.
func (u *upkeep) join(contacts []Contact) {
	u.bootstrap = u.bootstrap[:0]
	for _, c := range contacts[:min(len(contacts), maxDeparted)] {
		c.ID, c.Addrs = u.table.idOf(c.Node), clean(c.Addrs)
		if c.ID != u.table.id && c.Node != "" && len(c.Node) <= MaxName {
			u.bootstrap = append(u.bootstrap, c)
		}
	}
	if len(u.bootstrap) == 0 && u.table.live == 0 {
		u.table.joined = true
	}
	u.selfAt, u.choresAt, u.selfInterval = u.env.now, u.env.now, 0
}

// doChores runs the periodic work that is due.
func (u *upkeep) doChores() {
	u.choresAt = u.env.now + u.env.cfg.Check/32
	u.lookUpSelf()
	if u.selfAt > u.env.now {
		u.choresAt = min(u.choresAt, u.selfAt)
	}
	u.refresh()
	u.check()
	u.heal()
}

// lookUpSelf finds the neighbors, also after some have died. It repeats soon after the node has joined, then less and
// less often: the nodes that answered at first may have been joining themselves.
func (u *upkeep) lookUpSelf() {
	known := len(u.bootstrap)+len(u.departed.all)+u.table.live > 0
	if u.neighborDeaths > u.env.cfg.Neighbors/4 {
		u.selfAt, u.selfInterval = u.env.now, 0
	}
	if !known || u.selfAt > u.env.now || u.lookUps.looking(forSelf) > 0 {
		return
	}
	u.neighborDeaths = 0
	most := u.env.cfg.Refresh
	if u.table.live == 0 {
		most = maxAlonePause * u.env.cfg.Timeout
	}
	u.selfInterval = min(max(4*u.selfInterval, firstPause*u.env.cfg.Timeout), most)
	u.selfAt = u.env.now + u.jitter(u.selfInterval)
	want := u.env.cfg.breadth()
	if u.table.joined && u.table.live >= u.env.cfg.Neighbors {
		// neighbors report each other; a distant node may know a node that all of them miss
		want = min(selfSample, want)
		u.queryFar()
	}
	l := u.lookUps.newLookUp(u.table.id, want, forSelf)
	for _, all := range [][]Contact{u.bootstrap, u.departed.all} {
		for _, c := range all {
			if u.table.known(c.Node) == nil {
				l.add(c, 0, &u.env.cfg)
			}
		}
	}
	u.lookUps.advance(l)
}

// queryFar queries a contact in the farthest bucket for the nodes closest to this one.
func (u *upkeep) queryFar() {
	for i := range u.table.buckets {
		if live := u.table.buckets[i].live; len(live) > 0 {
			p := live[u.env.rng.IntN(len(live))]
			u.questions.send(question{kind: findQuestion, to: p.Contact, healing: true})
			return
		}
	}
}

// lookedUp handles the end of a lookup.
func (u *upkeep) lookedUp(p purpose) {
	switch {
	case p == forBucket:
		u.choresAt = min(u.choresAt, u.env.now)
	case p == forSelf && (u.table.live > 0 || len(u.bootstrap) == 0 && len(u.departed.all) == 0):
		u.table.joined, u.choresAt = true, u.env.now
	}
}

// jitter returns a random duration within a quarter of d.
func (u *upkeep) jitter(d time.Duration) time.Duration {
	return d*3/4 + time.Duration(u.env.rng.Int64N(int64(d)/2))
}

// refresh looks up an id in each bucket up to that of the farthest neighbor, if the last lookup there is old. It skips
// buckets in which half of the contacts were heard from recently.
func (u *upkeep) refresh() {
	if !u.table.joined || len(u.table.near) == 0 || u.table.prefix == 0 {
		return
	}
	last := depth(u.table.id, u.table.near[len(u.table.near)-1].ID)
	for d := 0; d <= last && u.lookUps.looking(forBucket) < maxRefreshed; d++ {
		b := &u.table.buckets[d]
		if b.refreshed != 0 && b.refreshed+u.env.cfg.Refresh > u.env.now {
			continue
		}
		b.searched = false
		b.refreshed = max(u.env.now-time.Duration(u.env.rng.Int64N(int64(u.env.cfg.Refresh)/4)), 1)
		if u.countRecent(b) < (u.env.cfg.K+1)/2 {
			u.lookUps.advance(u.lookUps.newLookUp(u.randomIn(d), min(bucketSample, u.env.cfg.K), forBucket))
		}
	}
}

// countRecent counts a bucket's contacts that were heard from recently.
func (u *upkeep) countRecent(b *bucket) (n int) {
	for _, p := range b.live {
		if u.env.now-p.heard <= u.env.cfg.Check {
			n++
		}
	}
	return n
}

// randomIn returns a random id in the bucket of a depth.
func (u *upkeep) randomIn(d int) xor.ID {
	id := u.table.id
	for i := d / 8; i < len(id); i++ {
		random, from := byte(u.env.rng.Uint32()), byte(0xff)
		if i == d/8 {
			bit := byte(0x80) >> (d % 8)
			id[i] ^= bit
			from = bit - 1
		}
		id[i] = id[i]&^from | random&from
	}
	return id.Truncate(u.env.cfg.Width)
}

// check pings contacts other than neighbors that were silent for long, or have not answered for longer.
func (u *upkeep) check() {
	asked := 0
	for i := range u.table.buckets {
		for _, p := range u.table.buckets[i].live {
			old := u.env.now-p.heard > u.env.cfg.Check || u.env.now-p.answered > 2*u.env.cfg.Check
			if old && !p.near && asked < maxChecked {
				u.questions.ping(p)
				asked++
			}
		}
	}
}

// heal queries a node that died or was used to join, for nodes that would be neighbors. If the network was partitioned,
// these are in another part of it.
func (u *upkeep) heal() {
	n := len(u.bootstrap) + len(u.departed.all)
	if n == 0 || u.healAt > u.env.now && u.table.live > n { // in a large network other nodes do this, too
		return
	}
	u.healAt = u.env.now + u.env.cfg.Check/12
	var c Contact
	if i := u.env.rng.IntN(n); i < len(u.bootstrap) {
		c = u.bootstrap[i]
	} else {
		c = u.departed.all[i-len(u.bootstrap)]
	}
	if u.table.known(c.Node) == nil && !u.absences.has(c) {
		u.questions.send(question{kind: findQuestion, to: c, healing: true})
	}
}

// lost handles the death or departure of a contact.
func (u *upkeep) lost(c Contact, near bool) {
	if near {
		u.neighborDeaths++
	}
	u.departed.add(c, maxDeparted)
}
