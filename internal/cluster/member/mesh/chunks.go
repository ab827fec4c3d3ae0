package mesh

import (
	"slices"

	"kumo/internal/base/varint"
	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// Chunks are what all nodes are to know beside the crawl's record, and what never changes: lists of seeds, and of where
// these redirect to, as the scope follows from them. A chunk goes over the tree of buckets when it is added, as the
// record does. Each node tells another one from time to time how many it knows, and a sum of their ids; where these are
// others there, the two tell each other which they know, and ask for what they miss.

// A ChunkID is what a chunk is called by: a hash of what it says.
type ChunkID = xor.ID

// ChunkIDOf is the id of a chunk.
func ChunkIDOf(data []byte) ChunkID { return xor.Of("chunk", string(data)) }

const (
	// MaxChunk is how many bytes a chunk may have.
	MaxChunk = 256 << 10
	// MaxChunks is how many a crawl may have.
	MaxChunks = 1 << 14

	mostHave = 1 << 11 // ids of a message
	mostWant = 64      // chunks that are asked for at once
)

// chunks are those that this node knows.
type chunks struct {
	all []ChunkID // sorted
	sum ChunkID   // of all, by exclusive or
}

func (c *chunks) find(id ChunkID) (at int, known bool) {
	return slices.BinarySearchFunc(c.all, id, func(a, b ChunkID) int { return slices.Compare(a[:], b[:]) })
}

// add notes a chunk, and reports whether it is news.
func (c *chunks) add(id ChunkID) bool {
	at, known := c.find(id)
	if known || len(c.all) >= MaxChunks {
		return false
	}
	c.all = slices.Insert(c.all, at, id)
	c.sum = c.sum.Distance(id)
	return true
}

// takeChunk takes a chunk in, if it is news, and hands it on to all nodes of the buckets below an index.
func (m *Machine) takeChunk(data []byte, below int) {
	if len(data) == 0 || len(data) > MaxChunk || !m.chunks.add(ChunkIDOf(data)) {
		return
	}
	m.came++
	m.do(Added{Data: data})
	for i := m.lowest(); i < m.lowest()+below; i++ {
		if nodes := m.cfg.Overlay.Bucket(i); len(nodes) > 0 {
			m.sendChunk(nodes[0], data, i-m.lowest())
		}
	}
}

func (m *Machine) sendChunk(to strategy.Node, data []byte, below int) {
	w := varint.Writer{messageChunk}
	w.Uint(uint64(below))
	w.Bytes(data)
	m.do(Send{To: to, Data: w})
}

func (m *Machine) heardChunk(r *varint.Reader) error {
	below, data := r.Uint(), r.Bytes()
	if !r.Whole() || below > uint64(m.cfg.Width) || len(data) > MaxChunk {
		return errMessage
	}
	m.takeChunk(data, int(below))
	return nil
}

// sayChunks tells a node which chunks this one knows, from one of them on as many as a message has; and whether it is
// to answer with its own.
func (m *Machine) sayChunks(to strategy.Node, answer bool) {
	from := 0
	if n := len(m.chunks.all); n > mostHave {
		m.said = (m.said + mostHave) % n
		from = m.said
	}
	part := m.chunks.all[from:min(from+mostHave, len(m.chunks.all))]
	w := varint.Writer{messageHave}
	w.Bool(answer)
	for _, id := range part {
		w = append(w, id[:]...)
	}
	m.do(Send{To: to, Data: w})
}

// heardChunks asks for what another node knows and this one does not.
func (m *Machine) heardChunks(from strategy.Node, r *varint.Reader) error {
	answer := r.Bool()
	ids, ok := readIDs(r.Rest)
	if r.Bad || !ok || len(ids) > mostHave {
		return errMessage
	}
	w := varint.Writer{messageWant}
	for _, id := range ids {
		if _, known := m.chunks.find(id); !known && len(w) < 1+mostWant*len(id) {
			w = append(w, id[:]...)
		}
	}
	if len(w) > 1 {
		m.do(Send{To: from, Data: w})
	}
	if answer {
		m.sayChunks(from, false)
	}
	return nil
}

// wantedChunks sends chunks that another node asks for.
func (m *Machine) wantedChunks(from strategy.Node, r *varint.Reader) error {
	ids, ok := readIDs(r.Rest)
	if !ok || len(ids) > mostWant {
		return errMessage
	}
	for _, id := range ids {
		if _, known := m.chunks.find(id); known && m.cfg.Chunk != nil {
			if data, err := m.cfg.Chunk(id); err == nil {
				m.sendChunk(from, data, 0)
			} else {
				m.log.Warn("a list of seeds cannot be read", "err", err)
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
