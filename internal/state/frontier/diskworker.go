package frontier

import (
	"context"
	"sync"
	"time"
)

// A diskWorker does the work on disk without holding the frontier's lock: it writes, reads due hosts, and compacts. A
// caller of Next or WaitForRoom runs it with the disk lock; other callers continue with the hosts in memory. Push and
// other changes only add to the data to write.
type diskWorker struct {
	mu        *sync.Mutex // the frontier's lock
	lock      *diskLock
	virtual   *virtualizer // nil if all is in memory; then there is no work
	writer    *segmentWriter
	pages     *pager
	reads     *readQueue
	compactor *compactor
	saver     *saver
	err       error // disk error since the last call of Next
}

func (w *diskWorker) fail(err error) {
	if err != nil {
		w.err = err
	}
}

// begin acquires the disk lock if there is work. Otherwise it returns the time until there is work, and whether writing
// is so far behind that nothing may be handed out.
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

// hasWork reports whether there is work at a tick.
func (w *diskWorker) hasWork(tick int64) bool {
	v, s := w.virtual, w.virtual.segments
	return s.behind.bytes > 0 || len(s.retained.removable) > 0 || len(w.pages.duplicates) > 0 || !w.reads.isEmpty() ||
		len(v.buckets.overfull) > 0 || w.compactor.isDue() || w.hasSaved() || v.hasDue(tick)
}

// hasSaved reports whether a checkpoint has saved enough data to write it.
func (w *diskWorker) hasSaved() bool {
	return w.saver.cut != nil && len(w.saver.cut.file.buf) > cutFlushBytes
}

// waitForRoom waits while the disk is behind. It does the work itself, or waits for the holder of the disk lock.
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

// work does each kind of work once, and releases the disk lock.
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
	w.virtual.shrink() // it does nothing while writing is behind
	return nil
}

// drainCut writes the saved data of a checkpoint if there is enough. The checkpoint reports an error.
func (w *diskWorker) drainCut() {
	w.mu.Lock()
	c := w.saver.cut
	due := w.hasSaved()
	w.mu.Unlock()
	if due {
		c.file.drain()
	}
}

// splitBuckets splits the overfull buckets.
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
	w.virtual.shrink() // else the ends of buckets would take too much memory
	return true, nil
}

// loadBuckets loads the cold hosts that are due or almost due, from at most one bucket of each class.
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
