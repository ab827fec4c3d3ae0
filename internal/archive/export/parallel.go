package export

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"kumo/internal/archive/export/captures"
)

// Limits of the pages that are read ahead.
const (
	pagesPerWorker = 4        // pages per goroutine
	maxInFlight    = 64 << 20 // bytes of records
	minPageCost    = 64 << 10 // bytes counted for a page at least
)

// A job is a page that is first prepared by some goroutine, and then written in order.
type job struct {
	page *Page
	cost int64
	done chan struct{} // closed when it is prepared
}

// runParallel calls f with the pages in order, each prepared by one of several goroutines. Pages and bytes of records
// that are read ahead are bounded.
func runParallel(ctx context.Context, cfg *Config, a *captures.Archive, step string, prepare func() PrepareFunc,
	f func(context.Context, *Page) error) error {
	workers := cfg.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	g, ctx := errgroup.WithContext(ctx)
	room := semaphore.NewWeighted(maxInFlight)
	todo, inOrder := make(chan *job), make(chan *job, workers*pagesPerWorker)
	g.Go(func() error {
		defer close(todo)
		defer close(inOrder)
		return a.Each(ctx, func(c *captures.Capture) error {
			j := &job{page: &Page{Capture: c}, cost: min(cost(c), maxInFlight), done: make(chan struct{})}
			if err := room.Acquire(ctx, j.cost); err != nil {
				return err
			}
			for _, to := range []chan *job{inOrder, todo} {
				select {
				case to <- j:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
			return nil
		})
	})
	for range workers {
		g.Go(func() error { return prepareJobs(a.NewReader(), todo, prepare()) })
	}
	g.Go(func() error {
		done := int64(0)
		for j := range inOrder {
			select {
			case <-j.done:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			cfg.reportProgress(step, done, a)
			done++
			if err := f(ctx, j.page); err != nil {
				return err
			}
			room.Release(j.cost)
		}
		return nil
	})
	return g.Wait()
}

// prepareJobs prepares pages until todo is closed.
func prepareJobs(from *captures.Reader, todo <-chan *job, prepare PrepareFunc) (err error) {
	defer func() {
		if failed := from.Close(); err == nil {
			err = failed
		}
	}()
	for j := range todo {
		own := newPage(j.page.Capture, from)
		if j.page.Prepared, err = prepare(own); err != nil {
			return err
		}
		close(j.done)
	}
	return nil
}

// cost returns the bytes counted for a page: its compressed records and its line in text.jsonl.
func cost(c *captures.Capture) int64 {
	n := c.Head.Length
	if c.Body != nil {
		n += c.Body.Length
	}
	if c.Text != nil {
		n += c.Text.Length
	}
	return max(n, minPageCost)
}
