package overlay

import (
	"slices"

	"kumo/internal/base/varint"
	"kumo/internal/base/xor"
)

// lookUps manages the searches for the nodes closest to an id, for Find and for the table's upkeep.
//
// Its messages are findQuestion and findAnswer; its answer to the caller is Found. Invariants: each Find is answered
// once. A node is in a result if it has answered this lookup, or if Find accepts reports and a node that knows all
// nodes so close to the id has reported it.
type lookUps struct {
	env      *env
	table    *table
	absences *absences
	ask      func(question) bool
	ended    func(purpose)

	all     []*lookUp
	regions regions
	stats   Stats

	scratch    []*peer // scratch
	ids        []xor.ID
	metScratch []*peer // peers in the table with these ids, or nil
}

// maxAsked times K bounds the queries of a lookup.
const maxAsked = 8

// Stats counts the lookups for Find that needed messages.
type Stats struct {
	LookUps uint64
	Asked   uint64 // queries
	Hops    uint64 // total number of hops from this node to the closest one found
}

func (s *lookUps) looking(p purpose) (n int) {
	for _, l := range s.all {
		if l.purpose == p {
			n++
		}
	}
	return n
}

// find starts a lookup, or answers at once.
func (s *lookUps) find(e Find) {
	want := min(max(e.Want, 1), s.env.cfg.K)
	closest, exact := s.table.appendClosest(e.ID, want, nil)
	if exact || s.looking(forCaller) >= s.env.cfg.LookUps {
		s.env.do(Found{Tag: e.Tag, Closest: closest, Exact: exact})
		return
	}
	if e.AcceptReported && !e.SkipCache && !s.table.leaving {
		if told := s.regions.closest(e.ID, want, s.env.now); told != nil {
			s.env.do(Found{Tag: e.Tag, Closest: told, Exact: true})
			return
		}
	}
	l := s.newLookUp(e.ID, want, forCaller)
	l.tag, l.acceptReported = e.Tag, e.AcceptReported
	if d := depth(s.table.id, e.ID); d < len(s.table.buckets) && s.table.buckets[d].refreshed != 0 {
		s.table.buckets[d].refreshed = s.env.now
	}
	s.advance(l)
}

// newLookUp returns a lookup that starts with the closest contacts of the table.
func (s *lookUps) newLookUp(id xor.ID, want int, p purpose) *lookUp {
	l := &lookUp{id: id, want: want, purpose: p}
	s.scratch = s.table.closest(id, s.env.cfg.breadth(), s.scratch[:0])
	l.list = make([]candidate, 0, len(s.scratch)+8)
	for _, p := range s.scratch {
		if p != s.table.self {
			l.add(p.Contact, 0, &s.env.cfg)
		}
	}
	s.all = append(s.all, l)
	return l
}

// advance sends queries as far as the limits allow, or ends the lookup.
func (s *lookUps) advance(l *lookUp) {
	for !l.over {
		goal, _ := l.goal(&s.env.cfg)
		c, done := l.next(goal)
		spent := l.asked >= maxAsked*s.env.cfg.K
		if done || l.under == 0 && (c == nil || spent) {
			s.end(l)
			return
		}
		if c == nil || spent || l.under >= l.atOnce(&s.env.cfg) {
			return
		}
		if !s.ask(question{kind: findQuestion, to: c.Contact, lookUp: l}) {
			return
		}
		c.state = underWay
		l.under++
		l.asked++
	}
}

// resume continues lookups that could not send a query because too many were in progress.
func (s *lookUps) resume() {
	for i := len(s.all) - 1; i >= 0 && i < len(s.all); i-- {
		if l := s.all[i]; l.under == 0 {
			s.advance(l)
		}
	}
}

// advanceWith handles a node's answer.
func (s *lookUps) advanceWith(l *lookUp, from Contact, m parsedMessage) {
	l.under--
	c := l.of(from.ID)
	if c == nil {
		s.advance(l)
		return
	}
	c.state = answered
	c.Contact = from
	if t := l.reporter(c.reporter); t != nil {
		t.goodReports++
	}
	ids, met := s.ids[:0], s.metScratch[:0]
	list := varint.Reader{Rest: m.list}
	for range m.count {
		t := nextReported(&list)
		p, id := s.table.known(string(t.name)), from.ID
		switch {
		case p != nil:
			id = p.ID
		case len(t.name) > 0:
			id = IDOf(string(t.name)).Truncate(s.env.cfg.Width)
		}
		ids, met = append(ids, id), append(met, p)
	}
	s.ids, s.metScratch = ids, met
	c.setExact(l.id, m.exact, m.count, func(i int) xor.ID { return ids[i] })
	if l.acceptReported && m.exact >= min(l.want, m.count+1) {
		s.applyReport(l, from, m)
		s.end(l)
		return
	}
	list = varint.Reader{Rest: m.list}
	for i := range min(m.count, l.breadth(&s.env.cfg)) {
		t := nextReported(&list)
		if ids[i] != from.ID && ids[i] != s.table.id {
			s.addReported(l, &t, ids[i], met[i], short(from.ID))
		}
	}
	s.advance(l)
}

