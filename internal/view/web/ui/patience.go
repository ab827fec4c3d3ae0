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

// A crawl, or a place of batch crawls, may be on a disk that does not answer, as a network's that is gone. What waits
// for it cannot be ended; so it is left behind, and the places that it has are its own: others are answered as ever.

const (
	maxQueueAnswering = 8               // questions of one thing at once, where several are shown
	maxQueueListeners = 16              // pages of one that are kept up to date
	listPatience      = 2 * time.Second // with each thing of a list
)

// A queue is the questions that are asked of one thing that is shown.
type queue struct {
	name     string        // The crawl x
	location string        // its folder /x
	slots    chan struct{} // whoever asks has one until there is an answer, even if nobody waits for it any more
	events   *slots        // of event streams

	mu      sync.Mutex          // guards below
	started map[*time.Time]bool // when each question was begun that is not answered yet
}

// newQueue makes the queue of one of several things that are shown.
func newQueue(what, where string, several bool) *queue {
	asks, listeners := maxAnswering, maxListeners
	if several {
		asks, listeners = maxQueueAnswering, maxQueueListeners
	}
	return &queue{name: what, location: where, slots: make(chan struct{}, asks), events: newSlots(listeners, listeners),
		started: map[*time.Time]bool{}}
}

// checkHung is the problem of what does not answer; nil if it may do so yet.
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

// hungProblem is the problem of a number of questions, one of which has waited for so long.
func (q *queue) hungProblem(n int, since time.Duration) error {
	return &problem{http.StatusServiceUnavailable, q.name + " does not answer",
		fmt.Sprintf("%s %s for %s, one of them for %v: its disk may hang; whatever was to be done may still be done. "+
			"All else is shown as ever", stats.Count(n, "questions"), stats.Either(n, "waits", "wait"), q.location,
			since.Round(time.Second))}
}

// acquire waits for places, the queue's own before others: whoever waits for one has none that others may want.
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

// do has f done by a goroutine of its own, for who has entered, and waits until it is or the context ends.
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

// lateError is why there is no answer in time.
func (q *queue) lateError(ctx context.Context) error {
	if err := q.checkHung(); err != nil {
		return err
	}
	return ctx.Err()
}

// An Answer is one that is kept, and not sent.
type Answer struct {
	HeaderMap http.Header
	Status    int
	Body      bytes.Buffer
	MaxBody   int // bytes of Body, about; 0: any number
}

// Header is ResponseWriter's.
func (a *Answer) Header() http.Header { return a.HeaderMap }

// WriteHeader is ResponseWriter's.
func (a *Answer) WriteHeader(status int) { a.Status = status }

func (a *Answer) Write(b []byte) (int, error) {
	if a.MaxBody > 0 && a.Body.Len() > a.MaxBody {
		return 0, errors.New("the answer is too long")
	}
	return a.Body.Write(b)
}

// answerQueued answers a request about something that has a queue. A slow one returns its slot of the shared ones after
// listPatience and continues: otherwise a few hanging disks would hold all of them.
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
	_, _ = w.Write(a.Body.Bytes()) // who asked may have gone
}

// queuesOf finds the queue of the crawl, batch crawls or experiments that a path names; nil if it names none.
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
	if c := set.byName[name]; c != nil {
		return c.queue
	}
	return nil
}

// withPatience is what f finds out, of what answers in time.
func withPatience[T any](ctx context.Context, q *queue, patience time.Duration, f func(context.Context) (T, error)) (found T,
	err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := q.enter(ctx, q.slots); err != nil {
		return found, err
	}
	var late T // which is written once nobody reads it, if it does not come in time
	var failed error
	if err := q.do(ctx, func() { late, failed = f(ctx) }); err != nil {
		return found, err
	}
	return late, failed
}
