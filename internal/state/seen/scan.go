package seen

import (
	"bytes"
	"container/heap"
	"iter"
	"slices"

	"kumo/internal/state/seen/mem"
	"kumo/internal/state/seen/run"
	"kumo/internal/state/seen/tier"
)

// Number of URLs that are copied from memory at once: few at first, for callers that need only few, then more and more.
const (
	firstPage = 1 << 7
	scanPage  = 1 << 16
)

// Scan iterates over all URLs that begin with prefix, in order: those present at its start, and possibly some added
// since. It reads the disk as it goes, and copies the URLs in memory in parts.
func (q *queries) Scan(prefix string) iter.Seq2[Entry, error] {
	return q.scanFrom(&scan{prefix: prefix, whole: true}, prefix)
}

// ScanAfter is Scan, starting after a URL. From memory, it uses only what Arrange has sorted.
func (q *queries) ScanAfter(prefix, after string) iter.Seq2[Entry, error] {
	return q.scanFrom(&scan{prefix: prefix}, max(prefix, after+"\x00"))
}

// Select is a Scan of all URLs for which want returns true. want is called for each place that has a URL, often with
// the database locked, and must not retain it.
func (q *queries) Select(want func(url []byte) bool) iter.Seq2[Entry, error] {
	return q.scanFrom(&scan{want: want}, "")
}

type scan struct {
	prefix string
	want   func(url []byte) bool // nil: all
	whole  bool                  // the URLs in memory are sorted for it
}

func (q *queries) scanFrom(s *scan, begin string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		size := firstPage
		for from, more := begin, true; more; size = min(4*size, scanPage) {
			from, more = q.scanPage(s, from, size, yield)
		}
	}
}

// scanPage yields the URLs from one on, up to the last one copied from memory. It returns where the next page begins,
// and whether there may be one.
func (q *queries) scanPage(s *scan, from string, size int, yield func(Entry, error) bool) (next string, more bool) {
	sources, last, view := q.collect(s, from, size)
	defer view.Release() //nolint:errcheck // the data read is correct regardless
	all := run.Merge(mergeValues, append(sources, onDisk(view, from)...)...)
	for all.Next() {
		if !bytes.HasPrefix(all.Key(), []byte(s.prefix)) {
			return "", false
		}
		if last != "" && string(all.Key()) > last {
			break
		}
		if s.want != nil && !s.want(all.Key()) {
			continue
		}
		key := string(all.Key())
		r, ok := readRecord(all.Value())
		e, err := q.entry(key, r)
		if !ok {
			err = damaged(all.Key())
		}
		if !yield(e, err) || err != nil {
			return "", false
		}
	}
	if err := all.Err(); err != nil {
		yield(Entry{}, err)
		return "", false
	}
	return last + "\x00", last != ""
}

// collect copies the URLs in memory from one on, from the newest part to the oldest, and pins the disk's view. last is
// the URL up to which the copy is complete, "" if it is complete.
func (q *queries) collect(s *scan, from string, size int) (sources []run.Source, last string, view *tier.View) {
	q.mu.Lock()
	q.pins++
	tables, view := q.tables(), q.tiers.Pin() // at the same moment, as merges move URLs from one to the other
	q.mu.Unlock()
	defer q.unpin()
	for _, t := range tables {
		if s.whole {
			q.arranger.arrange(t)
		}
		var p *run.Pairs
		if s.want == nil {
			p = q.next(t, s.prefix, from, size)
		} else {
			p, size = q.wanted(t, s.want, from), scanPage
		}
		if n := len(p.All); n == size && (last == "" || string(p.All[n-1].Key) < last) {
			last = string(p.All[n-1].Key)
		}
		sources = append(sources, p)
	}
	return sources, last, view
}

// next copies up to size records from a URL on, in order. It holds the lock for some records at a time.
func (q *queries) next(t *mem.Table, prefix, from string, size int) *run.Pairs {
	const step = 256
	w, p, refs := q.arranger.order(t).From([]byte(from)), &run.Pairs{}, []mem.Ref(nil)
	for more := true; more; {
		refs = refs[:0]
		for len(refs) < min(step, size-len(p.All)) {
			if more = w.Next() && bytes.HasPrefix(w.Key(), []byte(prefix)); !more {
				break
			}
			refs = append(refs, w.Ref())
		}
		q.mu.Lock()
		for _, ref := range refs {
			r := load(t, ref)
			p.All = append(p.All, run.Pair{Key: bytes.Clone(t.Key(ref)), Value: r.append(nil)})
		}
		q.mu.Unlock()
		more = more && len(p.All) < size
	}
	return p
}

// wanted copies the first wanted records from a URL on, up to a page, without sorting the table, which would not pay
// off for one query. It holds the lock for one group of records at a time.
func (q *queries) wanted(t *mem.Table, want func([]byte) bool, from string) *run.Pairs {
	p := &firstPairs{}
	for i := range mem.Groups {
		q.mu.Lock()
		for ref := range t.Group(i) {
			if key := t.Key(ref); string(key) >= from && p.wants(key) && want(key) {
				r := load(t, ref)
				p.add(run.Pair{Key: bytes.Clone(key), Value: r.append(nil)})
			}
		}
		q.mu.Unlock()
	}
	slices.SortFunc(p.All, func(a, b run.Pair) int { return bytes.Compare(a.Key, b.Key) })
	return &p.Pairs
}

// firstPairs collects the first pairs, as a heap with the last on top.
type firstPairs struct{ run.Pairs }

func (l *firstPairs) wants(key []byte) bool {
	return len(l.All) < scanPage || bytes.Compare(key, l.All[0].Key) < 0
}

func (l *firstPairs) add(p run.Pair) {
	if len(l.All) < scanPage {
		heap.Push(l, p)
		return
	}
	l.All[0] = p
	heap.Fix(l, 0)
}

func (l *firstPairs) Len() int           { return len(l.All) }
func (l *firstPairs) Less(i, j int) bool { return bytes.Compare(l.All[i].Key, l.All[j].Key) > 0 }
func (l *firstPairs) Swap(i, j int)      { l.All[i], l.All[j] = l.All[j], l.All[i] }
func (l *firstPairs) Push(x any)         { l.All = append(l.All, x.(run.Pair)) }
func (l *firstPairs) Pop() any           { panic("not used") }
