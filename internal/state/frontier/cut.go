package frontier

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"path/filepath"
	"slices"

	"kumo/internal/base/vfs"
)

const (
	checkpointMagic = "kumo frontier 4\n"
	checkpointName  = "checkpoint"
	checkpointTemp  = "checkpoint.new"
	cutStep         = 16              // hosts saved in one go
	cutBehind       = 4 * writeBuffer // bytes saved from which others than Write write them
)

// The sections of a checkpoint: a byte, the length of what follows and the CRC-32C of it and of that byte, four bytes
// each, little-endian.
const (
	sectionBegin   = 'B' // the process's number, and the Unix time of tick 0 in ms
	sectionRecords = 'R' // the first one's number, four bytes; those of cold hosts, others among them are marked as hot
	// a record of a host that was in memory; its name, links, what waited in memory, what was under way
	sectionHost   = 'H'
	sectionBucket = 'C' // a bucket's number, class and time; its chunks
	sectionGone   = 'G' // keys of URLs that are not to be handed out, 16 bytes each
	sectionEnd    = 'E' // the last item's age, the segments, the most that any item is lifted by, the caller's note
)

// ErrInMemory is what a frontier says that has no folder for a checkpoint.
var ErrInMemory = errors.New("the frontier is in memory only")

// A Cut is the frontier as it was at one moment, of which a checkpoint is made while it goes on. What changes meanwhile
// is saved first.
type Cut struct {
	f       *Frontier
	buf     []byte // saved, and not in the file
	chunks  []bool // saved
	hosts   []*host
	buckets []*bucket
	flying  map[string]bool // URLs
	gone    goneKeys        // as Suppress had it
	enc     writer
	err     error
	last    uint32 // the segment that may have grown since
	// For who holds the disk alone.
	file  vfs.File
	spare []byte
}

// UnderWay reports whether a visit to a URL was under way at the cut.
func (c *Cut) UnderWay(url string) bool { return c.flying[url] }

// Cut begins a checkpoint: all that was pushed, and all that is under way, will be in it. The caller sees to it that at
// this moment nothing is on its way from the journal to Push. It takes a short time, and does not wait for the disk;
// Write does the work, and must be called before the next Cut.
func (f *Frontier) Cut() (*Cut, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.disk
	if d == nil {
		return nil, ErrInMemory
	}
	s := d.segments
	if s.broken != nil || s.cutting {
		return nil, fmt.Errorf("begin a checkpoint of the frontier: %w", errors.Join(s.broken, busyErr(s.cutting)))
	}
	c := &Cut{f: f, chunks: make([]bool, len(d.table.chunks)), hosts: make([]*host, 0, len(f.hosts)),
		flying: map[string]bool{},
		gone:   maps.Clone(f.gone)}
	for _, h := range f.hosts {
		c.hosts = append(c.hosts, h)
		for _, it := range h.flying {
			c.flying[it.URL] = true
		}
	}
	for _, b := range d.buckets {
		c.buckets = append(c.buckets, b)
	}
	if d.victim != nil {
		f.abandonMove(d.victim) // or what was written for it would be in use there for nobody
	}
	d.era++
	d.cut = c
	s.begin()
	c.buf = append(c.buf, checkpointMagic...)
	c.section(sectionBegin, binary.AppendVarint(binary.AppendUvarint(nil, d.run), d.base.UnixMilli()))
	return c, nil
}

// saveGone saves what there is only between a crash and the time when all that was gone has come up.
func (c *Cut) saveGone() {
	var body []byte
	for k, n := range c.gone {
		for range n {
			body = append(body, k[:]...)
		}
	}
	c.section(sectionGone, body)
}

func busyErr(busy bool) error {
	if busy {
		return errors.New("another one is being written")
	}
	return nil
}

// begin notes what the segments hold at the moment of a cut.
func (s *segments) begin() {
	s.cutting, s.cutLive = true, make(map[uint32]int64, len(s.all))
	for id, seg := range s.all {
		s.cutLive[id] = seg.live
	}
}

// end says whether the checkpoint is durable.
func (s *segments) end(durable bool) {
	if durable {
		s.kept = s.era
	}
	s.era++
	s.cutting, s.cutLive = false, nil
	s.bury()
}

func (c *Cut) section(kind byte, body []byte) {
	if len(body) > maxSection && c.err == nil {
		c.err = fmt.Errorf("a section of %d bytes is too large to be read again", len(body))
	}
	c.buf = append(c.buf, kind)
	c.buf = binary.LittleEndian.AppendUint32(c.buf, uint32(len(body)))
	c.buf = binary.LittleEndian.AppendUint32(c.buf, sectionSum(kind, body))
	c.buf = append(c.buf, body...)
}

func sectionSum(kind byte, body []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte{kind}, castagnoli), castagnoli, body)
}

// drain writes what was saved, for who holds the disk. What fails is in err.
func (c *Cut) drain() {
	c.f.mu.Lock()
	buf, err := c.buf, c.err
	c.buf = c.spare[:0]
	c.f.mu.Unlock()
	if err == nil && c.file == nil {
		err = c.open()
	}
	if err == nil {
		_, err = c.file.Write(buf)
	}
	c.spare = buf
	c.locked(func() { c.err = cmp.Or(c.err, err) })
}

func (c *Cut) open() (err error) {
	s := c.f.disk.segments
	name := filepath.Join(s.dir, checkpointTemp)
	if err = vfs.CutBack(s.disk, name, 0); err == nil {
		c.file, err = s.disk.Append(name)
	}
	return err
}

