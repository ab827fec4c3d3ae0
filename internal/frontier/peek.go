package frontier

import (
	"container/heap"
	"slices"
)

// maxLook is how many items of a host a look goes through.
const maxLook = 10_000

// A peek goes through the items that wait at a host, in their order, and leaves the queue as it is: what it reads from the disk it
// forgets again.
type peek struct {
	f     *Frontier
	items queue
	links []link
}

// peek begins with what is in memory, or where the queue of a cold host begins. It ends with the caller's hold of the lock.
func (f *Frontier) peek(key string) *peek {
	if h := f.hosts[key]; h != nil {
		return &peek{f, slices.Clone(h.waiting), slices.Clone(h.links)}
	}
	w := &peek{f: f}
	if f.disk == nil {
		return w
	}
	if id := f.disk.table.find(f.disk.table.identity(key)); id != 0 && f.disk.table.at(id).top != 0 {
		w.links = []link{{at: f.disk.table.at(id).top, key: key0}}
	}
	return w
}

// key0 comes before all others.
var key0 = key{rank: robotsRank}

// next is the item that comes next, nil after the last.
func (p *peek) next() (*Item, error) {
	for {
		for len(p.links) > 0 && (len(p.items) == 0 || p.links[0].key.less(p.items[0].key)) {
			if err := p.expand(); err != nil {
				return nil, err
			}
		}
		if len(p.items) == 0 {
			return nil, nil
		}
		if it := heap.Pop(&p.items).(*Item); !p.f.willGo(it.URL) {
			return it, nil
		}
	}
}

// expand replaces the first link by what is in its block, but for what an earlier process waited for.
func (p *peek) expand() error {
	at := p.links[0].at
	b, err := p.f.disk.segments.read(at)
	if err != nil {
		return err
	}
	p.links = p.links[1:]
	for _, l := range b.links {
		p.links = insertLink(p.links, l)
	}
	items := b.items[min(at.skip(), len(b.items)):]
	for i := range items {
		if items[i].Robots == "" || b.run == p.f.disk.run {
			heap.Push(&p.items, &items[i])
		}
	}
	return nil
}

// Queue returns the first n items that wait at a host, 10,000 at most, in their order.
func (f *Frontier) Queue(key string, n int) ([]Item, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var items []Item
	for w := f.peek(key); len(items) < min(n, maxLook); {
		it, err := w.next()
		if it == nil || err != nil {
			return items, err
		}
		items = append(items, *it)
	}
	return items, nil
}

// A Found is an item with where it is.
type Found struct {
	Item
	Place    int  // in its host's queue, from 1
	UnderWay bool // handed out
}

// Find looks for a URL among what is under way at a host and the 10,000 items that wait there and go first; nil if it is not there.
func (f *Frontier) Find(key, url string) (*Found, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h := f.hosts[key]; h != nil {
		for _, it := range h.flying {
			if it.URL == url && it.Robots == "" {
				return &Found{Item: *it, UnderWay: true}, nil
			}
		}
	}
	w := f.peek(key)
	for place := 1; place <= maxLook; place++ {
		it, err := w.next()
		if it == nil || err != nil {
			return nil, err
		}
		if it.URL == url && it.Robots == "" {
			return &Found{Item: *it, Place: place}, nil
		}
	}
	return nil, nil
}
