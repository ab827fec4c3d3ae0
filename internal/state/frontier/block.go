package frontier

import "slices"

// A block is a part of a host's queue on disk: items in their order, and links to the blocks that hold the rest. A link
// has the key of the first item below it, so that a queue is a heap of blocks: a block is read only when its first item
// is next.
type block struct {
	host  string
	links []link
	items []entry
	size  int64 // in the file
}

// A link leads to a block.
type link struct {
	at     loc
	key    key    // of the first item there and below
	oldest loc    // the least location of the blocks there and below, 0 if unknown
	count  uint32 // items there and below
}

const (
	maxBlockItems = 64
	maxBlockLinks = 64
	maxFrame      = 64 << 20 // bytes: more is damage
)

// A loc is the location of a frame: 26 bits of segment, 38 of offset. 0 is none.
type loc uint64

func newLoc(segment uint32, offset int64) loc { return loc(uint64(segment)<<38 | uint64(offset)) }

func (l loc) segment() uint32 { return uint32(l >> 38) }
func (l loc) offset() int64   { return int64(l & (1<<38 - 1)) }

var errBlock error = blockError{}

// A blockError is a damaged block. It is an ErrDamaged.
type blockError struct{}

func (blockError) Error() string        { return "damaged block" }
func (blockError) Is(target error) bool { return target == ErrDamaged }

// block encodes a block's frame.
func (w *writer) block(b *block) {
	w.b = append(w.b, frameBlock)
	w.string(b.host)
	w.links(b.links)
	w.entries(b.items)
}

// block decodes a block's frame. The items keep the bytes.
func (r *reader) block(frame []byte) (block, error) {
	r.Rest, r.Bad = frame, false
	if r.Byte() != frameBlock {
		return block{}, errBlock
	}
	b := block{host: r.String(), links: r.links(), items: r.entries(nil)}
	if r.Bad || len(r.Rest) > 0 {
		return block{}, errBlock
	}
	return b, nil
}

// directory is the link to a block that holds links.
func directory(at loc, links []link) link {
	d := link{at: at, key: lastKey, oldest: at}
	for _, l := range links {
		if l.key.less(d.key) {
			d.key = l.key
		}
		d.count += l.count
		d.oldest = min(d.oldest, l.oldest)
	}
	return d
}

// insertLink keeps links sorted by key.
func insertLink(links []link, l link) []link {
	i, _ := slices.BinarySearchFunc(links, l, func(a, b link) int { return a.key.compare(b.key) })
	return slices.Insert(links, i, l)
}