// saveChunk saves a chunk of records before one of them changes.
func (c *Cut) saveChunk(i uint32) {
	if int(i) >= len(c.chunks) || c.chunks[i] || c.err != nil {
		return
	}
	c.chunks[i] = true
	t := &c.f.disk.table
	n := min(chunkLen, int(t.n)-int(i)*chunkLen)
	body := make([]byte, 0, 4+n*recordLen)
	body = binary.LittleEndian.AppendUint32(body, i<<chunkBits+1)
	for k := range n {
		body = t.chunks[i][k].append(body)
	}
	c.section(sectionRecords, body)
}

// saveHost saves a host in memory before it changes.
func (c *Cut) saveHost(h *host) {
	d := c.f.disk
	h.era = d.era
	if c.err != nil {
		return
	}
	var r record
	r.hi, r.lo = d.table.identity(h.key)
	c.f.describe(h, &r)
	w := &c.enc
	w.b = r.append(w.b[:0])
	w.string(h.key)
	w.links(h.links)
	w.entries(h.waiting)
	w.uint(uint64(len(h.flying)))
	for _, it := range h.flying {
		e := c.f.entry(h.key, it)
		w.entry(&e)
	}
	c.section(sectionHost, w.b)
}

// saveBucket saves a bucket before it changes.
func (c *Cut) saveBucket(b *bucket) {
	d := c.f.disk
	d.flush(b)
	b.era = d.era
	if c.err != nil {
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
	c.section(sectionBucket, w.b)
}

// Write makes the checkpoint of a cut, with a note that Open gives back: how far the caller's journal was then, say.
// When it returns without error, the checkpoint is durable; after an error the one before holds.
func (c *Cut) Write(note []byte) error {
	f := c.f
	err := c.save(note)
	f.mu.Lock()
	f.disk.cut = nil
	f.disk.segments.end(err == nil)
	f.mu.Unlock()
	f.takeDisk()
	defer f.giveDisk()
	if c.file != nil && err != nil {
		_ = c.file.Close() // it is worth nothing
	}
	f.bury()
	if err != nil {
		return fmt.Errorf("write a checkpoint of the frontier: %w", err)
	}
	return nil
}

func (c *Cut) save(note []byte) error {
	for hosts := range slices.Chunk(c.hosts, cutStep) {
		c.step(func() {
			for _, h := range hosts {
				if c.f.hosts[h.key] == h {
					c.f.touch(h)
				}
			}
		})
	}
	for _, b := range c.buckets {
		c.step(func() {
			if c.f.disk.buckets[b.id] == b {
				c.f.disk.save(b)
			}
		})
	}
	for i := range c.chunks {
		c.step(func() { c.saveChunk(uint32(i)) })
	}
	if err := c.f.sweep(); err != nil { // what was removed before the cut is not in use there
		return err
	}
	var unsynced []uint32
	c.locked(func() { unsynced = c.finish(note) })
	if err := c.writeAll(); err != nil {
		return err
	}
	s := c.f.disk.segments
	for _, id := range unsynced {
		if err := s.sync(id); err != nil {
			c.locked(func() { s.broken = err }) // what is on disk is anybody's guess
			return err
		}
	}
	c.locked(func() {
		for _, id := range unsynced {
			if id != c.last {
				delete(s.unsynced, id)
			}
		}
	})
	if err := errors.Join(c.file.Sync(), c.file.Close()); err != nil {
		return err
	}
	err := s.disk.Rename(filepath.Join(s.dir, checkpointTemp), filepath.Join(s.dir, checkpointName))
	if err != nil {
		c.locked(func() { s.broken = err }) // either checkpoint may be the one that is found
	}
	return err
}

// step saves something, and writes what was saved when that is enough.
func (c *Cut) step(save func()) {
	due := false
	c.locked(func() {
		save()
		due = len(c.buf) >= writeBuffer
	})
	if due {
		c.f.takeDisk()
		defer c.f.giveDisk()
		c.drain()
	}
}

// writeAll writes what is left, of the checkpoint and of the segments that it names.
func (c *Cut) writeAll() error {
	c.f.takeDisk()
	defer c.f.giveDisk()
	c.drain()
	return errors.Join(c.err, c.f.writeExtents())
}

func (c *Cut) locked(do func()) {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	do()
}

// finish saves the end of the checkpoint. Nothing has to be saved after it. It returns the segments to be synced.
func (c *Cut) finish(note []byte) (unsynced []uint32) {
	d := c.f.disk
	s := d.segments
	s.behind.seal()
	c.last = s.last
	d.cut = nil
	if c.err != nil {
		return nil
	}
	c.saveGone()
	w := writer{}
	w.uint(c.f.seq)
	named := s.named()
	w.uint(uint64(len(named)))
	for _, seg := range named {
		w.uint(uint64(seg.id))
		w.uint(uint64(seg.size))
		w.uint(uint64(s.cutLive[seg.id]))
		if s.unsynced[seg.id] {
			unsynced = append(unsynced, seg.id)
		}
	}
	w.int(int64(c.f.mostLift))
	w.string(string(note))
	c.section(sectionEnd, w.b)
	return unsynced
}

// sync makes a segment durable.
func (s *segments) sync(id uint32) error {
	f, err := s.disk.Append(s.name(id))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// named are the segments that a checkpoint needs.
func (s *segments) named() []*segment {
	var named []*segment
	for _, seg := range s.all {
		if s.cutLive[seg.id] > 0 {
			named = append(named, seg)
		}
	}
	for _, seg := range s.dead {
		if s.cutLive[seg.id] > 0 {
			named = append(named, seg)
		}
	}
	slices.SortFunc(named, func(a, b *segment) int { return int(a.id) - int(b.id) })
	return named
}

// Checkpoint makes a checkpoint of this moment: Cut and Write in one.
func (f *Frontier) Checkpoint(note []byte) error {
	c, err := f.Cut()
	if err != nil {
		return err
	}
	return c.Write(note)
}
