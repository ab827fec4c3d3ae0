package overlay

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kumo/internal/base/xor"
)

// newParts returns the shared parts of an overlay without contacts.
func newParts(cfg Config) (*env, *table) {
	cfg.Self.Node = "self"
	env := &env{cfg: cfg.withDefaults(), rng: rand.New(rand.NewPCG(1, 1)), now: time.Hour}
	table := newTable(&env.cfg, &peer{Contact: env.cfg.Self})
	return env, &table
}

func contact(i int) Contact {
	name := fmt.Sprintf("n%d", i)
	return Contact{Node: name, ID: IDOf(name), Addrs: []string{name}}
}

// TestAnAnswerCountsOnce: an answer counts once, only from the node that was queried, also if it is late, and not after
// a farewell.
func TestAnAnswerCountsOnce(t *testing.T) {
	env, table := newParts(Config{Questions: 3, Neighbors: 2})
	x := &exchange{env: env, table: table}
	for i := range 4 {
		if asked := x.send(question{kind: pingQuestion, to: contact(i)}); asked != (i < 3) {
			t.Errorf("question %d is asked: %v", i, asked)
		}
	}
	answers := func(from, number int, kind byte) bool {
		_, answers := x.matchAnswer(contact(from).Node, &parsedMessage{kind: kind, number: uint32(number)})
		return answers
	}
	if answers(0, 2, pingAnswer) || answers(0, 1, nearAnswer) || !answers(0, 1, pingAnswer) ||
		answers(0, 1, pingAnswer) {
		t.Error("an answer of another node or kind counts, or one counts twice or never")
	}
	x.dropQuestions(contact(2))
	env.now += env.cfg.Timeout
	var failed []string
	x.expire(func(q question) { failed = append(failed, q.to.Node) })
	if slices.Sort(failed); !slices.Equal(failed, []string{"n1", "n2"}) {
		t.Errorf("%v fail", failed)
	}
	if !answers(1, 2, pingAnswer) || answers(2, 3, pingAnswer) {
		t.Error("a late answer does not count, or one after a farewell does")
	}
	for i := range 9 {
		x.env.cfg.Questions = 100
		if tried := x.try(contact(i), pingQuestion, 7); tried != (i == 0) {
			t.Errorf("%d nodes that one node has reported are asked at a time", i+1)
		}
	}
}

// TestANodeThatMovedIsNotAbsent: a node is absent only at the addresses where it did not answer, and only for a while.
func TestANodeThatMovedIsNotAbsent(t *testing.T) {
	env, _ := newParts(Config{})
	a := &absences{env: env}
	moved := contact(0)
	moved.Addrs = []string{"elsewhere"}
	if a.mark(contact(0), false); !a.has(contact(0)) || a.has(moved) || a.has(contact(1)) {
		t.Error("an absence is of another node or address")
	}
	if a.mark(contact(0), true); !a.has(moved) {
		t.Error("a node that has said farewell is not absent at other addresses")
	}
	a.mark(contact(1), false)
	if a.forget(); a.has(contact(1)) || !a.has(contact(0)) {
		t.Error("a node that was offline forgets farewells, or does not forget others")
	}
	if env.now += time.Hour; a.has(contact(0)) {
		t.Error("an absence does not end")
	}
	for i := range 3 * maxAbsent {
		a.mark(contact(i), false)
	}
	if len(a.recent.all) > maxAbsent || !a.has(contact(3*maxAbsent-1)) {
		t.Errorf("%d absences are retained", len(a.recent.all))
	}
}

// found returns the last Found.
func found(t *testing.T, env *env) Found {
	t.Helper()
	f, is := env.out[len(env.out)-1].(Found)
	if !is {
		t.Fatalf("no result: %+v", env.out)
	}
	return f
}

