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

// A Reporter reports a task's progress to Hadoop, by lines on standard error.
//
// Hadoop fails a job with more than 120 counters in all its tasks. So only kinds of counters (pages, charset, failed)
// are reported: separately for the job and its first collections, and together for the other collections. The choice
// depends only on the job, as all tasks must make the same choice.
type Reporter struct {
	ownGroups map[string]bool // groups that are reported separately

	mu   sync.Mutex // guards the fields below
	w    io.Writer
	sent map[batch.Counter]int64
}

const (
	maxOwnCollections = 3
	maxCounters       = 100 // per task, over all kinds
	maxStatus         = 300 // bytes
	others            = "other"
)

// NewReporter returns a reporter for a task of a job that writes to w.
func NewReporter(w io.Writer, conf *batch.Conf) *Reporter {
	r := &Reporter{ownGroups: map[string]bool{conf.Job: true}, w: w, sent: map[batch.Counter]int64{}}
	for _, c := range conf.Collections[:min(len(conf.Collections), maxOwnCollections)] {
		r.ownGroups[c.Code] = true
	}
	return r
}

// ReportInterval is the interval of [Reporter.Watch]. It is far below the time after which Hadoop considers a task
// dead.
const ReportInterval = 5 * time.Second

// Status reports the task's status.
func (r *Reporter) Status(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text = strings.Map(oneLine, text)
	_, _ = fmt.Fprintf(r.w, "reporter:status:%s\n", text[:min(len(text), maxStatus)]) // a lost status does no harm
}

// Counters reports the increments of counters.
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

// aggregated returns the counter under which another one is reported.
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

// Watch reports counters periodically until the returned function is called, which reports them a last time.
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
				_ = r.Counters(c) // the last call returns the error
			}
		}
	})
	return func() error {
		cancel()
		wg.Wait()
		return r.Counters(c)
	}
}

// oneLine replaces line ends.
func oneLine(c rune) rune {
	if c < ' ' {
		return ' '
	}
	return c
}

// noComma replaces commas, which separate fields in the protocol.
func noComma(c rune) rune {
	if c == ',' {
		return ';'
	}
	return oneLine(c)
}
