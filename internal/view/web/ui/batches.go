package ui

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"kumo/internal/archive/place"
	"kumo/internal/batch/inspect"
)

// A Batch is a storage location of batch crawls.
type Batch struct {
	Name  string // for display: a folder, or a URL
	Place place.Place
}

// batches are the batch crawls in a storage location, with cached results. Completed days do not change; running ones
// are recognized by the time of their state.
type batches struct {
	name, where string
	place       place.Place
	done        context.Context
	queue       *queue
	readers     chan struct{} // a slot for each reader of the storage location
	listing     chan struct{} // held while collections are listed; guards the fields below

	listed     []*inspect.Collection
	unreadable string // error for collections that cannot be read
	time       time.Time
	took       time.Duration

	days     cache[dayKey, *inspect.Brief]
	fullDays cache[fullDayKey, *dayAnswer]
}

// A cache keeps up to most values. When it is full, it is emptied.
type cache[K comparable, V any] struct {
	most int
	mu   sync.Mutex // guards all
	all  map[K]V
}

func (m *cache[K, V]) get(key K) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[key]
}

func (m *cache[K, V]) put(key K, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil || len(m.all) >= m.most {
		m.all = map[K]V{}
	}
	m.all[key] = v
}

type dayKey struct {
	dir, date string
	changed   time.Time
}

// A fullDayKey includes the time of the last day, which removes files of earlier ones.
type fullDayKey struct {
	dayKey
	last time.Time
}

const (
	placeReaders    = 16
	maxCachedBriefs = 50_000 // days whose Brief is cached
	maxCachedDays   = 200    // days whose complete answer is cached
)

func newBatches(done context.Context, name string, b Batch, q *queue) *batches {
	return &batches{name: name, where: b.Name, place: b.Place, done: done, queue: q,
		readers: make(chan struct{}, placeReaders), listing: make(chan struct{}, 1),
		days:     cache[dayKey, *inspect.Brief]{most: maxCachedBriefs},
		fullDays: cache[fullDayKey, *dayAnswer]{most: maxCachedDays}}
}

// A collectionList is the collections in a storage location.
type collectionList struct {
	all        []*inspect.Collection
	unreadable string // error for collections that cannot be read
}

// collections returns the collections, a moment old at most. They are listed for all requests, so the listing continues
// if the request that started it is canceled.
func (b *batches) collections(ctx context.Context) (l collectionList, err error) {
	select {
	case b.listing <- struct{}{}:
		defer func() { <-b.listing }()
	case <-ctx.Done():
		return l, ctx.Err()
	}
	if b.listed != nil && time.Since(b.time) < max(minHostAge, 20*b.took) {
		return collectionList{b.listed, b.unreadable}, nil
	}
	begin := time.Now()
	all, err := inspect.Collections(b.done, b.place)
	if err != nil && (len(all) == 0 || b.done.Err() != nil) {
		return l, err
	}
	if b.unreadable = ""; err != nil {
		b.unreadable = cut(err.Error(), maxUnreadable)
	}
	b.listed, b.time, b.took = all, time.Now(), time.Since(begin)
	return collectionList{all, b.unreadable}, nil
}

// maxUnreadable is the maximum length of the error for collections that cannot be read.
const maxUnreadable = 2000

// collection returns the collection with a code or directory.
func (b *batches) collection(ctx context.Context, name string) (*inspect.Collection, error) {
	l, err := b.collections(ctx)
	if err != nil {
		return nil, err
	}
	for _, of := range []func(*inspect.Collection) string{func(c *inspect.Collection) string { return c.Directory },
		func(c *inspect.Collection) string { return c.Code }} {
		if i := slices.IndexFunc(l.all, func(c *inspect.Collection) bool { return of(c) == name }); i >= 0 {
			return l.all[i], nil
		}
	}
	return nil, &problem{http.StatusNotFound, "There is no such collection here", "/api/v1/batches/" + b.name +
		" lists all"}
}

