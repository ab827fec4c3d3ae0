package crawl

import (
	"errors"
	"fmt"
	"sync"
)

// ErrLimit is why a crawl stopped that reached a limit; URLs may still wait.
var ErrLimit = errors.New("limit reached")

// A quota counts pages against the limits, those under way included, so that no limit is overshot.
type quota struct {
	pages, perHost int64 // 0: without limit

	mu     sync.Mutex
	done   int64
	taken  int64 // done or under way
	byHost map[string]hostQuota
}

func newQuota(cfg Config, done int64) *quota {
	return &quota{pages: cfg.Pages, perHost: cfg.PagesPerHost, done: done, taken: done, byHost: map[string]hostQuota{}}
}

type hostQuota struct{ done, taken int64 }

// room says what the limits have to say to one page more.
type room uint8

const (
	granted  room = iota
	notNow        // pages under way may use up what is left, or give it back
	used          // the crawl has its pages
	hostUsed      // the host has its pages
)

// take asks for one page of a host, which had so many pages in earlier runs.
func (q *quota) take(host string, before func() int64) room {
	q.mu.Lock()
	defer q.mu.Unlock()
	h, known := q.byHost[host]
	if q.perHost > 0 && !known {
		n := before()
		h = hostQuota{n, n}
	}
	switch {
	case q.perHost > 0 && h.done >= q.perHost:
		return hostUsed
	case q.pages > 0 && q.done >= q.pages:
		return used
	case q.perHost > 0 && h.taken >= q.perHost, q.pages > 0 && q.taken >= q.pages:
		return notNow
	}
	q.taken++
	h.taken++
	q.keep(host, h)
	return granted
}

func (q *quota) keep(host string, h hostQuota) {
	if q.perHost > 0 {
		q.byHost[host] = h
	}
}

// settle says what became of a page that take granted, and reports whether the crawl has its pages now.
func (q *quota) settle(host string, answered bool) (full bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	h := q.byHost[host]
	if answered {
		q.done++
		h.done++
		q.keep(host, h)
		return q.pages > 0 && q.done >= q.pages
	}
	q.taken--
	h.taken--
	q.keep(host, h)
	return false
}

func limitErr(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrLimit, fmt.Sprintf(format, args...))
}