// TestALookUpFindsLiveNodes: the result of a lookup is the closest nodes that answer, whatever others do.
func TestALookUpFindsLiveNodes(t *testing.T) {
	env, table := newParts(Config{K: 4, Tries: 1, Neighbors: 4, Alpha: 2})
	env.cfg.LookUps = 1
	a := &absences{env: env}
	var asked []question
	ends := 0
	s := &lookUps{env: env, table: table, absences: a, regions: newRegions(), ended: func(purpose) { ends++ },
		ask: func(q question) bool { asked = append(asked, q); return true }}
	for i := range 12 {
		if c := contact(i); table.isNear(c.ID) || table.hasRoom(table.bucket(c.ID)) {
			table.insert(&peer{Contact: c})
		}
	}
	table.prefix = xor.Bits // it does not know all nodes of any part of the space
	id := IDOf("wanted")
	s.find(Find{ID: id, Tag: 5, Want: 2})
	var live []Contact
	for n := 0; len(asked) > 0; n++ {
		q := asked[0]
		if asked = asked[1:]; len(asked) >= env.cfg.Alpha {
			t.Fatalf("%d questions are under way", len(asked)+1)
		}
		if n%3 == 0 {
			s.missed(q.lookUp, q.to)
			continue
		}
		live = append(live, q.to)
		s.advanceWith(q.lookUp, q.to, parsedMessage{kind: findAnswer})
	}
	live = append(live, table.self.Contact)
	slices.SortFunc(live, func(a, b Contact) int { return xor.Compare(a.ID, b.ID, id) })
	f := found(t, env)
	if f.Tag != 5 || f.Exact || len(f.Closest) != 2 || f.Closest[0].Node != live[0].Node ||
		f.Closest[1].Node != live[1].Node {
		t.Errorf("%+v is found, and live are %v", f, live)
	}
	if ends != 1 || len(s.all) > 0 || s.stats.LookUps != 1 {
		t.Errorf("%d look-ups have ended, %d have not; %+v", ends, len(s.all), s.stats)
	}
	s.find(Find{ID: id, Want: 2}) // in progress
	s.find(Find{ID: id, Tag: 6, Want: 2})
	if f := found(t, env); f.Tag != 6 || f.Exact || len(f.Closest) != 2 {
		t.Errorf("beyond the limit %+v is found", f)
	}
}

// asks records queries instead of sending them.
type asks struct{ pings, tries []string }

func (a *asks) send(q question) bool { a.tries = append(a.tries, q.to.Node); return true }
func (a *asks) ping(p *peer)         { a.pings = append(a.pings, p.Node) }
func (a *asks) try(c Contact, _ byte, _ uint64) bool {
	a.tries = append(a.tries, c.Node)
	return true
}
func (a *asks) awaitsNeighbor() bool { return false }

// TestOnlyAnswersAdmit receives a message of a node, then its answer, and then no answers to several queries.
func TestOnlyAnswersAdmit(t *testing.T) {
	env, table := newParts(Config{Tries: 2})
	asks, lost := &asks{}, []string(nil)
	a := &absences{env: env}
	v := &liveness{env: env, table: table, absences: a, questions: asks,
		watch:   &watch{env: env, table: table, absences: a, questions: asks},
		removed: func(c Contact, near bool) { lost = append(lost, fmt.Sprint(c.Node, near)) }}
	c := contact(1)
	if v.heard(c); table.live != 0 || len(asks.tries) != 1 {
		t.Errorf("a question has brought %d contacts into the table; %v are asked", table.live, asks.tries)
	}
	p := v.answered(question{to: c, asked: env.now}, c)
	if p == nil || table.known(c.Node) != p || !p.near || p.confirmed != env.now {
		t.Fatalf("an answer brings %+v", p)
	}
	together := question{to: c, asked: env.now + 1}
	for range 2 {
		env.now += env.cfg.Timeout
		v.failed(together)
	}
	if p.fails != 1 || !p.live || len(asks.pings) == 0 {
		t.Errorf("two questions that were under way together fail as %d; pings %v", p.fails, asks.pings)
	}
	if v.failed(question{to: c, asked: env.now}); p.live || !a.has(c) || !slices.Equal(lost, []string{"n1true"}) {
		t.Errorf("a dead node is in the table: %+v; lost %v", p, lost)
	}
}

// TestAPlaceIsKnownWhenAllListsAreHere lets neighbors send their lists, one after the other.
func TestAPlaceIsKnownWhenAllListsAreHere(t *testing.T) {
	env, table := newParts(Config{Neighbors: 4})
	w := &watch{env: env, table: table, absences: &absences{env: env}, questions: &asks{}}
	table.joined, table.prefix = true, xor.Bits
	for i := range 3 {
		p := &peer{Contact: contact(i), confirmed: env.now}
		table.insert(p)
	}
	w.requestLists()
	for i := range 3 {
		w.extendPrefix()
		if w.updateFresh(); w.complete || w.positioned || len(env.out) > 0 {
			t.Fatalf("the place is known by %d lists of 3", i)
		}
		w.applyList(table.known(contact(i).Node), parsedMessage{listed: true, version: 5})
	}
	w.extendPrefix()
	w.updateFresh()
	if !w.positioned || table.prefix != 0 || len(env.out) != 1 {
		t.Fatalf("placed %v, prefix %d, %+v", w.positioned, table.prefix, env.out)
	}
	if f, is := env.out[0].(Fresh); !is || !f.Until.Equal(env.began.Add(env.now+w.trustTime())) {
		t.Errorf("it promises %+v", env.out[0])
	}
}
