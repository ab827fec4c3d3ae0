package overlay

import (
	"bytes"
	"slices"

	"kumo/internal/base/varint"
	"kumo/internal/base/xor"
)

// A lookUp finds the live nodes closest to an id.
type lookUp struct {
	id      xor.ID
	want    int
	purpose purpose
	tag     uint64
	list    []candidate // sorted by distance; the node itself is none, because it has nothing new to tell
	under   int         // questions under way
	asked   int         // questions in all
	missed  int         // of these, such that were not answered
	told    []Contact   // what it has found, where that may be told
	mayTell bool
	over    bool
}

// A purpose is what a look-up is for.
type purpose uint8

const (
	forCaller purpose = iota
	forSelf
	forBucket
)

// A candidate is a node that may be one of those that a look-up is to find.
type candidate struct {
	Contact
	state  state
	tries  uint8  // questions that failed
	vain   uint8  // nodes of which it has told that did not answer
	good   uint8  // and that did
	teller uint64 // who has told of it first; 0: it was in the table
	sure   xor.ID // all nodes as close to the id as this were in its answer
	known  bool   // sure means something
	hops   uint8  // 1 if it was in the table, one more than its teller else
}

type state uint8

const (
	waiting state = iota
	underWay
	there // has answered
	failing
)

// farthest is the greatest distance.
var farthest = xor.ID(bytes.Repeat([]byte{0xff}, xor.Size))

// breadth is how many contacts each node is asked for.
func (l *lookUp) breadth(cfg *Config) int {
	if l.purpose != forCaller {
		return cfg.breadth()
	}
	if l.mayTell {
		return cfg.Neighbours // all that the last who is asked knows for certain, for the ids beside this one
	}
	return min(max(l.want+4, 8), cfg.K)
}

func (o *Overlay) looking(p purpose) (n int) {
	for _, l := range o.lookUps {
		if l.purpose == p {
			n++
		}
	}
	return n
}

// find begins a look-up, or answers at once.
func (o *Overlay) find(e Find) {
	want := min(max(e.Want, 1), o.cfg.K)
	closest, exact := o.Closest(e.ID, want, nil)
	if exact || o.looking(forCaller) >= o.cfg.LookUps {
		o.do(Found{Tag: e.Tag, Closest: closest, Exact: exact})
		return
	}
	if e.Told && !e.Anew && !o.left {
		if told := o.regions.closest(e.ID, want, o.now); told != nil {
			o.do(Found{Tag: e.Tag, Closest: told, Exact: true})
			return
		}
	}
	l := o.newLookUp(e.ID, want, forCaller)
	l.tag, l.mayTell = e.Tag, e.Told
	if d := depth(o.id, e.ID); d < len(o.buckets) && o.buckets[d].refreshed != 0 {
		o.buckets[d].refreshed = o.now
	}
	o.advance(l)
}

// newLookUp makes a look-up that begins with what the table has.
func (o *Overlay) newLookUp(id xor.ID, want int, p purpose) *lookUp {
	l := &lookUp{id: id, want: want, purpose: p}
	o.some = o.closest(id, o.cfg.breadth(), o.some[:0])
	l.list = make([]candidate, 0, len(o.some)+8)
	for _, p := range o.some {
		if p != o.self {
			l.add(p.Contact, 0, &o.cfg)
		}
	}
	o.lookUps = append(o.lookUps, l)
	return l
}

// vouch takes note of how many of the contacts that a candidate has named are all there are so close to the id.
func (c *candidate) vouch(id xor.ID, exact, count int, named func(int) xor.ID) {
	switch {
	case exact > count:
		c.known, c.sure = true, farthest
	case exact > 0:
		c.known = true
		c.sure = named(exact - 1).Distance(id)
	}
}

// add puts a node into the list, unless it is there or too far away.
func (l *lookUp) add(c Contact, teller uint64, cfg *Config) {
	at, there := l.at(c.ID)
	if there {
		return
	}
	hops := uint8(1)
	if teller != 0 {
		i := slices.IndexFunc(l.list, func(t candidate) bool { return short(t.ID) == teller })
		if i >= 0 {
			hops += l.list[i].hops
		}
	}
	l.list = slices.Insert(l.list, at, candidate{Contact: c, teller: teller, hops: hops})
	if l.crowded(cfg) {
		l.list = slices.Delete(l.list, len(l.list)-1, len(l.list))
	}
}

// at is the place of an id in the list.
func (l *lookUp) at(id xor.ID) (int, bool) {
	return slices.BinarySearchFunc(l.list, id, func(c candidate, id xor.ID) int {
		return xor.Compare(c.ID, id, l.id)
	})
}

