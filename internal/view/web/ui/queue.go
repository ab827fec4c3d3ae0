package ui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"kumo/internal/base/stats"
)

// A crawl or batch crawl may be on a disk that hangs, such as an unreachable network disk. Requests that wait for it
// cannot be interrupted, so they are abandoned, and each crawl has its own slots: others are served as usual.

const (
	maxQueueAnswering = 8               // concurrent requests per crawl, if there are several
	maxQueueListeners = 16              // event streams per crawl, if there are several
	listPatience      = 2 * time.Second // per crawl in a list
)

// A queue limits the concurrent requests for one crawl, batch crawl or set of experiments.
type queue struct {
	name     string        // for messages: The crawl x
	location string        // for messages: its folder /x
	slots    chan struct{} // a slot for each request until its answer is complete, even if the client has gone
	events   *slots        // slots for event streams

	mu      sync.Mutex          // guards the fields below
	started map[*time.Time]bool // start times of the requests in progress
}

// newQueue creates a queue; several: there are other queues.
func newQueue(what, where string, several bool) *queue {
	asks, listeners := maxAnswering, maxListeners
	if several {
		asks, listeners = maxQueueAnswering, maxQueueListeners
	}
	return &queue{name: what, location: where, slots: make(chan struct{}, asks), events: newSlots(listeners, listeners),
		started: map[*time.Time]bool{}}
}

// checkHung returns a problem if requests take too long; nil otherwise.
func (q *queue) checkHung() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	since := time.Duration(0)
	for begun := range q.started {
		since = max(since, time.Since(*begun))
	}
	if since < maxAnswerTime {
		return nil
	}
	return q.hungProblem(len(q.started), since)
}

// hungProblem returns the problem for n requests; the oldest has waited for since.
func (q *queue) hungProblem(n int, since time.Duration) error {
	return &problem{http.StatusServiceUnavailable, q.name + " does not answer",
		fmt.Sprintf("%s %s for %s, one of them for %v: its disk may hang; pending actions may still be performed. "+
			"Everything else is shown as usual", stats.Count(n, "questions"), stats.Either(n, "waits", "wait"),
			q.location,
			since.Round(time.Second))}
}

// enter acquires slots in order, the queue's own first, so that a waiting request holds none that others need.
func (q *queue) enter(ctx context.Context, all ...chan struct{}) error {
	if err := q.checkHung(); err != nil {
		return err
	}
	for i, places := range all {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			for _, taken := range all[:i] {
				<-taken
			}
			return q.lateError(ctx)
		}
	}
	return nil
}

// do calls f in its own goroutine, for a caller that has entered the queue, and waits until f returns or the context
// ends.
func (q *queue) do(ctx context.Context, f func()) error {
	begun := time.Now()
	q.mu.Lock()
	q.started[&begun] = true
	q.mu.Unlock()
	done := make(chan any, 1)
	go func() {
		defer func() {
			q.mu.Lock()
			delete(q.started, &begun)
			q.mu.Unlock()
			<-q.slots
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
		return q.lateError(ctx)
	}
}

// lateError returns the error for an answer that is too late.
func (q *queue) lateError(ctx context.Context) error {
	if err := q.checkHung(); err != nil {
		return err
	}
	return ctx.Err()
}

// An Answer is a recorded response.
type Answer struct {
	HeaderMap http.Header
	Status    int
	Body      bytes.Buffer
	MaxBody   int // approximate limit of Body in bytes; 0: unlimited
}

// Header implements http.ResponseWriter.
func (a *Answer) Header() http.Header { return a.HeaderMap }

// WriteHeader implements http.ResponseWriter.
func (a *Answer) WriteHeader(status int) { a.Status = status }

func (a *Answer) Write(b []byte) (int, error) {
	if a.MaxBody > 0 && a.Body.Len() > a.MaxBody {
		return 0, errors.New("the answer is too long")
	}
	return a.Body.Write(b)
}

// answerQueued answers a request for something with a queue. A slow request returns its shared slot after listPatience
// and continues: otherwise a few hanging disks would hold all of them.
func (g *guard) answerQueued(q *queue, next http.Handler, w http.ResponseWriter, r *http.Request) {
	if err := q.enter(r.Context(), q.slots, g.answering); err != nil {
		g.out.fail(w, r, err)
		return
	}
	leave := sync.OnceFunc(func() { <-g.answering })
	defer leave()
	defer time.AfterFunc(listPatience, leave).Stop()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	a := &Answer{HeaderMap: w.Header().Clone(), Status: http.StatusOK}
	if err := q.do(r.Context(), func() { next.ServeHTTP(a, r) }); err != nil {
		g.out.fail(w, r, err)
		return
	}
	clear(w.Header())
	maps.Copy(w.Header(), a.HeaderMap)
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body.Bytes()) // the client may have disconnected
}

// queuesOf returns a function that finds the queue for a path: of a crawl, batch crawl or the experiments; otherwise
// nil.
func queuesOf(crawls *crawlSet, batches *batchSet, experiments *queue) func(path string) *queue {
	return func(path string) *queue {
		parts := append(strings.Split(strings.TrimPrefix(path, "/api/v1"), "/"), "", "", "")
		switch parts[1] {
		case "crawls":
			return crawls.queue(parts[2])
		case "archived":
			return crawls.queue(parts[3])
		case "batches":
			if b := batches.named(parts[2]); b != nil {
				return b.queue
			}
		case "experiments":
			return experiments
		}
		return nil
	}
}

func (set *crawlSet) queue(name string) *queue {
	if c := set.named(name); c != nil {
		return c.queue
	}
	return nil
}

// withPatience calls f and returns its result, or an error after a while.
func withPatience[T any](
	ctx context.Context,
	q *queue,
	patience time.Duration,
	f func(context.Context) (T, error),
) (found T,
	err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := q.enter(ctx, q.slots); err != nil {
		return found, err
	}
	var late T // if f is late, it writes this when nobody reads it anymore
	var failed error
	if err := q.do(ctx, func() { late, failed = f(ctx) }); err != nil {
		return found, err
	}
	return late, failed
}
