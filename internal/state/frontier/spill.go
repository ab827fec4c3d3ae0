package frontier

import (
	"bytes"
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

// follow reads blocks until the item that goes first is in memory.
func (f *Frontier) follow(h *host) error {
	for len(h.links) > 0 && (len(h.waiting) == 0 || h.links[0].key.less(h.waiting[0].key)) {
		if err := f.expand(h, 0); err != nil {
			return err
		}
	}
	if f.disk != nil && h.bytes > f.disk.window && len(h.waiting) > 4*maxBlockItems {
		f.spill(h, len(h.waiting)/2)
	}
	return nil
}

// gather reads blocks until the n items that go first are in memory, or all. What is gone does not count.
func (f *Frontier) gather(h *host, n int) error {
	for len(h.links) > 0 {
		before := 0
		for i := range h.waiting {
			if h.waiting[i].less(h.links[0].key) && !f.entrySuppressed(h.key, &h.waiting[i]) {
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
	at := h.links[i].at
	b, err := f.block(at)
	if err != nil {
		return err
	}
	if h.move != nil {
		h.move.spent = append(h.move.spent, chunk{at, b.size})
	} else {
		f.disk.segments.count(at, -b.size)
	}
	h.links = slices.Delete(h.links, i, i+1)
	for _, l := range b.links {
		h.links = insertLink(h.links, l)
	}
	if f.cfg.Ranker != nil && h.move == nil { // of one that is moved, the first key is known elsewhere
		f.rerank(h.key, b.items, &h.deepest)
	}
	for _, e := range b.items {
		h.waiting.push(e)
		f.disk.charge(h, e.cost())
	}
	return nil
}

// block is a block that is in memory; see paged.
func (f *Frontier) block(at loc) (block, error) {
	s := f.disk.segments
	frame, err := s.frame(at, readAhead)
	if err != nil {
		return block{}, err
	}
	b, err := f.dec.block(bytes.Clone(frame))
	if err != nil {
		return b, damaged(s.name(at.segment()), at.offset(), err)
	}
	b.size = int64(len(frame) + frameLen)
	return b, nil
}

// writeBlock has a block of a host's queue written.
func (f *Frontier) writeBlock(h *host, b *block) loc {
	at, n := f.disk.segments.append(func(w *writer) { w.block(b) })
	if h.move != nil {
		h.move.made = append(h.move.made, chunk{at, n})
	}
	return at
}

// spill has all but the first items written, sorted; fetches of robots.txt stay. Where ranks differ it begins a new
// chain of blocks, so that chains written at different times need not be read in turns.
func (f *Frontier) spill(h *host, most int) {
	if len(h.waiting) <= most {
		return
	}
	f.applyMoves(h)
	slices.SortFunc(h.waiting, func(a, b entry) int { return a.compare(b.key) })
	for most < len(h.waiting) && h.waiting[most].rank == robotsRank {
		most++
	}
	for len(h.waiting) > most {
		end := len(h.waiting)
		begin := end - 1
		for begin > most && h.waiting[begin-1].rank == h.waiting[end-1].rank {
			begin--
		}
		if end-most <= maxBlockItems {
			begin = most // too few to be kept apart
		}
		f.chain(h, h.waiting[begin:end])
		for i := range h.waiting[begin:end] {
			f.disk.charge(h, -h.waiting[begin+i].cost())
		}
		clear(h.waiting[begin:end])
		h.waiting = h.waiting[:begin]
	}
	f.pack(h, 2*maxBlockLinks)
}

// chain writes sorted items as blocks, each with a link to the next, and gives the host the link to the first.
func (f *Frontier) chain(h *host, items []entry) {
	var rest []link
	b := block{host: h.key}
	for end := len(items); end > 0; {
		begin := (end - 1) / maxBlockItems * maxBlockItems
		b.links, b.items = rest, items[begin:end]
		at := f.writeBlock(h, &b)
		rest = []link{{at: at, key: items[begin].key, count: uint32(len(items) - begin), oldest: at}}
		if len(b.links) > 0 {
			rest[0].oldest = min(rest[0].oldest, b.links[0].oldest)
		}
		end = begin
	}
	h.links = insertLink(h.links, rest[0])
}

// pack brings a host's links below a number: those that come last go into blocks of links.
func (f *Frontier) pack(h *host, most int) {
	for len(h.links) > most {
		group := h.links[max(0, len(h.links)-maxBlockLinks):]
		at := f.writeBlock(h, &block{host: h.key, links: group})
		d := directory(at, group)
		h.links = insertLink(h.links[:len(h.links)-len(group)], d)
	}
}
