package mesh

import (
	"testing"
	"time"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// TestAQueueIsRecalled has another backup send the first one links that it has had fetched during a partition: the
// target releases the host, and gets the open links. Equal states, and marks of the target, change nothing.
func TestAQueueIsRecalled(t *testing.T) {
	for _, c := range []struct {
		what    string
		tells   func(w *world, target *worldNode)
		recalls int
		left    string
	}{
		{"nothing new", func(w *world, _ *worldNode) {
			w.say(itemStore, itemGiven, w.node(1), w.node(0), Dispatched, 'a', 'c')
		}, 0, "abc"},
		{"what the target has fetched", func(w *world, target *worldNode) {
			w.tell(target, Finished{Host: worldHost, Hashes: []Hash{{'b'}}})
		}, 0, "abc"},
		{"done, by word that is late", func(w *world, _ *worldNode) {
			w.say(itemStore, 0, w.node(1), w.node(0), Done, 'b')
		}, 0, "abc"},
		{"done elsewhere", func(w *world, _ *worldNode) { w.say(itemStore, itemGiven, w.node(1), w.node(0), Done, 'b') }, 1,
			"ac"},
		{"done elsewhere, said by two", func(w *world, _ *worldNode) {
			w.say(itemStore, itemGiven, w.node(1), w.node(0), Done, 'b')
			w.say(itemStore, itemGiven, w.node(2), w.node(0), Done, 'a', 'b')
		}, 1, "c"},
		{"fetched by another target", func(w *world, _ *worldNode) {
			w.say(itemMarks, 0, w.node(1), w.node(0), Done, 'b')
		}, 1, "ac"},
		{"open elsewhere, done here", func(w *world, target *worldNode) {
			w.tell(target, Finished{Host: worldHost, Hashes: []Hash{{'b'}}})
			w.pass(5 * time.Second)
			w.say(itemStore, itemGiven, w.node(1), w.node(0), Dispatched, 'b')
		}, 1, "ac"},
	} {
		w := newWorld(t, 5)
		w.pass(time.Second)
		closest, _ := everybody{nodes: w.live}.Closest(xor.Of("target", worldHost), 1)
		target := w.nodes[closest[0]]
		w.offer(w.node(0), 1, 'a', 'b', 'c')
		w.pass(5 * time.Second)
		c.tells(w, target)
		w.pass(10 * time.Second)
		got := ""
		for _, k := range target.takes[len(target.takes)-1].Links {
			got += string(k.Hash[:1])
		}
		if target.gave != c.recalls || len(target.takes) != 1+c.recalls || got != c.left {
			t.Errorf("%s: the target gives the host up %d times, and takes %d times, at last %q; want %d, %d, %q", c.what,
				target.gave, len(target.takes), got, c.recalls, 1+c.recalls, c.left)
		}
	}
}

// say sends another node the state of some links of worldHost, by an item of a kind and with a number.
func (w *world) say(kind byte, number int64, from, to *worldNode, s State, links ...byte) {
	it := item{kind: kind, host: worldHost, number: number}
	for _, l := range links {
		it.links = append(it.links, Link{Hash: Hash{l}, State: s})
	}
	from.m.mail.post(to.name, it, func(strategy.Node, *reply) {})
	w.tell(from, Tick{})
}
