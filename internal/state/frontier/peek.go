package frontier

import (
	"bytes"
	"slices"
)

// maxLook is how many items of a host a look goes through.
const maxLook = 10_000

// A peek goes through the items that wait at a host, in their order, and leaves the queue as it is: what it reads from
// the disk it forgets again.
type peek struct {
	f     *Frontier
	host  string
	items queue
	links []link
}

// peek begins with what is in memory, or in the bucket of a cold host.
func (f *Frontier) peek(key string) (*peek, error) {
	if h := f.hosts[key]; h != nil {
		f.renewRanks(h)
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
		e.data = bytes.Clone(e.data) // whose room is used again
		p.items = append(p.items, e)
	}
	if f.cfg.Ranker != nil && s.generation != f.cfg.Ranker.Generation() {
		f.rerank(key, p.items, &s.deepest)
	}
	p.items.init()
	return p, err
}

// peekAt goes through what waits at a host with a function that is called again where it could not go on: see paged.
// What it goes through stays meanwhile, on the disk and in memory.
func (f *Frontier) peekAt(key string, look func(*peek) error) error {
	if f.disk != nil {
		f.disk.segments.pins++
		defer func() {
			f.disk.segments.pins--
			f.disk.segments.bury()
		}()
	}
	var p *peek
	var h *host // if it is in memory
	err := f.paged(func() error {
		if p == nil {
			begun, err := f.peek(key)
			if err != nil {
				return err
			}
			if p, h = begun, f.hosts[key]; h != nil {
				f.hold(h)
			}
		}
		return look(p)
	})
	if h != nil {
		f.release(h)
	}
	return err
}

// next is the item that comes next, nil after the last.
func (p *peek) next() (*Item, error) {
	for {
		it, err := p.any()
		if it == nil || err != nil {
			return nil, err
		}
		if it.Late = false; !p.f.mayBeSuppressed(it.URL) {
			return it, nil
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
	var items []Item
	err := f.peekAt(key, func(p *peek) error {
		for len(items) < min(n, maxLook) {
			it, err := p.next()
			if it == nil || err != nil {
				return err
			}
			items = append(items, *it)
		}
		return nil
	})
	return items, err
}

// A Found is an item with where it is.
type Found struct {
	Item
	Place    int  // in its host's queue, from 1
	UnderWay bool // handed out
}

// Find looks for a URL among what is under way at a host and the 10,000 items that wait there and go first; nil if it
// is not there.
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
	var found *Found
	place := 0
	err := f.peekAt(key, func(p *peek) error {
		for found == nil && place < maxLook {
			it, err := p.next()
			if it == nil || err != nil {
				return err
			}
			if place++; it.URL == url && it.Robots == "" {
				found = &Found{Item: *it, Place: place}
			}
		}
		return nil
	})
	return found, err
}
