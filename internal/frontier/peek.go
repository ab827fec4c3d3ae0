package frontier

import "slices"

// maxLook is how many items of a host a look goes through.
const maxLook = 10_000

// A peek goes through the items that wait at a host, in their order, and leaves the queue as it is: what it reads from the disk it
// forgets again.
type peek struct {
	f     *Frontier
	host  string
	items queue
	links []link
}

// peek begins with what is in memory, or in the bucket of a cold host. It ends with the caller's hold of the lock.
func (f *Frontier) peek(key string) (*peek, error) {
	if h := f.hosts[key]; h != nil {
		return &peek{f, key, slices.Clone(h.waiting), slices.Clone(h.links)}, nil
	}
	p := &peek{f: f, host: key}
	if f.disk == nil {
		return p, nil
	}
	id := f.disk.table.find(f.disk.table.identity(key))
	if id == 0 {
		return p, nil
	}
	r := f.disk.table.at(id)
	if r.top != 0 {
		p.links = []link{{at: r.top, key: key0}}
	}
	b := f.disk.buckets[r.bucket]
	if b == nil {
		return p, nil
	}
	s, err := f.sleeping(b, id)
	for _, e := range s.items {
		p.items.push(e)
	}
	return p, err
}

// next is the item that comes next, nil after the last.
func (p *peek) next() (*Item, error) {
	for {
		if it, err := p.any(); it == nil || err != nil || !p.f.willGo(it.URL) {
			return it, err
		}
	}
}

// any is the item that comes next, even if it is gone.
func (p *peek) any() (*Item, error) {
	for len(p.links) > 0 && (len(p.items) == 0 || p.links[0].key.less(p.items[0].key)) {
		if err := p.expand(); err != nil {
			return nil, err
		}
	}
	if len(p.items) == 0 {
		return nil, nil
	}
	e := p.items.pop()
	it, err := p.f.dec.item(p.host, &e)
	if err != nil {
		return nil, err
	}
	return &it, nil
}

// expand replaces the first link by what is in its block.
func (p *peek) expand() error {
	b, err := p.f.block(p.links[0].at)
	if err != nil {
		return err
	}
	p.links = p.links[1:]
	for _, l := range b.links {
		p.links = insertLink(p.links, l)
	}
	for _, e := range b.items {
		p.items.push(e)
	}
	return nil
}

// Queue returns the first n items that wait at a host, 10,000 at most, in their order.
func (f *Frontier) Queue(key string, n int) ([]Item, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w, err := f.peek(key)
	if err != nil {
		return nil, err
	}
	var items []Item
	for len(items) < min(n, maxLook) {
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
	w, err := f.peek(key)
	if err != nil {
		return nil, err
	}
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
