package frontier

import "sync"

// A compactor empties segments that are mostly unused, so that their files can be removed. The frontier's lock guards
// it.
type compactor struct {
	mu       *sync.Mutex // the frontier's lock
	segments *segments
	pages    *pager
	queues   *queueStore
	bench    *workbench
	cold     *coldHosts
	buckets  *buckets
	victim   *victim // nil if none
}

// A victim is the segment being emptied.
type victim struct {
	segment *segment
	offset  int64      // offset of the next frame
	host    string     // host whose blocks are being moved; "" if none
	cold    *hostQueue // the host's queue while the host is cold; nil if it is hot, or before the first move
}

// A blocksRewrite moves the blocks of a host that is not in memory. It is complete when the host's record points to the
// new blocks.
type blocksRewrite struct {
	top     loc // top of the record at the start
	read    []chunk
	written []chunk
}

const (
	slackSegments = 4 // segments that may be empty before compaction starts
	compactPace   = 4 // bytes read for each byte written; frees 1.5 times the space written
)

// isDue reports whether enough was written since the last compaction.
func (c *compactor) isDue() bool {
	s := c.segments
	return s.written >= min(writeBuffer, s.full)/4 && (c.victim != nil || s.isWasteful())
}

// compact empties segments at the rate at which others fill, in short steps. It stops when blocked returns true.
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
		s.written = written // moved frames must not trigger more moves
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

// step processes the victim's next frame, and moves it if it is in use. A chunk moves unchanged; for a block, all
// blocks of its host in the segment move. It returns the number of bytes read.
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

// moveBlocks moves the blocks of the victim's host out of its segment, one at a time. done is true when all have moved.
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
		c.abandon() // it was loaded or removed since
	}
	if top == 0 {
		return true, nil
	}
	// Only the blocks of a cold host move. The first key and the number of items in its bucket stay correct.
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

// abandon releases the blocks written for a cold host if the host was loaded or removed, or before a checkpoint, as its
// record still points to the old blocks.
func (c *compactor) abandon() {
	if c.victim == nil || c.victim.cold == nil {
		return
	}
	q := c.victim.cold
	c.queues.residents.charge(q, -q.bytes)
	c.segments.release(q.blocks.written)
	c.victim.cold = nil
}
