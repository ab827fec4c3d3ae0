package frontier

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// Who holds the disk writes what is behind, reads what is due, and compacts, each without the lock: one caller of Next
// at a time, or of Room. The others go on with what is in memory. Push, and all that changes the frontier, only adds to
// what is behind.

// takeDisk waits for the disk; tryDisk does not.
func (f *Frontier) takeDisk() { f.io <- struct{}{} }

func (f *Frontier) tryDisk() bool {
	select {
	case f.io <- struct{}{}:
		return true
	default:
		return false
	}
}

func (f *Frontier) giveDisk() {
	<-f.io
	f.signal() // there may be more to do
}

// hasWork reports whether something is to be done on the disk at a tick.
func (d *virtualizer) hasWork(tick int64) bool {
	s := d.segments
	if s.behind.bytes > 0 || len(s.doomed) > 0 || len(s.surplus) > 0 || len(d.unread) > 0 || len(d.crowded) > 0 ||
		len(d.renewing) > 0 ||
		d.owesCompaction() || d.cut != nil && len(d.cut.buf) > cutBehind {
		return true
	}
	for c := range d.calendars {
		cal := &d.calendars[c]
		if len(cal.early) > 0 && tick >= cal.nextSplit() || len(cal.due) > 0 && d.wants(class(c)) {
			return true
		}
	}
	return false
}

// isBehind reports whether as much waits to be written as may.
func (d *virtualizer) isBehind() bool { return d != nil && d.segments.behind.bytes > d.mostBehind }

// Room waits while the disk does not keep up with what was pushed: it writes what is behind, or waits for who does. Who
// pushes much calls it now and then, as Push never waits. Where the disk fails there is nothing to wait for, and Next
// says so.
func (f *Frontier) Room(ctx context.Context) {
	for f.isBehind() {
		select {
		case f.io <- struct{}{}:
			if f.serve() != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func (f *Frontier) isBehind() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.disk.isBehind()
}

// serve does once what there is to be done, for who holds the disk, and gives it back.
func (f *Frontier) serve() error {
	defer f.giveDisk()
	f.bury()
	f.drainCut()
	for _, step := range [...]func() error{
		f.writeExtents, f.readFronts, f.rankBlocks, f.splitBuckets, f.loadBuckets, f.compact,
	} {
		if err := step(); err != nil {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.fail(err)
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shrink() // which it may not have done for being behind
	return nil
}

// bury removes doomed segments, but for those that have yet to be written.
func (f *Frontier) bury() {
	s := f.disk.segments
	f.mu.Lock()
	var doomed []*segment
	s.doomed = slices.DeleteFunc(s.doomed, func(seg *segment) bool {
		if s.behind.has(seg) {
			return false
		}
		doomed = append(doomed, seg)
		return true
	})
	surplus := s.surplus
	s.surplus = nil
	f.mu.Unlock()
	for _, src := range surplus {
		_ = src.Close() // it was only read
	}
	for i, seg := range doomed {
		if err := s.remove(seg); err != nil {
			f.mu.Lock()
			s.dead = append(s.dead, doomed[i:]...) // to be tried with the next
			f.mu.Unlock()
			return
		}
	}
}

// writeExtents writes all extents but the one at hand.
func (f *Frontier) writeExtents() error {
	s := f.disk.segments
	f.mu.Lock()
	defer f.mu.Unlock()
	for n := len(s.behind.extents); n > 0 && s.behind.first() != nil; n-- {
		p := s.behind.first()
		f.mu.Unlock()
		err := s.write(p)
		f.mu.Lock()
		if err != nil {
			return err
		}
		s.behind.drop()
	}
	return nil
}

// drainCut writes what a checkpoint has saved, if that is much: its error is the checkpoint's.
func (f *Frontier) drainCut() {
	f.mu.Lock()
	c := f.disk.cut
	due := c != nil && len(c.buf) > cutBehind
	f.mu.Unlock()
	if due {
		c.drain()
	}
}

// readFronts reads for hosts whose time has come what goes first.
func (f *Frontier) readFronts() error {
	d := f.disk
	f.mu.Lock()
	defer f.mu.Unlock()
	var h *host
	read := func() error {
		f.touch(h)
		return f.follow(h)
	}
	for n := len(d.unread); n > 0; n-- {
		h = d.unread[0]
		err := f.paged(read)
		d.unread[0], d.unread = nil, d.unread[1:]
		h.unread = false
		f.release(h)
		if err != nil {
			return err
		}
	}
	return nil
}

// wantFront has what goes first at a host read.
func (f *Frontier) wantFront(h *host) {
	h.unread = true
	f.hold(h)
	f.disk.unread = append(f.disk.unread, h)
}

// hold keeps a host in memory until release.
func (f *Frontier) hold(h *host) {
	h.held++
	f.place(h)
}

func (f *Frontier) release(h *host) {
	h.held--
	f.place(h)
}

// splitBuckets splits buckets to which much was pushed.
func (f *Frontier) splitBuckets() error {
	for {
		if more, err := f.splitOne(); err != nil || !more {
			return err
		}
		if f.isBehind() {
			if err := f.writeExtents(); err != nil {
				return err
			}
		}
	}
}

func (f *Frontier) splitOne() (more bool, err error) {
	d := f.disk
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(d.crowded) == 0 {
		return false, nil
	}
	b := d.crowded[0]
	if err := f.paged(func() error { return f.loadIf(b, never) }); err != nil {
		return false, err
	}
	d.crowded[0], d.crowded = nil, d.crowded[1:]
	f.shrink() // or the ends of buckets would take more room than they may
	return true, nil
}

// loadBuckets reads what cold hosts have whose time has come or is near, a bucket of each class at most.
func (f *Frontier) loadBuckets() error {
	d := f.disk
	f.mu.Lock()
	defer f.mu.Unlock()
	tick := d.tick(f.cfg.Now())
	for c := range d.calendars {
		d.calendars[c].advance(tick, maxAhead.Milliseconds())
		if err := f.paged(func() error { return f.wakeClass(class(c), tick) }); err != nil {
			return err
		}
		f.shrink()
	}
	return nil
}

// nextWork is after which time something is to be done on the disk.
func (d *virtualizer) nextWork(now time.Time) time.Duration {
	wait := time.Hour
	for c := range d.calendars {
		if at, some := d.nextWake(class(c)); some {
			wait = min(wait, max(0, d.time(at).Sub(now)))
		}
	}
	return wait
}

// closeFiles writes what is behind, for who holds the disk, and closes all files.
func (f *Frontier) closeFiles() error {
	s := f.disk.segments
	f.mu.Lock()
	s.behind.seal()
	f.mu.Unlock()
	err := errors.Join(f.writeExtents(), s.closeFile())
	f.bury()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, seg := range slices.AppendSeq(slices.Concat(s.dead, s.doomed), maps.Values(s.all)) {
		if seg.src != nil {
			err = errors.Join(err, seg.src.Close())
			seg.src = nil
		}
	}
	return err
}
