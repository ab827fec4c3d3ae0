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

// The list of crawls is available at once, however many there are and however slow their disks. It contains the last
// known states; crawls are inspected in the background, a few at a time.

const (
	maxInspecting = 4                      // concurrent inspections
	listHold      = 100 * time.Millisecond // after which a crawl with a slow disk no longer blocks others
	listShare     = 10 * time.Millisecond  // minimum age for an inspection, per crawl in the list
)

// listSlack is how much longer than a crawl's timeout the list waits, so that it can report the timeout.
const listSlack = 200 * time.Millisecond

// listWait is how long a list waits for unknown states.
var listWait = 150 * time.Millisecond

// shortList is the number of crawls up to which each request inspects all of them again, and waits for all.
const shortList = 8

// A listItem is the list's entry of a crawl.
type listItem struct {
	mu    sync.Mutex    // guards the fields below
	entry crawlEntry    // last known state
	time  time.Time     // of entry; zero: never
	found chan struct{} // closed at the end of the running inspection; nil: none runs
}

// A lister lists all crawls with their last known states, which it refreshes in the background. The states are guarded
// by each crawl's listItem; the lister's own fields do not change.
type lister struct {
	crawls *crawlSet
	done   context.Context
	slots  chan struct{} // a slot for each crawl that is being inspected
}

func newLister(done context.Context, crawls *crawlSet) *lister {
	return &lister{crawls: crawls, done: done, slots: make(chan struct{}, maxInspecting)}
}

// entries returns all crawls with the states that are known in time. If there are many crawls, it waits only for
// unknown states.
func (h *lister) entries(ctx context.Context, patience time.Duration) []crawlEntry {
	late := time.NewTimer(patience)
	defer late.Stop()
	age, crawls := time.Duration(0), h.crawls.list()
	if n := len(crawls); n > shortList {
		age = max(overviewAge, time.Duration(n)*listShare)
	}
	looks := make([]<-chan struct{}, len(crawls))
	for i, c := range crawls {
		looks[i] = h.refresh(c, age)
	}
	all, waits := make([]crawlEntry, len(crawls)), true
	for i, c := range crawls {
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

// last returns the last known entry.
func (l *listItem) last(c *crawl) crawlEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.time.IsZero() {
		return crawlEntry{Name: c.name, Folder: c.dir, Cluster: c.cluster != nil, Looking: true}
	}
	return l.entry
}

// refresh starts an inspection of a crawl unless one runs, or the last one is younger than age. The channel is closed
// when it ends; nil if none runs.
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
	if e.State == nil && l.entry.State != nil { // an older state is better than none
		why := e.Error
		e = l.entry
		e.Error = why
	}
	l.entry, l.time = e, time.Now()
	close(l.found)
	l.found = nil
}

// entry inspects a crawl for the list.
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
		e.Error = fmt.Sprintf("no answer for %v: its disk may be slow or hang", listPatience)
		return e
	case err != nil:
		e.Error = problemOf(err).Error()
		return e
	}
	e.State, e.Crawl, e.Ended, e.Started = &o.State, o.Crawl, o.Ended, o.Started
	e.Pages, e.Bytes, e.Failed, e.Waiting = o.Pages, o.Bytes, o.Failed, o.Waiting
	return e
}

// A crawlList is a list of crawls.
type crawlList struct {
	Crawls []crawlEntry `json:"crawls"`
}

// StateText returns the state as the page shows it.
func (e *crawlEntry) StateText() string {
	if e.State == nil {
		return ""
	}
	return stateText(*e.State, e.Ended)
}

type crawlEntry struct {
	Name    string         `json:"name"`              // in URLs
	Folder  string         `json:"folder"`            // "": only its cluster is shown
	Cluster bool           `json:"cluster,omitempty"` // all nodes of its cluster are shown, too
	State   *inspect.State `json:"state,omitempty"`   // missing if unknown; then error has the reason
	Crawl   string         `json:"crawl,omitempty"`   // the user's name for it
	Ended   string         `json:"ended,omitempty"`
	Started time.Time      `json:"started,omitzero"`
	Pages   int64          `json:"pages"`
	Bytes   int64          `json:"bytes"`
	Failed  int64          `json:"failed"`
	Waiting int            `json:"urls_waiting"`
	Error   string         `json:"error,omitempty"`
	Looking bool           `json:"looking,omitempty"` // first inspection is running: nothing is known yet
}

func (h *lister) getCrawls(r *http.Request) (any, error) {
	patience := listWait
	if len(h.crawls.list()) <= shortList {
		patience = max(listPatience+listSlack, listWait)
	}
	return crawlList{h.entries(r.Context(), patience)}, nil
}
