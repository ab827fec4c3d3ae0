package frontier

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// ErrInMemory is returned when a frontier without a folder is asked for a checkpoint.
var ErrInMemory = errors.New("the frontier has no folder")

const (
	cutStep       = 16              // hosts saved in one hold of the lock
	cutFlushBytes = 4 * writeBuffer // saved bytes from which the disk worker writes them too, not only Write
)

// A checkpointer makes checkpoints. The frontier's lock guards the data that it reads.
type checkpointer struct {
	mu         *sync.Mutex // the frontier's lock
	disk       *diskLock
	saver      *saver
	bench      *workbench
	ranking    *ranking
	suppressed *suppression
	cold       *coldHosts
	buckets    *buckets
	segments   *segments
	writer     *segmentWriter
	compactor  *compactor
	removals   *removals
}

// A Cut is a consistent snapshot of the frontier, from which a checkpoint is written while the frontier is in use.
// Parts of the frontier are saved before they change (saver).
type Cut struct {
	from       *checkpointer
	file       checkpointFile
	chunks     []bool // whether each chunk of records is saved
	hosts      []*host
	buckets    []*bucket
	inFlight   map[string]bool // URLs of visits under way
	suppressed urlCounts
	enc        writer
	last       uint32 // the segment that may have grown since the cut
}

// UnderWay reports whether a visit to a URL was under way at the cut.
func (c *Cut) UnderWay(url string) bool { return c.inFlight[url] }

// cut begins a checkpoint.
func (p *checkpointer) cut() (*Cut, error) {
	p.compactor.abandon() // else the checkpoint would count its blocks as in use
	if err := p.segments.retained.begin(p.segments.all); err != nil {
		return nil, err
	}
	c := &Cut{from: p, file: checkpointFile{mu: p.mu, folder: p.segments.folder},
		chunks: make([]bool, len(p.cold.table.chunks)), hosts: make([]*host, 0, len(p.bench.hosts)),
		inFlight: map[string]bool{}, suppressed: maps.Clone(p.suppressed.counts)}
	for _, h := range p.bench.hosts {
		c.hosts = append(c.hosts, h)
		for _, it := range h.visits.items {
			c.inFlight[it.URL] = true
		}
	}
	for _, b := range p.buckets.byID {
		c.buckets = append(c.buckets, b)
	}
	p.saver.begin(c)
	c.file.buf = append(c.file.buf, checkpointMagic...)
	c.file.section(sectionBegin,
		binary.AppendVarint(binary.AppendUvarint(nil, p.buckets.run), p.buckets.base.UnixMilli()))
	return c, nil
}

// saveChunk saves a chunk of records before one of them changes.
func (c *Cut) saveChunk(i uint32) {
	if int(i) >= len(c.chunks) || c.chunks[i] || c.file.err != nil {
		return
	}
	c.chunks[i] = true
	t := &c.from.cold.table
	n := min(chunkLen, int(t.n)-int(i)*chunkLen)
	body := make([]byte, 0, 4+n*recordLen)
	body = binary.LittleEndian.AppendUint32(body, i<<chunkBits+1)
	for k := range n {
		body = t.chunks[i][k].append(body)
	}
	c.file.section(sectionRecords, body)
}

// saveHost saves a host in memory before it changes.
func (c *Cut) saveHost(h *host) {
	if c.file.err != nil {
		return
	}
	var r record
	r.hi, r.lo = c.from.cold.table.identity(h.key)
	c.from.cold.describe(h, &r)
	w := &c.enc
	w.b = r.append(w.b[:0])
	w.string(h.key)
	w.links(h.queue.links)
	w.entries(h.queue.front)
	w.uint(uint64(len(h.visits.items)))
	for _, it := range h.visits.items {
		e := c.from.ranking.entry(h.key, it)
		w.entry(&e)
	}
	c.file.section(sectionHost, w.b)
}

// saveBucket saves a bucket before it changes.
func (c *Cut) saveBucket(b *bucket) {
	c.from.buckets.flush(b)
	if c.file.err != nil {
		return
	}
	w := &c.enc
	w.b = w.b[:0]
	w.uint(uint64(b.id))
	w.uint(uint64(b.class))
	w.int(b.from)
	w.uint(uint64(len(b.chunks)))
	for _, chunk := range b.chunks {
		w.uint(uint64(chunk.at))
		w.uint(uint64(chunk.size))
	}
	c.file.section(sectionBucket, w.b)
}

