package frontier

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// A block is a part of one host's queue on disk: items in their order, and links to the blocks that hold the rest. A link knows
// the key of the first item below it, so that a queue is a heap of blocks: a block is read only when what it holds is next.
//
// In a file a block is its length and the CRC-32C of its body, four bytes each, little-endian, then the body: the run of the
// process that wrote it, the host, the links, the items. Strings leave out what they share with the same field of the
// item before.
type block struct {
	run   uint64 // the process that wrote it: what it waited for, a later one asks for again
	host  string
	links []link
	items []Item
	size  int64 // in the file
}

// A link leads to a block.
type link struct {
	at     loc
	key    key    // of the first item there and below
	count  uint32 // items there and below
	oldest uint32 // the first segment that any of them is in
}

const (
	maxBlockItems = 64 // so that a count fits into a loc
	maxBlockLinks = 64
	maxBlock      = 64 << 20 // bytes: more is damage
)

// A loc says where a block is, and how many of its items are gone: 26 bits of segment, 30 of offset, 8 of items. 0 is nowhere.
type loc uint64

func newLoc(segment uint32, offset int64) loc { return loc(uint64(segment)<<38 | uint64(offset)<<8) }

func (l loc) segment() uint32    { return uint32(l >> 38) }
func (l loc) offset() int64      { return int64(l >> 8 & (1<<30 - 1)) }
func (l loc) skip() int          { return int(l & 0xff) }
func (l loc) skipping(n int) loc { return l&^0xff | loc(n) }

var errBlock = errors.New("damaged block")

const (
	flagRoot = 1 << iota
	flagTold
	flagRobots
	flagTried // has redirects or tries
	flagRecrawl
)

// key orders the items of a host.
type key struct {
	rank int32
	seq  uint64
}

func (k key) less(o key) bool { return k.rank < o.rank || k.rank == o.rank && k.seq < o.seq }

func (k key) compare(o key) int {
	switch {
	case k.less(o):
		return -1
	case o.less(k):
		return 1
	}
	return 0
}

// lastKey comes after all others.
var lastKey = key{math.MaxInt32, math.MaxUint64}

// directory is the link to a block that holds links.
func directory(at loc, links []link) link {
	d := link{at: at, key: lastKey, oldest: at.segment()}
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

func damaged(name string, offset int64, err error) error {
	return fmt.Errorf("read %s at %d: %w", name, offset, err)
}
