package mesh

import (
	"cmp"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// A RecordVersion is one state of the crawl's record.
type RecordVersion struct {
	Version uint64
	By      strategy.Node
	Data    []byte
}

// follows reports whether a version can be the result of changes to another one.
func (a *RecordVersion) follows(b *RecordVersion) bool {
	if b.Version == 0 {
		return a.Version <= maxVersion
	}
	return a.Version <= b.Version || a.Version-b.Version <= maxAhead
}

func (a *RecordVersion) newer(b *RecordVersion) bool {
	return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.By, b.By)) > 0
}

const (
	maxRecord   = 1 << 20          // bytes
	recordEvery = 10 * time.Second // while no record is known
	recordAgain = 30 * time.Second
	agreeEvery  = time.Second // until another node is known to have the same
	// A version may be at most so far ahead of this node's own. Versions count changes, so an honest one is never
	// further ahead. A member that makes up a number near the greatest would leave no room for later changes.
	maxAhead   = 1 << 32
	maxVersion = 1 << 62 // for a node without a record
)

// A gossip spreads the data that all nodes need: the crawl's record, and chunks.
//
// The record has the crawl's settings, and whether it runs. Any node may change it. The newest record wins: the one
// with the greatest version, a clock that counts changes (L. Lamport, Time, Clocks, and the Ordering of Events in a
// Distributed System, 1978). Chunks never change: lists of seeds, and of their redirects, which define the scope.
//
// A change spreads at once over the tree that the buckets form: to one node of each bucket, which passes it on within
// that bucket (messageRecord, messageChunk). For nodes that were away, each node compares the record's version, the
// number of chunks and the sum of their ids with another node from time to time (messageVersion). The older record is
// replaced. If chunks differ, the two send each other the ids that they have (messageHave), and request the chunks that
// they lack (messageWant).
//
// Invariants: the record's version never decreases, and chunks are never removed.
type gossip struct {
	core   *core
	place  *place
	terms  *terms
	died   func() []strategy.Node                  // nodes that have died lately
	read   func(id ChunkID) (data []byte, _ error) // reads a chunk; nil: chunks cannot be read
	record RecordVersion
	chunks chunkSet
	sent   int  // the position of the last messageHave, if the ids do not fit in one
	synced int  // number of nodes and empty buckets that sync has passed
	agreed bool // Agreed was reported
}

// change creates a new version of the record.
func (g *gossip) change(data []byte) {
	g.update(RecordVersion{g.record.Version + 1, g.core.self, data}, g.place.width)
}

// update replaces the record by a newer version, and passes it on to the given number of lowest buckets.
func (g *gossip) update(r RecordVersion, buckets int) {
	if !r.newer(&g.record) {
		return
	}
	g.record = r
	g.core.activity++
	g.core.do(Changed{Record: r})
	g.place.eachLowBucket(buckets, func(i int, nodes []strategy.Node) { g.sendRecord(nodes[0], i) })
	for _, n := range g.died() { // a node that sleeps receives its messages when it wakes
		g.sendRecord(n, 0)
	}
}

func (g *gossip) sendRecord(to strategy.Node, buckets int) {
	w := varint.Writer{messageRecord}
	w.Uint(uint64(buckets))
	w.Uint(g.record.Version)
	w.String(string(g.record.By))
	w.Bytes(g.record.Data)
	g.core.do(Send{To: to, Data: w})
}

func (g *gossip) receiveRecord(_ strategy.Node, r *varint.Reader) error {
	buckets := r.Uint()
	v := RecordVersion{Version: r.Uint(), By: strategy.Node(r.String()), Data: r.Bytes()}
	if !r.Complete() || buckets > uint64(g.place.width) || len(v.By) > maxName || len(v.Data) > maxRecord ||
		!v.follows(&g.record) {
		return errMessage
	}
	g.update(v, int(buckets))
	return nil
}

// sync sends the next node the version of the record, and a summary of the chunks.
func (g *gossip) sync() {
	switch {
	case !g.agreed:
		g.core.after(agreeEvery, g.sync)
	case g.record.Version == 0:
		g.core.after(recordEvery, g.sync)
	default:
		g.core.after(recordAgain, g.sync)
	}
	if g.place.occupied == (xor.ID{}) {
		return
	}
	for { // next occupied bucket
		g.synced++
		i := g.place.lowest() + g.synced%g.place.width
		if g.place.occupied.Bit(i) == 0 {
			continue
		}
		if nodes := g.place.overlay.Bucket(i); len(nodes) > 0 {
			g.sendVersion(nodes[g.synced/g.place.width%len(nodes)], !g.agreed)
		}
		return
	}
}

// sendVersion sends a summary. If ask is true, the receiver answers with its own, even if it is the same.
func (g *gossip) sendVersion(to strategy.Node, ask bool) {
	w := varint.Writer{messageVersion}
	w.Bool(ask)
	w.Uint(g.record.Version)
	w.String(string(g.record.By))
	w.Uint(uint64(len(g.chunks.all)))
	w = append(w, g.chunks.sum[:]...)
	g.core.do(Send{To: to, Data: w})
}

// receiveVersion processes a messageVersion. It sends the record if it is newer here, and requests it if it is newer
// there.
func (g *gossip) receiveVersion(from strategy.Node, r *varint.Reader) error {
	ask := r.Bool()
	v := RecordVersion{Version: r.Uint(), By: strategy.Node(r.String())}
	n := r.Uint()
	sum, ok := readIDs(r.Rest)
	if r.Bad || !ok || len(sum) != 1 || len(v.By) > maxName {
		return errMessage
	}
	same := sum[0] == g.chunks.sum && n == uint64(len(g.chunks.all))
	if !same {
		g.sendHave(from, true)
	}
	if g.record.newer(&v) {
		g.sendRecord(from, 0)
	}
	if ask || v.newer(&g.record) && v.follows(&g.record) {
		g.sendVersion(from, false)
	}
	if same && !v.newer(&g.record) && !g.agreed {
		g.agreed = true
		g.core.do(Agreed{})
	}
	return nil
}
