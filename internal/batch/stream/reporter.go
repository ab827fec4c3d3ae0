package stream

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"kumo/internal/batch"
)

// A Reporter tells Hadoop how far a task is, by lines on standard error.
//
// Hadoop fails a job that has more than 120 counters, all its tasks together. So it is told the kinds of counters only
// (pages, charset, failed), of the job and its first collections each, and of the other collections together. Which
// these are depends on the job alone, as each task has to choose the same.
type Reporter struct {
	ownGroups map[string]bool // groups with counters of their own

	mu   sync.Mutex // guards what follows
	w    io.Writer
	sent map[batch.Counter]int64
}

const (
	maxOwnCollections = 3
	maxCounters       = 100 // of a task, whatever is counted
	maxStatus         = 300 // bytes
	others            = "other"
)

// NewReporter returns a reporter of a task of a job, that writes to w.
func NewReporter(w io.Writer, conf *batch.Conf) *Reporter {
	r := &Reporter{ownGroups: map[string]bool{conf.Job: true}, w: w, sent: map[batch.Counter]int64{}}
	for _, c := range conf.Collections[:min(len(conf.Collections), maxOwnCollections)] {
		r.ownGroups[c.Code] = true
	}
	return r
}

// ReportInterval is how often [Reporter.Watch] reports. It is far below the time after which Hadoop takes a task for dead.
const ReportInterval = 5 * time.Second

// Status tells the task's status.
func (r *Reporter) Status(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text = strings.Map(oneLine, text)
	_, _ = fmt.Fprintf(r.w, "reporter:status:%s\n", text[:min(len(text), maxStatus)]) // it is of no consequence
}

// Counters tells by how much counters have become more.
func (r *Reporter) Counters(c *batch.Counters) error {
	sums := map[batch.Counter]int64{}
	for k, n := range c.All() {
		sums[r.aggregated(k)] += n
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	rest := batch.Counter{Group: others, Name: others}
	for _, k := range slices.SortedFunc(maps.Keys(sums), compare) {
		if _, known := r.sent[k]; !known && len(r.sent) >= maxCounters-1 && k != rest {
			sums[rest] += sums[k]
			delete(sums, k)
			continue
		}
		if err := r.send(k, sums[k]); err != nil {
			return err
		}
	}
	return r.send(rest, sums[rest])
}

func compare(a, b batch.Counter) int {
	return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Name, b.Name))
}

// aggregated is the counter as part of which one is told.
func (r *Reporter) aggregated(c batch.Counter) batch.Counter {
	group := c.Group
	if !r.ownGroups[group] {
		group = others
	}
	return batch.Counter{Group: group, Name: c.Kind()}
}

func (r *Reporter) send(c batch.Counter, n int64) error {
	more := n - r.sent[c]
	if more == 0 {
		return nil
	}
	r.sent[c] = n
	_, err := fmt.Fprintf(r.w, "reporter:counter:%s,%s,%d\n", strings.Map(noComma, c.Group), strings.Map(noComma, c.Name),
		more)
	return err
}

// Watch tells counters now and then, until the function that it returns is called, which does so once more.
func (r *Reporter) Watch(c *batch.Counters) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(ReportInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_ = r.Counters(c) // the last call says what is wrong
			}
		}
	})
	return func() error {
		cancel()
		wg.Wait()
		return r.Counters(c)
	}
}

// oneLine has a text be one line.
func oneLine(c rune) rune {
	if c < ' ' {
		return ' '
	}
	return c
}

// noComma has it be one field: the protocol separates them by commas.
func noComma(c rune) rune {
	if c == ',' {
		return ';'
	}
	return oneLine(c)
}
