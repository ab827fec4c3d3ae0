package ui

import (
	"context"
	"net/http"
	"sync"
	"time"

	"kumo/internal/batch/inspect"
)

// What a place of batch crawls has: its collections.
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
		LeftOut     string            `json:"left_out,omitempty"` // what could not be read
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
			l, err := soon(ctx, b.queue, listPatience, b.collections)
			list[i] = b.entry(l, err)
		})
	}
	wait.Wait()
	return list
}

// entry is what a list says of the place.
func (b *batches) entry(l collectionList, err error) batchEntry {
	e := batchEntry{Name: b.name, Place: b.where, Collections: len(l.all)}
	if e.Error = l.left; err != nil {
		e.Error = problemOf(err).Error()
	}
	for _, c := range l.all {
		if e.First == "" || c.Dates[0] < e.First {
			e.First = c.Dates[0]
		}
		e.Last = max(e.Last, c.Last())
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
	x := batchAnswer{Name: b.name, Place: b.where, Collections: []collectionEntry{}, LeftOut: l.left}
	var all []*inspect.Collection
	all, x.Next = collectionsFrom(l.all, r.FormValue("after"), n)
	for _, c := range all {
		x.Collections = append(x.Collections, collectionEntry{c.Code, c.Directory, len(c.Dates), c.Dates[0], c.Last(),
			c.Changed})
	}
	return x, nil
}

// collectionsFrom are up to n collections behind a directory.
func collectionsFrom(all []*inspect.Collection, after string, n int) (some []*inspect.Collection, next string) {
	return someOf(all, func(c *inspect.Collection) string { return c.Directory }, after, n)
}