// applyReport uses an answer as the result, since the node knows all nodes so close to the id.
func (s *lookUps) applyReport(l *lookUp, from Contact, m parsedMessage) {
	ids := s.ids
	l.reported = make([]Contact, 0, m.exact)
	list := varint.Reader{Rest: m.list}
	for i := range min(m.count, m.exact) {
		t := nextReported(&list)
		switch p := s.metScratch[i]; {
		case ids[i] == s.table.id && !s.table.leaving:
			l.reported = append(l.reported, s.table.self.Contact)
		case ids[i] == s.table.id:
		case ids[i] == from.ID:
			l.reported = append(l.reported, from)
		case p != nil:
			l.reported = append(l.reported, p.Contact)
		default:
			l.reported = append(l.reported, t.contact(ids[i]))
		}
	}
	if len(l.reported) > 0 {
		s.regions.add(l.id, l.reported, m.exact > m.count, s.env.now)
		l.reported = l.reported[:min(len(l.reported), l.want)]
	}
}

// addReported adds a node that another has reported to the list. p is the peer if it is in the table. Data of t is
// copied only if needed.
func (s *lookUps) addReported(l *lookUp, t *reportedContact, id xor.ID, p *peer, reporter uint64) {
	at, there := l.at(id)
	if there || at >= 4*s.env.cfg.breadth()+l.asked {
		return
	}
	if p != nil {
		l.add(p.Contact, 0, &s.env.cfg)
	} else if c := t.contact(id); !s.absences.has(c) {
		l.add(c, reporter, &s.env.cfg)
	}
}

// missed handles a query without an answer. After Config.Tries failures the lookup drops the node. If most of the
// reporter's nodes did not answer, it also drops the reporter's other nodes.
func (s *lookUps) missed(l *lookUp, to Contact) {
	l.under--
	l.missed++
	c := l.of(to.ID)
	if c == nil || c.state != underWay {
		s.advance(l)
		return
	}
	c.state = waiting
	if c.tries++; int(c.tries) >= s.env.cfg.Tries {
		c.state = failing
		if s.table.known(to.Node) == nil {
			s.table.dropSpare(to.ID)
			s.absences.mark(to, false)
		}
	}
	if t := l.reporter(c.reporter); t != nil {
		if t.badReports++; int(t.badReports) > s.env.cfg.Alpha && t.badReports > 2*t.goodReports {
			l.dropReported(short(t.ID))
		}
	}
	s.advance(l)
}

func (s *lookUps) found(l *lookUp) Found {
	if l.reported != nil {
		return Found{Tag: l.tag, Closest: l.reported, Exact: true}
	}
	f := Found{Tag: l.tag}
	_, f.Exact = l.goal(&s.env.cfg)
	for i := range l.list {
		switch c := &l.list[i]; {
		case len(f.Closest) == l.want:
		case c.state == answered:
			f.Closest = append(f.Closest, c.Contact)
		case c.state != failing:
			f.Exact = false
		}
	}
	at := len(f.Closest)
	for at > 0 && xor.Compare(s.table.id, f.Closest[at-1].ID, l.id) < 0 {
		at--
	}
	if at < l.want && !s.table.leaving {
		f.Closest = slices.Insert(f.Closest, at, s.table.self.Contact)[:min(len(f.Closest)+1, l.want)]
	}
	return f
}

func (s *lookUps) end(l *lookUp) {
	l.over = true
	s.all = slices.DeleteFunc(s.all, func(x *lookUp) bool { return x == l })
	switch l.purpose {
	case forCaller:
		s.count(l)
		s.env.do(s.found(l))
	case forBucket:
		if d := depth(s.table.id, l.id); d < len(s.table.buckets) {
			s.table.buckets[d].searched = true
		}
	}
	s.ended(l.purpose)
}

func (s *lookUps) count(l *lookUp) {
	s.stats.LookUps++
	s.stats.Asked += uint64(l.asked)
	if i := slices.IndexFunc(l.list, func(c candidate) bool { return c.state == answered }); i >= 0 {
		s.stats.Hops += uint64(l.list[i].hops)
	}
}