// saveSuppressed saves the suppressed URLs. There are none except for a while after a crash.
func (c *Cut) saveSuppressed() {
	var body []byte
	for k, n := range c.suppressed {
		for range n {
			body = append(body, k[:]...)
		}
	}
	c.file.section(sectionSuppressed, body)
}

// Write writes the checkpoint with a note, which Open returns: for example the caller's journal position. When it
// returns nil, the checkpoint is durable. After an error the previous checkpoint remains valid.
func (c *Cut) Write(note []byte) error {
	p := c.from
	err := c.save(note)
	c.locked(func() {
		p.saver.cut = nil
		p.segments.retained.end(err == nil)
	})
	p.disk.acquire()
	defer p.disk.release()
	if err != nil {
		c.file.abandon()
	}
	p.writer.removeSegments()
	if err != nil {
		return fmt.Errorf("write a checkpoint of the frontier: %w", err)
	}
	return nil
}

func (c *Cut) save(note []byte) error {
	p := c.from
	for hosts := range slices.Chunk(c.hosts, cutStep) {
		c.step(func() {
			for _, h := range hosts {
				if p.bench.hosts[h.key] == h {
					p.saver.saveHost(h)
				}
			}
		})
	}
	for _, b := range c.buckets {
		c.step(func() {
			if p.buckets.byID[b.id] == b {
				p.saver.saveBucket(b)
			}
		})
	}
	for i := range c.chunks {
		c.step(func() { c.saveChunk(uint32(i)) })
	}
	if err := p.removals.readAll(); err != nil { // hosts removed before the cut must not be in the checkpoint
		return err
	}
	var unsynced []uint32
	c.locked(func() { unsynced = c.finish(note) })
	if err := c.writeAll(); err != nil {
		return err
	}
	retained := &p.segments.retained
	for _, id := range unsynced {
		if err := p.writer.sync(id); err != nil {
			c.locked(func() { retained.broken = err }) // the state of the disk is unknown
			return err
		}
	}
	c.locked(func() {
		for _, id := range unsynced {
			if id != c.last {
				delete(retained.unsynced, id)
			}
		}
	})
	if err := c.file.close(); err != nil {
		return err
	}
	err := c.file.publish()
	if err != nil {
		c.locked(func() { retained.broken = err }) // Open may find either checkpoint
	}
	return err
}

// step saves a part, and writes the saved data if there is enough.
func (c *Cut) step(save func()) {
	due := false
	c.locked(func() {
		save()
		due = len(c.file.buf) >= writeBuffer
	})
	if due {
		c.from.disk.acquire()
		defer c.from.disk.release()
		c.file.drain()
	}
}

// writeAll writes the rest of the checkpoint, and of its segments.
func (c *Cut) writeAll() error {
	c.from.disk.acquire()
	defer c.from.disk.release()
	c.file.drain()
	return errors.Join(c.file.err, c.from.writer.writeExtents())
}

func (c *Cut) locked(do func()) {
	c.from.mu.Lock()
	defer c.from.mu.Unlock()
	do()
}

// finish saves the end of the checkpoint. After it, changes need not be saved any more. It returns the segments to
// sync.
func (c *Cut) finish(note []byte) (unsynced []uint32) {
	s := c.from.segments
	s.behind.seal()
	c.last = s.last
	c.from.saver.cut = nil
	if c.file.err != nil {
		return nil
	}
	c.saveSuppressed()
	w := writer{}
	w.uint(c.from.ranking.age)
	named := s.retained.named(s.all)
	w.uint(uint64(len(named)))
	for _, seg := range named {
		w.uint(uint64(seg.id))
		w.uint(uint64(seg.size))
		w.uint(uint64(s.retained.cutLive[seg.id]))
		if s.retained.unsynced[seg.id] {
			unsynced = append(unsynced, seg.id)
		}
	}
	w.int(int64(c.from.ranking.mostLift))
	w.string(string(note))
	c.file.section(sectionEnd, w.b)
	return unsynced
}
