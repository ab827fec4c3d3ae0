package frontier

import "sync"

// A compactor empties segments that are mostly out of use, so that their files can be removed. The frontier's lock
// guards it.
type compactor struct {
	mu       *sync.Mutex // the frontier's
	segments *segments
	pages    *pager
	queues   *queueStore
	bench    *workbench
	cold     *coldHosts
	buckets  *buckets
	victim   *victim // nil: none
}

// A victim is the segment being emptied.
type victim struct {
	segment *segment
	offset  int64      // of the next frame
	host    string     // whose blocks are being moved; "": none
	cold    *hostQueue // of that host while it is not in memory; nil if it is, or if nothing was moved yet
}

// A blocksRewrite moves the blocks of a host that is not in memory. It is complete when the host's record leads to the
// new ones.
type blocksRewrite struct {
	top     loc // of the record when it began
	read    []chunk
	written []chunk
}

const (
	slackSegments = 4 // that may be empty before any is compacted
	compactPace   = 4 // bytes read for each byte written: room for half as much again is freed
)

// needsSave reports whether so much was written that compaction is worthwhile.
func (c *compactor) isDue() bool {
	s := c.segments
	return s.written >= min(writeBuffer, s.full)/4 && (c.victim != nil || s.isWasteful())
}

// compact empties segments as fast as others are filled, so that nobody waits for it long. It stops when blocked.
func (c *compactor) compact(blocked func() bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isDue() {
		return nil
	}
	s := c.segments
	work := compactPace * s.written
	s.written = 0
	n := int64(0)
	step := func() (err error) {
		written := s.written
		n, err = c.step(c.victim)
		s.written = written // frames that were moved cause no more moves
		return err
	}
	for work > 0 && !blocked() {
		if c.victim == nil {
			if !s.isWasteful() {
				return nil
			}
			seg := s.emptiest()
			if seg == nil {
				return nil
			}
			c.victim = &victim{segment: seg}
		}
		if err := c.pages.run(step); err != nil {
			return err
		}
		work -= n
	}
	return nil
}

// step looks at the victim's next frame, and moves it if it is in use: a chunk as it is; with a block, all blocks that
// its host has in the segment. It returns how many bytes it has read.
func (c *compactor) step(v *victim) (int64, error) {
	if v.host != "" {
		done, err := c.moveBlocks(v)
		if done {
			v.host = ""
		}
		return 0, err
	}
	if c.segments.all[v.segment.id] != v.segment || v.offset >= v.segment.size {
		v.segment.stuck = true
		c.victim = nil
		return 0, nil
	}
	at := newLoc(v.segment.id, v.offset)
	frame, err := c.pages.frame(at, readAhead)
	if err != nil {
		return 0, err
	}
	r := readerOf(frame)
	switch r.Byte() {
	case frameChunk:
		c.buckets.moveChunk(uint32(r.Uint()), at, frame)
	case frameBlock:
		v.host = r.String()
	default:
		return 0, c.pages.damaged(at, errBlock)
	}
	n := int64(len(frame) + frameLen)
	v.offset += n
	return n, nil
}

// moveBlocks moves the blocks of the victim's host out of its segment, one at a time; done says that all are.
func (c *compactor) moveBlocks(v *victim) (done bool, err error) {
	end := newLoc(v.segment.id+1, 0)
	if h := c.bench.hosts[v.host]; h != nil {
		c.abandon()
		c.bench.saver.saveHost(h)
		done, err = c.queues.expandBefore(&h.queue, end)
		c.bench.place(h)
		return done, err
	}
	id, top := c.cold.find(v.host), loc(0)
	if id != 0 {
		top = c.cold.table.at(id).top
	}
	if v.cold != nil && v.cold.blocks.top != top {
		c.abandon() // it was in memory meanwhile, or was removed
	}
	if top == 0 {
		return true, nil
	}
	// Only the blocks of a cold host move. What its bucket knows of them, the first key and the number of items, stays
	// true.
	if v.cold == nil {
		v.cold = &hostQueue{host: v.host, links: []link{{at: top}}, blocks: &blocksRewrite{top: top}}
	}
	q := v.cold
	if done, err = c.queues.expandBefore(q, end); !done {
		return false, err
	}
	c.queues.store(q, false)
	c.cold.changed(id).top = q.links[0].at
	c.queues.residents.charge(q, -q.bytes)
	c.segments.release(q.blocks.read)
	v.cold = nil
	return true, nil
}

// abandon releases the blocks that were written for a cold host that has come into memory, or was removed, or is about
// to be in a checkpoint: its record leads to the old ones.
func (c *compactor) abandon() {
	if c.victim == nil || c.victim.cold == nil {
		return
	}
	q := c.victim.cold
	c.queues.residents.charge(q, -q.bytes)
	c.segments.release(q.blocks.written)
	c.victim.cold = nil
}
