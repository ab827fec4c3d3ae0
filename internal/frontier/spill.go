package frontier

import (
	"container/heap"
	"slices"
)

// count is the number of items that wait.
func (h *host) count() uint32 {
	n := uint32(len(h.waiting))
	for i := range h.links {
		n += h.links[i].count
	}
	return n
}

// place is where the queue of a host that was written begins.
func (h *host) place() loc {
	switch {
	case h.top != 0:
		return h.top.skipping(h.topItems - len(h.waiting))
	case len(h.links) == 1:
		return h.links[0].at
	}
	return 0
}

// soil notes that what is in memory will no longer be what a block says.
func (f *Frontier) soil(h *host) {
	if h.top != 0 {
		f.disk.segments.count(h.top, -h.topSize)
		h.top = 0
	}
}

// follow reads blocks until the item that goes first is in memory.
func (f *Frontier) follow(h *host) error {
	for len(h.links) > 0 && (len(h.waiting) == 0 || h.links[0].key.less(h.waiting[0].key)) {
		if err := f.expand(h, 0); err != nil {
			return err
		}
	}
	if f.disk != nil && h.bytes > f.disk.window && len(h.waiting) > 4*maxBlockItems {
		return f.spill(h, len(h.waiting)/2)
	}
	return nil
}

// gather reads blocks until the n items that go first are in memory, or all. What is gone does not count.
func (f *Frontier) gather(h *host, n int) error {
	for len(h.links) > 0 {
		before := 0
		for _, it := range h.waiting {
			if it.less(h.links[0].key) && !f.willGo(it.URL) {
				before++
			}
		}
		if before >= n {
			return nil
		}
		if err := f.expand(h, 0); err != nil {
			return err
		}
	}
	return nil
}

// expand replaces a link of the host by what is in the block.
func (f *Frontier) expand(h *host, i int) error {
	b, err := f.disk.segments.read(h.links[i].at)
	if err != nil {
		return err
	}
	f.install(h, i, &b)
	return nil
}

// install replaces a link of the host by its block. If that is all the host has, it need not be written again.
func (f *Frontier) install(h *host, i int, b *block) {
	at := h.links[i].at
	h.links = slices.Delete(h.links, i, i+1)
	whole := len(h.links) == 0 && len(h.waiting) == 0 && h.top == 0
	f.soil(h)
	for _, l := range b.links {
		h.links = insertLink(h.links, l)
	}
	items, dropped := f.current(b, b.items[min(at.skip(), len(b.items)):])
	for i := range items {
		heap.Push(&h.waiting, &items[i])
		f.disk.charge(h, itemCost(&items[i]))
	}
	if whole && len(items) > 0 && !dropped {
		h.top, h.topSize, h.topItems = at, b.size, len(b.items)
	} else {
		f.disk.segments.count(at, -b.size)
	}
}

// current leaves out what an earlier process waited for: it fetched robots.txt, and this one asks anew.
func (f *Frontier) current(b *block, items []Item) ([]Item, bool) {
	if b.run == f.disk.run {
		return items, false
	}
	n := len(items)
	items = slices.DeleteFunc(items, func(it Item) bool { return it.Robots != "" })
	f.waiting -= n - len(items)
	return items, n > len(items)
}

// write puts what a host has in memory and not on disk into blocks. Of the items those of the first block stay in memory.
func (f *Frontier) write(h *host) error {
	if len(h.waiting) > 0 && h.top != 0 {
		return nil
	}
	f.soil(h)
	if len(h.waiting) == 0 && len(h.links) <= 1 {
		return nil
	}
	if err := f.spill(h, maxBlockItems); err != nil {
		return err
	}
	if err := f.pack(h, maxBlockLinks); err != nil {
		return err
	}
	slices.SortFunc(h.waiting, func(a, b *Item) int { return a.compare(b.key) })
	at, size, err := f.disk.segments.append(&block{run: f.disk.run, host: h.key, links: h.links}, h.waiting)
	if err != nil {
		return err
	}
	h.top, h.topSize, h.topItems = at, size, len(h.waiting)
	return nil
}

// spill writes all but the first items, sorted, to disk. Where ranks differ it begins a new chain of blocks, so that chains written
// at different times need not be read in turns.
func (f *Frontier) spill(h *host, most int) error {
	if len(h.waiting) <= most {
		return nil
	}
	f.soil(h)
	slices.SortFunc(h.waiting, func(a, b *Item) int { return a.compare(b.key) })
	for len(h.waiting) > most {
		end := len(h.waiting)
		begin := end - 1
		for begin > most && h.waiting[begin-1].rank == h.waiting[end-1].rank {
			begin--
		}
		if end-most <= maxBlockItems {
			begin = most // too few to be kept apart
		}
		if err := f.chain(h, h.waiting[begin:end]); err != nil {
			return err
		}
		for _, it := range h.waiting[begin:end] {
			f.disk.charge(h, -itemCost(it))
		}
		clear(h.waiting[begin:end])
		h.waiting = h.waiting[:begin]
	}
	return f.pack(h, 2*maxBlockLinks)
}

// chain writes sorted items as blocks, each with a link to the next, and gives the host the link to the first.
func (f *Frontier) chain(h *host, items []*Item) error {
	var rest []link
	b := block{run: f.disk.run, host: h.key}
	for end := len(items); end > 0; {
		begin := (end - 1) / maxBlockItems * maxBlockItems
		b.links = rest
		at, _, err := f.disk.segments.append(&b, items[begin:end])
		if err != nil {
			f.drop(rest)
			return err
		}
		rest = []link{{at: at, key: items[begin].key, count: uint32(len(items) - begin), oldest: at.segment()}}
		if len(b.links) > 0 {
			rest[0].oldest = min(rest[0].oldest, b.links[0].oldest)
		}
		end = begin
	}
	h.links = insertLink(h.links, rest[0])
	return nil
}

// drop gives up a chain of blocks that could not be finished; its items are still in memory.
func (f *Frontier) drop(chain []link) {
	for len(chain) > 0 {
		b, err := f.disk.segments.read(chain[0].at)
		if err != nil {
			return // the room is lost, nothing else
		}
		f.disk.segments.count(chain[0].at, -b.size)
		chain = b.links
	}
}

// pack brings a host's links below a number: those that come last go into blocks of links.
func (f *Frontier) pack(h *host, most int) error {
	for len(h.links) > most {
		group := h.links[len(h.links)-maxBlockLinks:]
		at, _, err := f.disk.segments.append(&block{run: f.disk.run, host: h.key, links: group}, nil)
		if err != nil {
			return err
		}
		d := directory(at, group)
		h.links = insertLink(h.links[:len(h.links)-len(group)], d)
	}
	return nil
}
