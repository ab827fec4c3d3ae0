package mesh

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// A bench is the environment of a part under test: a core, a place among nodes that know each other, and fakes of mail,
// lookups and history.
type bench struct {
	t       *testing.T
	core    *core
	place   *place
	absent  *absences
	posts   []posted
	finds   int
	history map[Hash]Link // of all hosts
	opened  int           // open URLs, as of the last record
}

// posted is an item that a part has posted.
type posted struct {
	to   strategy.Node
	it   item
	done func(strategy.Node, *reply)
}

const benchSelf strategy.Node = "self~1"

func newBench(t *testing.T, others ...strategy.Node) *bench {
	b := &bench{t: t, core: &core{self: benchSelf, log: slog.New(slog.DiscardHandler), now: time.Unix(1e9, 0)},
		history: map[Hash]Link{}}
	b.place = newPlace(b.core, nil, xor.Bits, 3)
	b.place.alone = isolation{core: b.core}
	b.place.freshUntil = b.core.now.Add(1000 * time.Hour)
	b.absent = newAbsences(b.core, b.place, time.Minute, false)
	b.know(others...)
	return b
}

// know adds other nodes to the place.
func (b *bench) know(others ...strategy.Node) {
	b.place.overlay = everybody{benchSelf, append([]strategy.Node{benchSelf}, others...)}
	b.place.publish()
	b.core.out = nil
}

// host returns a host for which a condition holds.
func (b *bench) host(is func(host string) bool) string {
	for i := range 10000 {
		if host := fmt.Sprintf("h%d.test", i); is(host) {
			return host
		}
	}
	b.t.Fatal("there is no such host")
	return ""
}

// pass advances the time.
func (b *bench) pass(d time.Duration) {
	for end := b.core.now.Add(d); ; {
		at, ok := b.core.timers.next()
		if !ok || at.After(end) {
			b.core.now = end
			return
		}
		b.core.now = at
		b.core.timers.fire(at)
	}
}

// out returns the actions of a type since the last call.
func out[A Action](b *bench) (some []A) {
	for _, a := range b.core.out {
		if a, is := a.(A); is {
			some = append(some, a)
		}
	}
	b.core.out = nil
	return some
}

func (b *bench) post(to strategy.Node, it item, done func(strategy.Node, *reply)) {
	b.posts = append(b.posts, posted{to, it, done})
}

// answer answers the posted items of a kind, and returns their receivers.
func (b *bench) answer(kind byte, r *reply) (to []strategy.Node) {
	posts := b.posts
	b.posts = nil
	for _, p := range posts {
		if p.it.kind != kind {
			b.posts = append(b.posts, p)
			continue
		}
		to = append(to, p.to)
		p.done(p.to, r)
	}
	return to
}

func (b *bench) find(id xor.ID, _ bool, f func([]strategy.Node)) {
	b.finds++
	nodes, _ := b.place.near(id, b.place.backups)
	f(nodes)
}

func (b *bench) record(_ string, links []Link, f func(Recorded, []Link)) {
	var r Recorded
	for _, k := range links {
		before := b.history[k.Hash].State
		r.Before = append(r.Before, before)
		if k.State > before {
			b.history[k.Hash] = k
		}
	}
	for _, k := range b.history {
		if k.State == Dispatched {
			r.Open++
		}
	}
	b.opened = r.Open
	f(r, newOf(links, r.Before))
}

func (b *bench) read(_, _ string, all bool, f func(Known)) {
	var k Known
	for _, l := range b.history {
		if all || l.State == Dispatched {
			k.Links = append(k.Links, l)
		}
	}
	slices.SortFunc(k.Links, func(a, b Link) int { return slices.Compare(a.Hash[:], b.Hash[:]) })
	f(k)
}

func (b *bench) readURLs(_ string, links []Link, f func(Known)) {
	var k Known
	for _, l := range links {
		if known := b.history[l.Hash]; known.State != Unknown {
			k.Links = append(k.Links, known)
		}
	}
	f(k)
}

