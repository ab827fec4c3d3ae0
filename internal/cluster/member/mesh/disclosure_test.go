package mesh

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// part makes some nodes know only each other, and the other nodes only each other.
func (w *world) part(apart ...strategy.Node) {
	rest := slices.DeleteFunc(slices.Clone(w.live), func(n strategy.Node) bool { return slices.Contains(apart, n) })
	w.cut = func(from, to strategy.Node) bool { return slices.Contains(apart, from) != slices.Contains(apart, to) }
	for _, side := range [][]strategy.Node{apart, rest} {
		for _, name := range side {
			n := w.nodes[name]
			n.knows = slices.Clone(side)
			for _, o := range w.live {
				if !slices.Contains(side, o) {
					w.tell(n, NodeGone{Node: o, Near: true})
				}
			}
			w.tell(n, NeighborsChanged{})
		}
	}
}

// hostOf returns a host whose backups are among some nodes.
func (w *world) hostOf(nodes ...strategy.Node) string {
	for i := range 10000 {
		host := fmt.Sprintf("l%d.test", i)
		all, _ := everybody{nodes: w.live}.Closest(xor.Of("backup", host), 3)
		if !slices.ContainsFunc(all, func(n strategy.Node) bool { return !slices.Contains(nodes, n) }) {
			return host
		}
	}
	w.t.Fatal("no host has such backups")
	return ""
}

// TestLinksAreToldBeforeWhatIsDone separates two nodes from six others. Before that, all backups of a page have it as
// open. The two fetch it, and claim a link found on it. When they meet the others again, these do not learn that the
// page is done before one of them has the link: they would not fetch the page again, and the two may lose their disks.
func TestLinksAreToldBeforeWhatIsDone(t *testing.T) {
	const page, link = 'p', 'l'
	for what, happens := range map[string]func(w *world, apart *worldNode){
		"nothing": func(*world, *worldNode) {},
		"the page is found again": func(w *world, _ *worldNode) {
			for i := range 3 {
				w.offer(w.node(i), uint64(i+1), page, 'q')
			}
		},
		"who has fetched it says so": func(w *world, apart *worldNode) {
			w.tell(apart, Finished{Host: worldHost, Hashes: []Hash{{page}}})
		},
		"it is to be fetched by who has fetched it": func(w *world, apart *worldNode) {
			apart.fetched = []Hash{{page}}
			w.node(3).m.mail.post(apart.name, item{kind: itemDispatch, host: worldHost, links: []Link{{Hash: Hash{page},
				State: Dispatched}}}, func(_ strategy.Node, r *reply) {
				if r != nil && slices.Contains(r.states, Done) {
					w.node(3).record(Record{Host: worldHost, Links: []Link{{Hash: Hash{page}, State: Done}}})
				}
			})
			w.tell(w.node(3), Tick{})
		},
		"they begin anew": func(w *world, apart *worldNode) {
			for i := range 2 {
				name := w.node(i + 1).name
				if i == 1 {
					name = apart.name
				}
				w.start(name)
			}
		},
	} {
		for first := range 3 { // number of the page's backups among the two
			w := newWorld(t, 8)
			apart := []strategy.Node{w.node(first).name, w.node(6).name}
			if first == 2 {
				apart[1] = w.node(1).name
			}
			for i := range 3 {
				known(w.node(i), page)
				w.tell(w.node(i), Opened{Host: worldHost, Open: 1})
			}
			others := slices.DeleteFunc(slices.Clone(w.live), func(n strategy.Node) bool { return slices.Contains(apart, n) })
			host := w.hostOf(others...)
			holders, _ := everybody{nodes: w.live}.Closest(xor.Of("backup", host), 3)
			w.part(apart...)
			w.pass(10 * time.Second)
			for _, name := range apart {
				n := w.nodes[name]
				n.record(Record{Host: worldHost, Links: []Link{{Hash: Hash{page}, State: Done}}})
				n.record(Record{Host: host, Links: []Link{{Hash: Hash{link}, State: Dispatched, Item: []byte{link}}}})
				w.tell(n, Opened{Host: worldHost}, Opened{Host: host, Open: 1})
			}
			w.pass(3 * time.Second)
			// the link does not arrive for a while
			w.cut = func(from, to strategy.Node) bool {
				return slices.Contains(apart, from) && slices.Contains(holders, to)
			}
			told := func() (done, have bool) {
				for _, name := range others {
					n := w.nodes[name]
					done = done || n.history[worldHost][Hash{page}].State == Done
					have = have || n.history[host][Hash{link}].State != Unknown
				}
				return done, have
			}
			w.meet()
			happens(w, w.nodes[apart[0]])
			for range 60 {
				w.pass(time.Second)
				if w.now.Sub(time.Unix(1e9, 0)) > 33*time.Second {
					w.cut = nil
				}
				if done, have := told(); done && !have {
					t.Fatalf("%s, backup %d: the others know that the page is done, and not its link", what, first)
				}
			}
			if done, have := told(); !done || !have {
				t.Errorf("%s, backup %d: in the end the others know of the page %v, of the link %v", what, first, done, have)
			}
		}
	}
}
