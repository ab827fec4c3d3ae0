package seen

import (
	"iter"
	"slices"

	"kumo/internal/state/seen/mem"
	"kumo/internal/state/seen/run"
)

// Visited iterates over the visited URLs that like accepts in some run or table: those on disk in order, then those
// only in memory. It reads the disk as it goes. A URL may be returned twice, with all the data at that moment.
func (q *queries) Visited(like func(*Meta) bool) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		tables := q.pin() // before the view: a merge in between would hide URLs from both
		defer q.unpin()
		if !q.visitedOnDisk(like, yield) {
			return
		}
		for _, t := range tables {
			if !q.visitedIn(t, like, yield) {
				return
			}
		}
	}
}

// visitedOnDisk reads the disk again when a merge has written the URLs in memory to disk: older runs do not have them,
// and memory has them no more.
func (q *queries) visitedOnDisk(like func(*Meta) bool, yield func(Entry, error) bool) bool {
	p := diskPass{queries: q, like: like, yield: yield}
	for p.part() {
	}
	return !p.ended
}

type diskPass struct {
	*queries
	like  func(*Meta) bool
	yield func(Entry, error) bool
	from  string // URL to continue at
	ended bool   // by an error, or by the caller
}

// part reads until a merge is done, and reports whether there may be more.
func (p *diskPass) part() (more bool) {
	p.mu.Lock()
	view, merges := p.tiers.Pin(), p.merges
	p.mu.Unlock()
	defer view.Release() //nolint:errcheck // the data read is correct regardless
	all := run.Merge(mergeValues, view.Scan([]byte(p.from))...)
	for all.Next() {
		r, ok := readRecord(all.Value())
		if ok && len(r.meta) == 0 {
			continue
		}
		meta, sound := readMeta(r.meta, p.created)
		if !ok || !sound {
			return p.fail(damaged(all.Key()))
		}
		if meta.Fetched.IsZero() || !p.like(&meta) {
			continue
		}
		p.from = string(all.Key())
		r.meta = slices.Clone(r.meta)
		if !p.addMemory(p.from, &r, merges) {
			return true
		}
		e, err := p.entry(p.from, r)
		if err != nil {
			return p.fail(err)
		}
		if p.ended = !p.yield(e, nil); p.ended {
			return false
		}
	}
	if err := all.Err(); err != nil {
		return p.fail(err)
	}
	return false
}

func (p *diskPass) fail(err error) (more bool) {
	p.ended = true
	p.yield(Entry{}, err)
	return false
}

// visitedIn iterates over a table. It holds the lock for one group of records at a time.
func (q *queries) visitedIn(t *mem.Table, like func(*Meta) bool, yield func(Entry, error) bool) bool {
	var urls []string
	for i := range mem.Groups {
		urls = urls[:0]
		q.mu.Lock()
		for ref := range t.Group(i) {
			meta, ok := readMeta(t.Kept(mem.Ref(t.Word(ref, wordMeta))), q.created)
			if ok && !meta.Fetched.IsZero() && like(&meta) {
				urls = append(urls, string(t.Key(ref)))
			}
		}
		q.mu.Unlock()
		for _, url := range urls {
			e, known, err := q.Get(url)
			if (known || err != nil) && !yield(e, err) {
				return false
			}
		}
	}
	return true
}
