package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"kumo/internal/app/inspect"
)

// The list of crawls is there at once, however many there are and whatever their disks do: it has what is known, and
// the crawls are looked at beside, a few at a time.

const (
	maxInspecting = 4                      // crawls that are looked at, at once
	listHold      = 100 * time.Millisecond // after which one whose disk takes long does not keep others waiting
	listShare     = 10 * time.Millisecond  // a crawl is looked at again after as much for each in the list
)

// listSlack is how much longer than a crawl is waited for its list is, which then says so.
const listSlack = 200 * time.Millisecond

// listWait is how long a list waits for what is not known yet.
var listWait = 150 * time.Millisecond

// shortList is how many crawls a program is told of when all are known, and is asked anew each time.
const shortList = 8

// A listItem is what the list has of it.
type listItem struct {
	mu    sync.Mutex    // guards all
	entry crawlEntry    // as it was found last
	time  time.Time     // then; zero: never
	found chan struct{} // closed when who looks has found it; nil: nobody looks
}

// A lister lists all crawls with what was last found of each, and refreshes that in the background. What was found is in
// each crawl's listItem, under its lock; the lister's own fields do not change.
type lister struct {
	crawls *crawlSet
	done   context.Context
	slots  chan struct{} // a slot for each crawl that is being inspected
}

func newLister(done context.Context, crawls *crawlSet) *lister {
	return &lister{crawls: crawls, done: done, slots: make(chan struct{}, maxInspecting)}
}

// entries are all crawls as far as is known in time. Where there are many, only those are waited for of which nothing
// is known.
func (h *lister) entries(ctx context.Context, patience time.Duration) []crawlEntry {
	late := time.NewTimer(patience)
	defer late.Stop()
	age := time.Duration(0)
	if n := len(h.crawls.all); n > shortList {
		age = max(overviewAge, time.Duration(n)*listShare)
	}
	looks := make([]<-chan struct{}, len(h.crawls.all))
	for i, c := range h.crawls.all {
		looks[i] = h.refresh(c, age)
	}
	all, waits := make([]crawlEntry, len(h.crawls.all)), true
	for i, c := range h.crawls.all {
		if looks[i] != nil && waits && (age == 0 || c.listed.last(c).Looking) {
			select {
			case <-looks[i]:
			case <-late.C:
				waits = false
			case <-ctx.Done():
				waits = false
			}
		}
		all[i] = c.listed.last(c)
	}
	return all
}

// last is what was found last.
func (l *listItem) last(c *crawl) crawlEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.time.IsZero() {
		return crawlEntry{Name: c.name, Folder: c.dir, Cluster: c.cluster != nil, Looking: true}
	}
	return l.entry
}

// refresh starts an inspection of a crawl unless one runs, or the last is younger than age. The channel is closed when
// it ends; nil if none runs.
func (h *lister) refresh(c *crawl, age time.Duration) <-chan struct{} {
	l := &c.listed
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.found == nil && (l.time.IsZero() || time.Since(l.time) >= age) {
		l.found = make(chan struct{})
		go h.inspect(c)
	}
	return l.found
}

// inspect updates the item of a crawl once a slot is free.
func (h *lister) inspect(c *crawl) {
	l := &c.listed
	var e crawlEntry
	select {
	case h.slots <- struct{}{}:
		leave := sync.OnceFunc(func() { <-h.slots })
		defer leave()
		defer time.AfterFunc(listHold, leave).Stop()
		e = c.entry(h.done)
	case <-h.done.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.State == nil && l.entry.State != nil { // what was known is better than nothing
		why := e.Error
		e = l.entry
		e.Error = why
	}
	l.entry, l.time = e, time.Now()
	close(l.found)
	l.found = nil
}

// entry is what the list has of a crawl.
func (c *crawl) entry(ctx context.Context) crawlEntry {
	e := crawlEntry{Name: c.name, Folder: c.dir, Cluster: c.cluster != nil}
	if c.dir == "" {
		ctx, cancel := context.WithTimeout(ctx, listPatience)
		defer cancel()
		x, err := c.cluster.snapshot(ctx)
		if err != nil {
			e.Error = problemOf(err).Error()
			return e
		}
		e.State, e.Crawl = new(inspect.State(x.State)), x.Crawl
		e.Pages, e.Waiting = x.Totals.Pages, x.Totals.Waiting
		return e
	}
	o, err := withPatience(ctx, c.queue, listPatience, c.status.overview)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		e.Error = fmt.Sprintf("It has not answered for %v: its disk may be slow, or hang", listPatience)
		return e
	case err != nil:
		e.Error = problemOf(err).Error()
		return e
	}
	e.State, e.Crawl, e.Ended, e.Started = &o.State, o.Crawl, o.Ended, o.Started
	e.Pages, e.Bytes, e.Failed, e.Waiting = o.Pages, o.Bytes, o.Failed, o.Waiting
	return e
}

// A crawlList is the crawls that are shown.
type crawlList struct {
	Crawls []crawlEntry `json:"crawls"`
}

type crawlEntry struct {
	Name    string         `json:"name"`              // in URLs
	Folder  string         `json:"folder"`            // "": only its cluster is shown
	Cluster bool           `json:"cluster,omitempty"` // it has several nodes, and all of them are shown, too
	State   *inspect.State `json:"state,omitempty"`   // missing: why it cannot be said is in error
	Crawl   string         `json:"crawl,omitempty"`   // as its user has called it
	Ended   string         `json:"ended,omitempty"`
	Started time.Time      `json:"started,omitzero"`
	Pages   int64          `json:"pages"`
	Bytes   int64          `json:"bytes"`
	Failed  int64          `json:"failed"`
	Waiting int            `json:"urls_waiting"`
	Error   string         `json:"error,omitempty"`
	Looking bool           `json:"looking,omitempty"` // it is being looked at: nothing is known yet
}

func (h *lister) getCrawls(r *http.Request) (any, error) {
	patience := listWait
	if len(h.crawls.all) <= shortList {
		patience = max(listPatience+listSlack, listWait)
	}
	return crawlList{h.entries(r.Context(), patience)}, nil
}
