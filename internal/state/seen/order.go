package seen

import (
	"runtime"
	"sync"
	"time"

	"kumo/internal/state/seen/mem"
)

// An arranger sorts the tables for queries.
type arranger struct {
	parts    *parts
	ordering sync.Mutex    // held while an order is being extended
	running  chan struct{} // closed when nearly all is sorted; nil: not running; guarded by parts.mu
}

// Arrange sorts the URLs in memory that are not sorted yet, for ScanAfter and Hosts. If there are many, it continues in
// the background, and Arrange returns after patience. It returns how many URLs are not sorted yet.
func (a *arranger) Arrange(patience time.Duration) (behind int) {
	defer a.parts.unpin()
	var late <-chan time.Time
	for _, t := range a.parts.pin() {
		if a.behind(t) > mem.LongList {
			done := a.arrangeInBackground()
			if late == nil {
				late = time.After(patience)
			}
			select {
			case <-done:
			case <-late:
				late = time.After(0)
			}
		}
		n := a.behind(t)
		if n > 0 && n <= mem.LongList {
			a.arrange(t)
			n = 0
		}
		behind += n
	}
	return behind
}

// behind returns how many records of a table are not sorted yet.
func (a *arranger) behind(t *mem.Table) int {
	a.parts.mu.Lock()
	defer a.parts.mu.Unlock()
	return t.Len() - t.Order().Len()
}

func (a *arranger) order(t *mem.Table) *mem.Order {
	a.parts.mu.Lock()
	defer a.parts.mu.Unlock()
	return t.Order()
}

// arrange sorts all current records of a table. The caller has pinned the table.
func (a *arranger) arrange(t *mem.Table) {
	a.parts.mu.Lock()
	end := t.Next()
	a.parts.mu.Unlock()
	for o := a.order(t); o.End() < end; o = a.order(t) {
		if a.arrangeSome(t); a.order(t).End() == o.End() {
			return // the table is empty
		}
	}
}

// arrangeSome sorts some more records of a table. It holds the lock for short times only, and not while it sorts.
func (a *arranger) arrangeSome(t *mem.Table) {
	a.ordering.Lock()
	defer a.ordering.Unlock()
	o := a.order(t)
	var refs []mem.Ref
	var keys mem.Keys
	end := o.End()
	for more := true; more && len(refs) < mem.LongList; {
		a.parts.mu.Lock()
		from := end
		refs, end = t.Refs(from, refs)
		more, keys = end > from, t.Keys()
		a.parts.mu.Unlock()
		runtime.Gosched() // lets waiting goroutines get the lock
	}
	o = o.With(keys, refs, end)
	a.parts.mu.Lock()
	defer a.parts.mu.Unlock()
	t.KeepOrder(o)
}

// arrangeInBackground starts to sort the tables, unless that is running. It uses half of one processor.
func (a *arranger) arrangeInBackground() (done chan struct{}) {
	a.parts.mu.Lock()
	defer a.parts.mu.Unlock()
	if a.running != nil {
		return a.running
	}
	done = make(chan struct{})
	a.running = done
	go func() {
		for a.arrangeMore() {
		}
		a.parts.mu.Lock()
		defer a.parts.mu.Unlock()
		a.running = nil
		close(done)
	}()
	return done
}

// maxPause caps one pause, as a step that took long may have been waiting itself.
const maxPause = 100 * time.Millisecond

// arrangeMore sorts some records of the first table with many unsorted ones; it returns false if there is none.
func (a *arranger) arrangeMore() bool {
	defer a.parts.unpin()
	for _, t := range a.parts.pin() {
		if a.behind(t) > mem.LongList {
			begin := time.Now()
			a.arrangeSome(t)
			time.Sleep(min(time.Since(begin), maxPause))
			return true
		}
	}
	return false
}
