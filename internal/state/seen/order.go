package seen

import (
	"runtime"
	"time"

	"kumo/internal/state/seen/mem"
)

// Arrange puts what is in memory in order for those who look: ScanAfter, Hosts. That is kept as long as a table is
// filled, so who crawls pays next to nothing for it as long as nobody looks, and a look what has come since the one
// before. Where that is much, it is done beside: for patience it is waited for, and then it is said how many URLs are
// not in order yet, which looks leave out.
func (d *DB) Arrange(patience time.Duration) (behind int) {
	defer d.unpinTables()
	var late <-chan time.Time
	for _, t := range d.pinTables() {
		if t == nil {
			continue
		}
		if d.behind(t) > mem.LongList {
			done := d.arrangeBeside()
			if late == nil {
				late = time.After(patience)
			}
			select {
			case <-done:
			case <-late:
				late = time.After(0)
			}
		}
		n := d.behind(t)
		if n > 0 && n <= mem.LongList {
			d.arrange(t)
			n = 0
		}
		behind += n
	}
	return behind
}

// behind is how many records of a table are not in order yet.
func (d *DB) behind(t *mem.Table) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return t.Len() - t.Order().Len()
}

// order is what is kept of a table's.
func (d *DB) order(t *mem.Table) *mem.Order {
	d.mu.Lock()
	defer d.mu.Unlock()
	return t.Order()
}

// arrange puts all in order that a table has now. The table is pinned.
func (d *DB) arrange(t *mem.Table) {
	d.mu.Lock()
	end := t.Next()
	d.mu.Unlock()
	for o := d.order(t); o.End() < end; o = d.order(t) {
		if d.arrangeSome(t); d.order(t).End() == o.End() {
			return // it is empty
		}
	}
}

// arrangeSome puts some more records of a table in order. The lock is not held for long, and not while they are sorted.
func (d *DB) arrangeSome(t *mem.Table) {
	d.ordering.Lock()
	defer d.ordering.Unlock()
	o := d.order(t)
	var refs []mem.Ref
	var keys mem.Keys
	end := o.End()
	for more := true; more && len(refs) < mem.LongList; {
		d.mu.Lock()
		from := end
		refs, end = t.Refs(from, refs)
		more, keys = end > from, t.Keys()
		d.mu.Unlock()
		runtime.Gosched() // whoever waits for the lock has it now
	}
	o = o.With(keys, refs, end)
	d.mu.Lock()
	defer d.mu.Unlock()
	t.KeepOrder(o)
}

// arrangeBeside begins to put in order what is in memory, unless that is being done. It takes half of one processor.
func (d *DB) arrangeBeside() (done chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.arranging != nil {
		return d.arranging
	}
	done = make(chan struct{})
	d.arranging = done
	go func() {
		for d.arrangeMore() {
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.arranging = nil
		close(done)
	}()
	return done
}

// longestPause is for how long at most is rested at once: what took long may have waited itself.
const longestPause = 100 * time.Millisecond

// arrangeMore puts some in order of the first table that lacks much; false if none does.
func (d *DB) arrangeMore() bool {
	defer d.unpinTables()
	for _, t := range d.pinTables() {
		if t != nil && d.behind(t) > mem.LongList {
			begin := time.Now()
			d.arrangeSome(t)
			time.Sleep(min(time.Since(begin), longestPause))
			return true
		}
	}
	return false
}