func (l *lookUp) of(id xor.ID) *candidate {
	if i, there := l.at(id); there {
		return &l.list[i]
	}
	return nil
}

// crowded reports whether the list has more nodes than will be asked.
func (l *lookUp) crowded(cfg *Config) bool {
	if len(l.list) <= 4*cfg.breadth() {
		return false
	}
	n := 0
	for i := range l.list {
		if l.list[i].state != failing {
			n++
		}
	}
	return n > 4*cfg.breadth()
}

// goal is how many of the closest have to answer: those that are wanted if one of them is sure that no other is as
// close, or if it is contacts that are wanted, not the closest; else K. sure tells whether one is.
func (l *lookUp) goal(cfg *Config) (n int, sure bool) {
	var best xor.ID
	var last *candidate
	for i := range l.list {
		c := &l.list[i]
		if c.state == failing {
			continue
		}
		if c.state == there && c.known && best.Less(c.sure) {
			best = c.sure
		}
		last = c
		if n++; n == l.want {
			break
		}
	}
	if best == farthest || n == l.want && !best.Less(last.ID.Distance(l.id)) {
		return l.want, true
	}
	if l.purpose != forCaller {
		return l.want, false
	}
	return max(cfg.K, l.want), false
}

// next is the node to ask next: the closest that was not asked, then one that has failed once; of the first so many
// that have not failed for good. done says that all those have answered.
func (l *lookUp) next(goal int) (c *candidate, done bool) {
	done = true
	for i := range l.list {
		switch e := &l.list[i]; e.state {
		case failing:
			continue
		case waiting:
			done = false
			if c == nil || e.tries < c.tries {
				c = e
			}
		case underWay:
			done = false
		}
		if goal--; goal == 0 {
			break
		}
	}
	return c, done
}

// advance asks, until so many questions are under way as may be, or ends the look-up.
func (o *Overlay) advance(l *lookUp) {
	for !l.over {
		goal, _ := l.goal(&o.cfg)
		c, done := l.next(goal)
		spent := l.asked >= mostAsked*o.cfg.K
		if done || l.under == 0 && (c == nil || spent) {
			o.end(l)
			return
		}
		if c == nil || spent || l.under >= l.atOnce(&o.cfg) {
			return
		}
		if !o.ask(question{kind: findQuestion, to: c.Contact, lookUp: l}) {
			return
		}
		c.state = underWay
		l.under++
		l.asked++
	}
}

// atOnce is how many questions may be under way.
func (l *lookUp) atOnce(cfg *Config) int {
	if l.mayTell {
		return min(1+l.missed, cfg.Alpha)
	}
	return cfg.Alpha
}

// resume lets look-ups go on that could not ask because too many questions were under way.
func (o *Overlay) resume() {
	for i := len(o.lookUps) - 1; i >= 0 && i < len(o.lookUps); i-- {
		if l := o.lookUps[i]; l.under == 0 {
			o.advance(l)
		}
	}
}

// advanceWith takes in what a node knows.
func (o *Overlay) advanceWith(l *lookUp, from Contact, m note) {
	l.under--
	c := l.of(from.ID)
	if c == nil {
		o.advance(l)
		return
	}
	c.state = there
	c.Contact = from
	if t := l.teller(c); t != nil {
		t.good++
	}
	ids, met := o.ids[:0], o.met[:0]
	list := varint.Reader{Rest: m.list}
	for range m.count {
		t := nextTold(&list)
		p, id := o.known(string(t.name)), from.ID
		switch {
		case p != nil:
			id = p.ID
		case len(t.name) > 0:
			id = IDOf(string(t.name)).Truncate(o.cfg.Width)
		}
		ids, met = append(ids, id), append(met, p)
	}
	o.ids, o.met = ids, met
	c.vouch(l.id, m.exact, m.count, func(i int) xor.ID { return ids[i] })
	if l.mayTell && m.exact >= min(l.want, m.count+1) {
		o.takeTold(l, from, m)
		o.end(l)
		return
	}
	list = varint.Reader{Rest: m.list}
	for i := range min(m.count, l.breadth(&o.cfg)) {
		t := nextTold(&list)
		if ids[i] != from.ID && ids[i] != o.id {
			o.addTold(l, &t, ids[i], met[i], short(from.ID))
		}
	}
	o.advance(l)
}

