package frontier

import (
	"context"
	"sync"
	"time"
)

// A diskWorker does the work on the disk: it writes, reads what is due, and compacts, each without the frontier's lock.
// A caller of Next or Room runs it with the disk locked; the others go on with the hosts in memory. Push, and all that
// changes the frontier, only adds to what is to be written.
type diskWorker struct {
	mu        *sync.Mutex // the frontier's
	lock      *diskLock
	virtual   *virtualizer // nil: all is in memory, and there is no work
	writer    *segmentWriter
	pages     *pager
	reads     *readQueue
	compactor *compactor
	saver     *saver
	err       error // of the disk, since the last call of Next
}

func (w *diskWorker) fail(err error) {
	if err != nil {
		w.err = err
	}
}

// initHost locks the disk if there is work. Otherwise it returns the time until there is, and whether nothing may be
// handed out before the holder of the disk has written more.
func (w *diskWorker) begin(now time.Time) (work bool, wait time.Duration, behind bool) {
	v := w.virtual
	if v == nil {
		return false, time.Hour, false
	}
	tick := v.cold.tick(now)
	v.advance(tick)
	switch {
	case !w.hasWork(tick):
		wait = time.Hour
		if at, some := v.nextDue(); some {
			wait = min(wait, max(0, at.Sub(now)))
		}
		return false, wait, false
	case w.lock.try():
		return true, 0, false
	}
	return false, time.Hour, v.isBehind()
}

// hasWork reports whether there is something to do at a tick.
func (w *diskWorker) hasWork(tick int64) bool {
	v, s := w.virtual, w.virtual.segments
	return s.behind.bytes > 0 || len(s.retained.removable) > 0 || len(w.pages.duplicates) > 0 || !w.reads.isEmpty() ||
		len(v.buckets.overfull) > 0 || w.compactor.isDue() || w.hasSaved() || v.hasDue(tick)
}

// hasSaved reports whether a checkpoint has saved so much that it should be written.
func (w *diskWorker) hasSaved() bool {
	return w.saver.cut != nil && len(w.saver.cut.file.buf) > cutFlushBytes
}

// room waits while the disk does not keep up: it does the work, or waits for the holder of the disk.
func (w *diskWorker) waitForRoom(ctx context.Context) {
	for w.isBehind() {
		select {
		case w.lock.held <- struct{}{}:
			if w.work() != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func (w *diskWorker) isBehind() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.virtual.isBehind()
}

// work does each kind of work once, and unlocks the disk.
func (w *diskWorker) work() error {
	defer w.lock.release()
	w.writer.removeSegments()
	w.drainCut()
	behind := w.virtual.isBehind
	for _, step := range [...]func() error{
		w.writer.writeExtents,
		w.reads.readFronts,
		func() error { return w.reads.rerankBlocks(behind) },
		w.splitBuckets,
		w.loadBuckets,
		func() error { return w.compactor.compact(behind) },
	} {
		if err := step(); err != nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.fail(err)
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.virtual.shrink() // which was put off if too much had to be written
	return nil
}

// drainCut writes what a checkpoint has saved, if that is much. An error is the checkpoint's.
func (w *diskWorker) drainCut() {
	w.mu.Lock()
	c := w.saver.cut
	due := w.hasSaved()
	w.mu.Unlock()
	if due {
		c.file.drain()
	}
}

// splitBuckets splits buckets to which much was pushed.
func (w *diskWorker) splitBuckets() error {
	for {
		if more, err := w.splitOne(); err != nil || !more {
			return err
		}
		if w.isBehind() {
			if err := w.writer.writeExtents(); err != nil {
				return err
			}
		}
	}
}

// minTick is before all ticks.
const minTick = -1 << 62

func (w *diskWorker) splitOne() (more bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.virtual.buckets
	if len(b.overfull) == 0 {
		return false, nil
	}
	first := b.overfull[0]
	if err := w.pages.run(func() error { return w.virtual.loadBucket(first, minTick) }); err != nil {
		return false, err
	}
	b.overfull[0], b.overfull = nil, b.overfull[1:]
	w.virtual.shrink() // or the ends of buckets would take too much memory
	return true, nil
}

// loadBuckets loads the cold hosts whose times have come or are near, of each class those of one bucket at most.
func (w *diskWorker) loadBuckets() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.virtual
	tick := v.tick()
	for c := range v.buckets.calendars {
		v.buckets.calendars[c].advance(tick, maxAhead.Milliseconds())
		if err := w.pages.run(func() error { return v.loadDue(class(c), tick) }); err != nil {
			return err
		}
		v.shrink()
	}
	return nil
}
