package mesh

import (
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// movesOf are the ways in which worldHost moves from its target to another node. Each returns that node.
var movesOf = map[string]func(w *world, from *worldNode) *worldNode{
	"a closer node joins": func(w *world, _ *worldNode) *worldNode {
		name := w.newcomer(xor.Of("target", worldHost))
		w.come(name)
		return w.nodes[name]
	},
	"a closer node joins that only the first backup has met": func(w *world, _ *worldNode) *worldNode {
		now := w.stranger(xor.Of("target", worldHost), w.node(0).name)
		w.node(0).knows = append(w.node(0).knows, now.name)
		w.tell(w.node(0), NeighborsChanged{})
		w.say(itemDispatch, 0, w.node(0), now, Dispatched, 'a', 'b')
		return now
	},
	"the node leaves": func(w *world, from *worldNode) *worldNode {
		w.live = slices.DeleteFunc(slices.Clone(w.live), func(n strategy.Node) bool { return n == from.name })
		w.meet(NodeGone{Node: from.name, Left: true, Near: true})
		w.tell(from, Leave{})
		w.live = append(w.live, from.name) // it runs until it has left
		closest, _ := everybody{nodes: w.nodes[w.live[0]].knows}.Closest(xor.Of("target", worldHost), 1)
		return w.nodes[closest[0]]
	},
	"it is lent": func(w *world, from *worldNode) *worldNode {
		to := w.nodes[w.live[slices.IndexFunc(w.live, func(n strategy.Node) bool { return n != from.name })]]
		to.m.lending.admit = func(strategy.Node, string, int64) bool { return true }
		from.m.core.begin(w.now, nil)
		if !from.m.lending.lend(worldHost, to.name, 2) {
			w.t.Fatal("it cannot be lent")
		}
		w.carry(from, from.m.end())
		return to
	},
}

// A host's cookies are at the node that fetches it next before its first URLs, if both nodes share cookies.
func TestCookiesMoveWithTheirHost(t *testing.T) {
	for how, move := range movesOf {
		for _, c := range []struct {
			who   string
			share func(strategy.Node) bool
			want  string
		}{
			{"every node", func(strategy.Node) bool { return true }, "session"},
			{"no node", nil, ""},
			{"every older node", func(n strategy.Node) bool { return n[0] == 'n' }, ""},
		} {
			if c.who == "every older node" && !strings.Contains(how, "joins") {
				continue
			}
			w := newWorldWith(t, 4, c.share)
			w.pass(time.Second)
			w.offer(w.node(0), 1, 'a', 'b')
			closest, _ := everybody{nodes: w.live}.Closest(xor.Of("target", worldHost), 1)
			target := w.nodes[closest[0]]
			w.until("the target fetches", func() bool { return len(target.takes) > 0 })
			target.cookies = "session"
			next := move(w, target)
			w.until("the next node fetches: "+how+", "+c.who, func() bool { return len(next.takes) > 0 })
			if next.sent != c.want {
				t.Errorf("%s, %s shares cookies: the next node has %q, want %q", how, c.who, next.sent, c.want)
			}
		}
	}
}

// A node that does not answer delays one host, and not the next.
func TestCookiesForASilentNode(t *testing.T) {
	b := newBench(t, "a~1", "b~1")
	s := newCookieSharing(b.core, b.place, b, true)
	done := 0
	send := func(to strategy.Node) {
		s.send("h.test", to, func() { done++ })
		for _, a := range out[ReadCookies](b) {
			call(s.reading, a.ID, CookiesRead{ID: a.ID, Data: []byte("session")})
		}
	}
	send("a~1")
	b.want("done before the answer", done, 0)
	b.answer(itemCookies, nil)
	b.want("done", done, 1)
	send("a~1")
	b.want("done at once", done, 2)
	send("b~1")
	b.answer(itemCookies, &reply{code: replyNo})
	send("b~1")
	b.want("done at once by a node that refuses", done, 4)
	b.pass(refusingTime)
	send("a~1")
	for range maxCookieTries {
		b.want("done", done, 4)
		b.answer(itemCookies, &reply{code: replyLater})
		b.pass(pause)
	}
	b.want("done after the last try", done, 5)
	b.want("items", len(b.posts), 0)
	send(benchSelf)
	send("")
	b.want("done", done, 7)
}

// TestCookiesOfHostsThatANodeDoesNotAwait checks that a member's cookies are ignored if the host is another node's, if
// this node already fetches it, and if there are too many.
func TestCookiesOfHostsThatANodeDoesNotAwait(t *testing.T) {
	id := uint64(0)
	added := func(m *Machine, now time.Time, data string, hosts ...string) (n int) {
		for _, host := range hosts {
			id++
			it := item{kind: itemCookies, host: host, cookies: []byte(data)}
			for _, a := range m.Step(now, []Event{Message{"other~1", flightOf(id, it)}}, nil) {
				if _, is := a.(AddCookies); is {
					n++
				}
			}
		}
		return n
	}
	m, now := hostileTo(Config{ShareCookies: true}, nil)
	const own, fetched = "own.test", "fetched.test"
	m.place.setGuest(own, true)
	m.place.setGuest(fetched, true)
	m.holdings.hold(fetched)
	if n := added(m, now, "session", "other.test", fetched); n > 0 {
		t.Errorf("cookies of %d hosts are added which the node does not await", n)
	}
	if n := added(m, now, strings.Repeat("x", MaxCookies+1), own); n > 0 {
		t.Error("too many bytes are added")
	}
	if n := added(m, now, "session", own); n != 1 {
		t.Error("cookies of the node's next host are not added")
	}
	many := slices.Repeat([]string{own}, 100)
	if n := added(m, now, "session", many...); n >= maxInboundOf {
		t.Errorf("%d more are added, while the first are not done", n)
	}
	off, now := hostileTo(Config{}, nil)
	id++
	data := flightOf(id, item{kind: itemCookies, host: own, cookies: []byte("session")})
	answers := 0
	for _, a := range off.Step(now, []Event{Message{"other~1", data}}, nil) {
		if s, is := a.(Send); is && s.Data[0] == messageReplies {
			r := varint.Reader{Rest: s.Data[1:]}
			r.Uint()
			if readReply(&r).code == replyNo {
				answers++
			}
		}
	}
	if answers != 1 {
		t.Error("a node that does not share cookies does not refuse them")
	}
}
