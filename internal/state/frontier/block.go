package frontier

import "slices"

// A block is a part of a host's queue on disk: sorted items, and links to the blocks with the rest. A link has the key
// of the first item below it, so a queue is a heap of blocks. A block is read only when its first item is next.
type block struct {
	host  string
	links []link
	items []entry
	size  int64 // bytes in the file
}

// A link points to a block.
type link struct {
	at     loc
	key    key    // of the first item in the block and below
	oldest loc    // least location of the block and those below; 0 if unknown
	count  uint32 // number of items in the block and below
}

const (
	maxBlockItems = 64
	maxBlockLinks = 64
	maxFrame      = 64 << 20 // bytes; a longer frame is damaged
)

// A loc is the location of a frame: 26 bits of segment, 38 bits of offset. 0 means none.
type loc uint64

func newLoc(segment uint32, offset int64) loc { return loc(uint64(segment)<<38 | uint64(offset)) }

func (l loc) segment() uint32 { return uint32(l >> 38) }
func (l loc) offset() int64   { return int64(l & (1<<38 - 1)) }

var errBlock error = blockError{}

// A blockError reports a damaged block. It matches ErrDamaged.
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

// block decodes a block's frame. The items share its bytes.
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

// directory returns the link to a block that contains links.
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

// insertLink inserts a link and keeps the links sorted by key.
func insertLink(links []link, l link) []link {
	i, _ := slices.BinarySearchFunc(links, l, func(a, b link) int { return a.key.compare(b.key) })
	return slices.Insert(links, i, l)
}