// takeTold takes what a node has told, which knows all nodes so close to the id, for what was looked for.
func (o *Overlay) takeTold(l *lookUp, from Contact, m note) {
	ids := o.ids
	l.told = make([]Contact, 0, m.exact)
	list := varint.Reader{Rest: m.list}
	for i := range min(m.count, m.exact) {
		t := nextTold(&list)
		switch p := o.met[i]; {
		case ids[i] == o.id && !o.left:
			l.told = append(l.told, o.self.Contact)
		case ids[i] == o.id:
		case ids[i] == from.ID:
			l.told = append(l.told, from)
		case p != nil:
			l.told = append(l.told, p.Contact)
		default:
			l.told = append(l.told, t.contact(ids[i]))
		}
	}
	if len(l.told) > 0 {
		o.regions.note(l.id, l.told, m.exact > m.count, o.now)
		l.told = l.told[:min(len(l.told), l.want)]
	}
}

// addTold puts a node into the list of which another has told; p if it is in the table. Nothing of it is copied if it
// is not needed.
func (o *Overlay) addTold(l *lookUp, t *told, id xor.ID, p *peer, teller uint64) {
	at, there := l.at(id)
	if there || at >= 4*o.cfg.breadth()+l.asked {
		return
	}
	if p != nil {
		l.add(p.Contact, 0, &o.cfg)
	} else if c := t.contact(id); !o.isAbsent(c) {
		l.add(c, teller, &o.cfg)
	}
}

func (l *lookUp) teller(c *candidate) *candidate {
	if c.teller == 0 {
		return nil
	}
	i := slices.IndexFunc(l.list, func(t candidate) bool { return short(t.ID) == c.teller })
	if i < 0 {
		return nil
	}
	return &l.list[i]
}

// missed takes note that a node did not answer. After Config.Tries times it is given up, and so are the others of whom
// its teller has told, if most of those that were asked did not answer.
func (o *Overlay) missed(l *lookUp, to Contact) {
	l.under--
	l.missed++
	c := l.of(to.ID)
	if c == nil || c.state != underWay {
		o.advance(l)
		return
	}
	c.state = waiting
	if c.tries++; int(c.tries) >= o.cfg.Tries {
		c.state = failing
		if o.known(to.Node) == nil {
			o.dropSpare(to.ID)
			o.markAbsent(to, false)
		}
	}
	if t := l.teller(c); t != nil {
		if t.vain++; int(t.vain) > o.cfg.Alpha && t.vain > 2*t.good {
			l.distrust(short(t.ID))
		}
	}
	o.advance(l)
}

// distrust gives up the nodes of whom one has told that were not asked yet.
func (l *lookUp) distrust(teller uint64) {
	l.list = slices.DeleteFunc(l.list, func(c candidate) bool { return c.teller == teller && c.state == waiting })
}

// found is the look-up's result.
func (o *Overlay) found(l *lookUp) Found {
	if l.told != nil {
		return Found{Tag: l.tag, Closest: l.told, Exact: true}
	}
	f := Found{Tag: l.tag}
	_, f.Exact = l.goal(&o.cfg)
	for i := range l.list {
		switch c := &l.list[i]; {
		case len(f.Closest) == l.want:
		case c.state == there:
			f.Closest = append(f.Closest, c.Contact)
		case c.state != failing:
			f.Exact = false
		}
	}
	at := len(f.Closest)
	for at > 0 && xor.Compare(o.id, f.Closest[at-1].ID, l.id) < 0 {
		at--
	}
	if at < l.want && !o.left {
		f.Closest = slices.Insert(f.Closest, at, o.self.Contact)[:min(len(f.Closest)+1, l.want)]
	}
	return f
}

func (o *Overlay) end(l *lookUp) {
	l.over = true
	o.lookUps = slices.DeleteFunc(o.lookUps, func(x *lookUp) bool { return x == l })
	switch l.purpose {
	case forCaller:
		o.count(l)
		o.do(o.found(l))
	case forSelf:
		o.hasLookedUpSelf()
	case forBucket:
		if d := depth(o.id, l.id); d < len(o.buckets) {
			o.buckets[d].searched = true
		}
		o.chores = min(o.chores, o.now)
	}
}

// Stats are what look-ups for Find have come to that needed messages.
type Stats struct {
	LookUps uint64
	Asked   uint64 // questions
	Hops    uint64 // from this node to the closest that was found, in all
}

// Stats are those of this node.
func (o *Overlay) Stats() Stats { return o.stats }

func (o *Overlay) count(l *lookUp) {
	o.stats.LookUps++
	o.stats.Asked += uint64(l.asked)
	if i := slices.IndexFunc(l.list, func(c candidate) bool { return c.state == there }); i >= 0 {
		o.stats.Hops += uint64(l.list[i].hops)
	}
}
