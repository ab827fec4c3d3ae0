package mesh

import (
	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// lookups find the nodes closest to an id, through the overlay: Find, answered by Found.
//
// Invariants: at most max lookups run at once, and one for each id; each waiting function is called once.
type lookups struct {
	core    *core
	place   *place
	max     int
	waiting map[xor.ID][]func([]strategy.Node)
	running map[xor.ID]bool
	again   map[xor.ID]bool // ids whose last result was outdated
	queue   []xor.ID
}

func newLookups(c *core, p *place, most int) *lookups {
	return &lookups{core: c, place: p, max: most, waiting: map[xor.ID][]func([]strategy.Node){},
		running: map[xor.ID]bool{}, again: map[xor.ID]bool{}}
}

// find calls f with the live nodes closest to an id, at once if this node knows them; with none if no node answers.
// again: the last result was outdated.
func (l *lookups) find(id xor.ID, again bool, f func([]strategy.Node)) {
	if nodes, exact := l.place.near(id, l.place.backups); exact {
		f(nodes)
		return
	}
	l.lookUp(id, again, f)
}

// lookUp contacts other nodes, even if this one knows all nodes there: it gets the addresses of the result.
func (l *lookups) lookUp(id xor.ID, again bool, f func([]strategy.Node)) {
	if again {
		l.again[id] = true
	}
	if l.waiting[id] == nil {
		l.queue = append(l.queue, id)
	}
	l.waiting[id] = append(l.waiting[id], f)
	l.run()
}

func (l *lookups) run() {
	for len(l.running) < l.max && len(l.queue) > 0 {
		id := l.queue[0]
		l.queue = l.queue[1:]
		l.running[id] = true
		l.core.do(Find{ID: id, Count: l.place.backups, Again: l.again[id]})
		delete(l.again, id)
	}
}

func (l *lookups) found(e Found) {
	if !l.running[e.ID] {
		return
	}
	delete(l.running, e.ID)
	delete(l.again, e.ID)
	waiting := l.waiting[e.ID]
	delete(l.waiting, e.ID)
	for _, f := range waiting {
		f(e.Nodes)
	}
	l.run()
}
