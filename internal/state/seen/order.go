package seen

import (
	"runtime"
	"sync"
	"time"

	"kumo/internal/state/seen/mem"
)

// An arranger puts the tables in order for queries.
type arranger struct {
	parts    *parts
	ordering sync.Mutex    // held while an order is extended
	running  chan struct{} // closed when nearly all is in order; nil: nothing runs; guarded by parts.mu
}

// Arrange puts what is in memory in order for ScanAfter and Hosts, beyond what earlier calls did. If that is much, it
// continues in the background, and Arrange returns after patience how many URLs are not in order yet.
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

// afterHost is how many records of a table are not in order yet.
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

// arrange puts all in order that a table has now. The table is pinned.
func (a *arranger) arrange(t *mem.Table) {
	a.parts.mu.Lock()
	end := t.Next()
	a.parts.mu.Unlock()
	for o := a.order(t); o.End() < end; o = a.order(t) {
		if a.arrangeSome(t); a.order(t).End() == o.End() {
			return // it is empty
		}
	}
}

// arrangeSome puts some more records of a table in order. The lock is not held for long, and not while they are sorted.
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
		runtime.Gosched() // whoever waits for the lock has it now
	}
	o = o.With(keys, refs, end)
	a.parts.mu.Lock()
	defer a.parts.mu.Unlock()
	t.KeepOrder(o)
}

// arrangeInBackground begins to put in order what is in memory, unless that is being done. It takes half of one processor.
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

// maxPause is for how long at most is rested at once: what took long may have waited itself.
const maxPause = 100 * time.Millisecond

// arrangeMore puts some in order of the first table that lacks much; false if none does.
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