func (b *bench) want(what string, got, want any) {
	b.t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		b.t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func open(links ...byte) (all []Link) {
	for _, l := range links {
		all = append(all, Link{Hash: Hash{l}, State: Dispatched, Item: []byte{l}})
	}
	return all
}

var yes = &reply{code: replyYes}

func always(strategy.Node) bool { return true }

func TestCoreCallsTimersInOrder(t *testing.T) {
	b := newBench(t)
	var called []int
	over := false
	for i, d := range []time.Duration{3 * time.Second, time.Second, 2 * time.Second, time.Second} {
		b.core.at(b.core.now.Add(d), &over, func() { called = append(called, i) })
	}
	canceled := true
	b.core.at(b.core.now, &canceled, func() { t.Error("a canceled timer fires") })
	b.core.begin(b.core.now, nil)
	b.want("wakes", b.core.end(), []Action{Wake{b.core.now.Add(time.Second)}})
	b.want("wakes for the same time", len(b.core.end()), 0)
	b.pass(2 * time.Second)
	b.want("called after 2 s", called, []int{1, 3, 2})
}

func TestSolitudeWaitsAndResumes(t *testing.T) {
	b := newBench(t)
	resumed := 0
	a := &isolation{core: b.core, wait: 15 * time.Second, resume: func() { resumed++ }}
	some, none := xor.ID{1}, xor.ID{}
	b.want("with others", a.occupiedBits(some, none, false), some)
	b.want("all have died", a.occupiedBits(none, some, false), some)
	b.want("waits", a.waits(), true)
	b.pass(15 * time.Second)
	b.want("resumed", resumed, 1)
	b.want("after the wait", a.occupiedBits(none, some, false), none)
	b.want("alone since", a.since, b.core.now.Add(-15*time.Second))
	b.want("another node was met", a.occupiedBits(some, none, false), some)
	b.want("alone since", a.since, time.Time{})
	a.left = true
	b.want("the last one has left", a.occupiedBits(none, some, false), none)
	b.want("waits for one that has left", a.waits(), false)
}

func TestAbsencesWaitForMissingBackups(t *testing.T) {
	b := newBench(t, "a~1")
	host := "h.test"
	b.want("none is missing", b.absent.complete(host, []strategy.Node{"a~1"}), true)
	b.want("a backup lacks it", b.absent.complete(host, nil), false)
	b.absent.applyWait(&reply{number: 5000})
	b.want("another backup waits for one", b.absent.complete(host, []strategy.Node{"a~1"}), false)
	b.want("seen by this node", b.absent.partial(), false)
	b.pass(5 * time.Second)
	b.want("later", b.absent.complete(host, []strategy.Node{"a~1"}), true)
	b.absent.missed()
	b.want("this node waits", b.absent.remaining(), time.Minute.Milliseconds())
	b.want("of two", b.absent.tooFew(2), true)
	b.want("of three", b.absent.tooFew(3), false)
}

func TestLookupsRunOnceForAnID(t *testing.T) {
	b := newBench(t, "a~1")
	l := newLookups(b.core, b.place, 2)
	ids := []xor.ID{{1}, {2}, {3}, {1}}
	found := 0
	for _, id := range ids {
		l.lookUp(id, false, func([]strategy.Node) { found++ })
	}
	b.want("look-ups at once", len(out[Find](b)), 2)
	l.found(Found{ID: xor.ID{9}})
	l.found(Found{ID: xor.ID{1}, Nodes: []strategy.Node{"a~1"}})
	b.want("answered", found, 2)
	b.want("the next look-up", out[Find](b), []Find{{ID: xor.ID{3}, Count: 3}})
	l.lookUp(xor.ID{2}, true, func([]strategy.Node) { found++ })
	l.found(Found{ID: xor.ID{2}})
	b.want("answered", found, 4)
}

func TestRoutesComeFromContactsAndLookups(t *testing.T) {
	b := newBench(t, "a~1", "b~1", "c~1")
	far := farOverlay{b.place.overlay}
	b.place.overlay = far
	host := b.host(func(h string) bool { return !b.place.isFirst(h) })
	known := &contact{host: host, node: "x~1", heard: b.core.now}
	r := newRoutes(b.core, b.place, b, func(string) *contact { return known }, 10)
	to, ok := r.nodeFor(host)
	b.want("by contact", fmt.Sprint(to, ok), "x~1true")
	r.lookUp([]string{host}) // it has refused
	first, _ := b.place.nearBackups(host)
	to, ok = r.nodeFor(host)
	b.want("looked up", fmt.Sprint(to, ok), fmt.Sprint(first[0], true))
	b.want("routed", len(out[Routed](b)), 1)
	r.lookUp([]string{host})
	b.want("routed to the same node", len(out[Routed](b)), 0)
	b.pass(routeFor)
	_, ok = r.nodeFor(host)
	b.want("expired", ok, false)
}

// farOverlay never gives exact results.
type farOverlay struct{ Overlay }

func (o farOverlay) Closest(id xor.ID, n int) ([]strategy.Node, bool) {
	nodes, _ := o.Overlay.Closest(id, n)
	return nodes, false
}
