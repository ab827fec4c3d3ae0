package mesh

import (
	"slices"

	"kumo/internal/base/varint"
	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// A ChunkID identifies a chunk: it is a hash of its data.
type ChunkID = xor.ID

// ChunkIDOf returns the id of a chunk.
func ChunkIDOf(data []byte) ChunkID { return xor.Of("chunk", string(data)) }

const (
	// MaxChunk is the maximum size of a chunk in bytes.
	MaxChunk = 256 << 10
	// MaxChunks is the maximum number of chunks of a crawl.
	MaxChunks = 1 << 14

	maxHave = 1 << 11 // ids per message
	maxWant = 64      // chunks requested at once
)

// A chunkSet contains the ids of the chunks that this node has.
type chunkSet struct {
	all []ChunkID // sorted
	sum ChunkID   // exclusive or of all
}

func (c *chunkSet) find(id ChunkID) (at int, known bool) {
	return slices.BinarySearchFunc(c.all, id, func(a, b ChunkID) int { return slices.Compare(a[:], b[:]) })
}

// add adds an id. It reports false if the set has it, or is full.
func (c *chunkSet) add(id ChunkID) bool {
	at, known := c.find(id)
	if known || len(c.all) >= MaxChunks {
		return false
	}
	c.all = slices.Insert(c.all, at, id)
	c.sum = c.sum.Distance(id)
	return true
}

// addChunk adds a chunk if it is new, and passes it on to the given number of lowest buckets.
func (g *gossip) addChunk(data []byte, buckets int) {
	if len(data) == 0 || len(data) > MaxChunk || !g.chunks.add(ChunkIDOf(data)) {
		return
	}
	g.core.activity++
	g.core.do(Added{Data: data})
	g.place.eachLowBucket(buckets, func(i int, nodes []strategy.Node) { g.sendChunk(nodes[0], data, i) })
}

func (g *gossip) sendChunk(to strategy.Node, data []byte, buckets int) {
	w := varint.Writer{messageChunk}
	w.Uint(uint64(buckets))
	w.Bytes(data)
	g.core.do(Send{To: to, Data: w})
}

func (g *gossip) receiveChunk(_ strategy.Node, r *varint.Reader) error {
	buckets, data := r.Uint(), r.Bytes()
	if !r.Complete() || buckets > uint64(g.place.width) || len(data) > MaxChunk {
		return errMessage
	}
	g.addChunk(data, int(buckets))
	return nil
}

// sendHave sends the ids of chunks that this node has, in several messages if necessary. If ask is true, the receiver
// answers with its own.
func (g *gossip) sendHave(to strategy.Node, ask bool) {
	from := 0
	if n := len(g.chunks.all); n > maxHave {
		g.sent = (g.sent + maxHave) % n
		from = g.sent
	}
	part := g.chunks.all[from:min(from+maxHave, len(g.chunks.all))]
	w := varint.Writer{messageHave}
	w.Bool(ask)
	for _, id := range part {
		w = append(w, id[:]...)
	}
	g.core.do(Send{To: to, Data: w})
}

// receiveHave processes a messageHave. It requests chunks that this node lacks.
func (g *gossip) receiveHave(from strategy.Node, r *varint.Reader) error {
	ask := r.Bool()
	ids, ok := readIDs(r.Rest)
	if r.Bad || !ok || len(ids) > maxHave {
		return errMessage
	}
	w := varint.Writer{messageWant}
	for _, id := range ids {
		if _, known := g.chunks.find(id); !known && len(w) < 1+maxWant*len(id) {
			w = append(w, id[:]...)
		}
	}
	if len(w) > 1 {
		g.core.do(Send{To: from, Data: w})
	}
	if ask {
		g.sendHave(from, false)
	}
	return nil
}

func (g *gossip) receiveWant(from strategy.Node, r *varint.Reader) error {
	ids, ok := readIDs(r.Rest)
	if !ok || len(ids) > maxWant {
		return errMessage
	}
	for _, id := range ids {
		if _, known := g.chunks.find(id); known && g.read != nil {
			if data, err := g.read(id); err == nil {
				g.sendChunk(from, data, 0)
			} else {
				g.core.log.Warn("cannot read a list of seeds", "err", err)
			}
		}
	}
	return nil
}

func readIDs(data []byte) (ids []ChunkID, ok bool) {
	if len(data)%xor.Size != 0 {
		return nil, false
	}
	for id := range slices.Chunk(data, xor.Size) {
		ids = append(ids, ChunkID(id))
	}
	return ids, true
}