// brief returns the summary of a day, which is cached until the day changes.
func (b *batches) brief(ctx context.Context, c *inspect.Collection, date string) (*inspect.Brief, error) {
	key := dayKey{c.Directory, date, c.ChangedOn(date)}
	if x := b.days.get(key); x != nil {
		return x, nil
	}
	x, err := c.Brief(ctx, date)
	if err == nil && x.Done {
		b.days.put(key, x)
	}
	return x, err
}

// briefs returns summaries of several days, in the same order.
func (b *batches) briefs(ctx context.Context, days []dayOf) ([]*inspect.Brief, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	all := make([]*inspect.Brief, len(days))
	var wait sync.WaitGroup
	for i, d := range days {
		if !b.acquire(ctx) {
			break
		}
		wait.Go(func() {
			defer b.release()
			var err error
			if all[i], err = b.brief(ctx, d.c, d.date); err != nil {
				cancel(err)
			}
		})
	}
	wait.Wait()
	return all, context.Cause(ctx)
}

func (b *batches) acquire(ctx context.Context) bool {
	select {
	case b.readers <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (b *batches) release() { <-b.readers }

// The collections in a storage location.
type (
	batchList struct {
		Batches []batchEntry `json:"batches"`
	}
	batchEntry struct {
		Name        string    `json:"name"` // in URLs
		Place       string    `json:"place"`
		Collections int       `json:"collections"`
		First       string    `json:"first,omitempty"` // day
		Last        string    `json:"last,omitempty"`
		Changed     time.Time `json:"changed,omitzero"`
		Error       string    `json:"error,omitempty"`
	}
	batchAnswer struct {
		Name        string            `json:"name"`
		Place       string            `json:"place"`
		Collections []collectionEntry `json:"collections"`
		LeftOut     string            `json:"left_out,omitempty"` // error for collections that cannot be read
		Next        string            `json:"next,omitempty"`
	}
	collectionEntry struct {
		Collection string    `json:"collection"` // code
		Directory  string    `json:"directory"`
		Days       int       `json:"days"`
		First      string    `json:"first"`
		Last       string    `json:"last"`
		Changed    time.Time `json:"changed"`
	}
)

func (set *batchSet) entries(ctx context.Context) []batchEntry {
	list := make([]batchEntry, len(set.all))
	var wait sync.WaitGroup
	places := make(chan struct{}, 4)
	for i, b := range set.all {
		wait.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			l, err := withPatience(ctx, b.queue, listPatience, b.collections)
			list[i] = b.entry(l, err)
		})
	}
	wait.Wait()
	return list
}

// entry returns the storage location's entry in a list.
func (b *batches) entry(l collectionList, err error) batchEntry {
	e := batchEntry{Name: b.name, Place: b.where, Collections: len(l.all)}
	if e.Error = l.unreadable; err != nil {
		e.Error = problemOf(err).Error()
	}
	for _, c := range l.all {
		if e.First == "" || c.Dates[0] < e.First {
			e.First = c.Dates[0]
		}
		e.Last = max(e.Last, c.LastDate())
		if c.Changed.After(e.Changed) {
			e.Changed = c.Changed
		}
	}
	return e
}

func getBatch(b *batches, r *http.Request, n int) (any, error) {
	l, err := b.collections(r.Context())
	if err != nil {
		return nil, err
	}
	x := batchAnswer{Name: b.name, Place: b.where, Collections: []collectionEntry{}, LeftOut: l.unreadable}
	var all []*inspect.Collection
	all, x.Next = collectionsFrom(l.all, r.FormValue("after"), n)
	for _, c := range all {
		x.Collections = append(x.Collections, collectionEntry{c.Code, c.Directory, len(c.Dates), c.Dates[0], c.LastDate(),
			c.Changed})
	}
	return x, nil
}

// collectionsFrom returns up to n collections after a directory.
func collectionsFrom(all []*inspect.Collection, after string, n int) (some []*inspect.Collection, next string) {
	return pageOfList(all, func(c *inspect.Collection) string { return c.Directory }, after, n)
}
