package ui

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"kumo/internal/stats"
)

// A crawl may be on a disk that does not answer, as a network's that is gone. What waits for it cannot be ended; so it is
// left behind, and the places that it has are the crawl's own: others are answered as ever.

const (
	maxCrawlAsks = 8               // questions of one crawl at once, where there are several
	maxListening = 16              // pages of one that are kept up to date
	listPatience = 2 * time.Second // with each crawl of the list
)

// A queue is the questions that one crawl is asked.
type queue struct {
	places chan struct{} // whoever asks has one until there is an answer, even if nobody waits for it any more
	events chan struct{} // whoever listens has one

	mu    sync.Mutex // guards below
	begun map[*answer]time.Time
}

func newQueue(crawls int) *queue {
	asks, listeners := maxCrawlAsks, maxListening
	if crawls == 1 {
		asks, listeners = maxAsks, maxListeners
	}
	return &queue{places: make(chan struct{}, asks), events: make(chan struct{}, listeners), begun: map[*answer]time.Time{}}
}

// overdue says how many wait for an answer, and for how long one of them does.
func (q *queue) overdue() (n int, longest time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, begun := range q.begun {
		longest = max(longest, time.Since(begun))
	}
	return len(q.begun), longest
}

// hangs is the problem of a crawl that does not answer; nil if it may do so yet.
func (c *crawl) hangs() error {
	n, since := c.queue.overdue()
	if since < longest {
		return nil
	}
	return &problem{http.StatusServiceUnavailable, "The crawl " + c.name + " does not answer",
		fmt.Sprintf("%s %s for its folder %s, one of them for %v: its disk may hang; whatever was to be done may still be done. "+
			"Other crawls are shown as ever", stats.Count(n, "questions"), stats.Either(n, "waits", "wait"), c.dir, since.Round(time.Second))}
}

// enter waits for places, the crawl's own before others: whoever waits for one has none that others may want.
func (c *crawl) enter(ctx context.Context, all ...chan struct{}) error {
	if err := c.hangs(); err != nil {
		return err
	}
	for i, places := range all {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			for _, taken := range all[:i] {
				<-taken
			}
			return c.late(ctx)
		}
	}
	return nil
}

// do has f done by a goroutine of its own, for who has entered, and waits until it is or the context ends.
func (c *crawl) do(ctx context.Context, a *answer, f func()) error {
	q := c.queue
	q.mu.Lock()
	q.begun[a] = time.Now()
	q.mu.Unlock()
	done := make(chan any, 1)
	go func() {
		defer func() {
			q.mu.Lock()
			delete(q.begun, a)
			q.mu.Unlock()
			<-q.places
			done <- recover()
		}()
		f()
	}()
	select {
	case panicked := <-done:
		if panicked != nil {
			panic(panicked)
		}
		return nil
	case <-ctx.Done():
		return c.late(ctx)
	}
}

// late is why there is no answer in time.
func (c *crawl) late(ctx context.Context) error {
	if err := c.hangs(); err != nil {
		return err
	}
	return ctx.Err()
}

// An answer is one that is written when it is whole.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

// patiently answers a question of a crawl, as long as it does.
func (s *Server) patiently(c *crawl, next http.Handler, w http.ResponseWriter, r *http.Request) {
	if err := c.enter(r.Context(), c.queue.places, s.asks); err != nil {
		s.fail(w, r, err)
		return
	}
	defer func() { <-s.asks }()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writing))
	a := &answer{header: w.Header().Clone(), status: http.StatusOK}
	if err := c.do(r.Context(), a, func() { next.ServeHTTP(a, r) }); err != nil {
		s.fail(w, r, err)
		return
	}
	clear(w.Header())
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body.Bytes()) // who asked may have gone
}

// crawlOf is the crawl that a path speaks of; nil if it is of none.
func (s *Server) crawlOf(path string) *crawl {
	parts := strings.Split(strings.TrimPrefix(path, "/api/v1"), "/")
	switch {
	case len(parts) > 2 && parts[1] == "crawls":
		return s.named[parts[2]]
	case len(parts) > 3 && parts[1] == "archived":
		return s.named[parts[3]]
	}
	return nil
}

// overviewSoon is the overview of a crawl that answers.
func (c *crawl) overviewSoon(ctx context.Context, patience time.Duration) (o *Overview, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	type result struct {
		o   *Overview
		err error
	}
	if err := c.enter(ctx, c.queue.places); err != nil {
		return nil, err
	}
	got := make(chan result, 1)
	if err := c.do(ctx, &answer{}, func() {
		o, err := c.overview(ctx)
		got <- result{o, err}
	}); err != nil {
		return nil, err
	}
	x := <-got
	return x.o, x.err
}
