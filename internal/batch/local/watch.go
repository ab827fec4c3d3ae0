package local

import (
	"maps"
	"sync"
	"time"

	"kumo/internal/batch"
)

// A progressMonitor counts what the tasks of a job do, and reports progress.
type progressMonitor struct {
	report func(batch.Progress)

	mu       sync.Mutex // guards the fields below
	progress batch.Progress
	outcome  batch.Result
	running  map[*batch.Task]bool
	reported time.Time // time of the last report
}

const reportInterval = 200 * time.Millisecond

func newProgressMonitor(run batch.Run, maps int) *progressMonitor {
	w := &progressMonitor{report: run.Progress, running: map[*batch.Task]bool{},
		outcome: batch.Result{Counters: &batch.Counters{}}}
	w.progress.Maps = maps
	if run.Job.Reduces() {
		w.progress.Reduces = run.Reducers
	}
	return w
}

// startTask creates a task and adds its progress.
func (w *progressMonitor) startTask(index, of, attempt int) *batch.Task {
	t := batch.NewTask(index, of, attempt, func(text string) {
		w.mu.Lock()
		w.progress.Status = text
		w.mu.Unlock()
		w.reportProgress(false)
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running[t] = true
	return t
}

// endTask adds the result of a task.
func (w *progressMonitor) endTask(t *batch.Task, err error) {
	w.mu.Lock()
	delete(w.running, t)
	switch {
	case err != nil:
		w.outcome.Failed++
	case w.progress.MapsDone < w.progress.Maps:
		w.progress.MapsDone++
	default:
		w.progress.ReducesDone++
	}
	if err == nil {
		w.outcome.Tasks++
		w.outcome.Counters.AddAll(t.Counters().All())
	}
	w.mu.Unlock()
	w.reportProgress(true)
}

func (w *progressMonitor) reportProgress(always bool) {
	if w.report == nil {
		return
	}
	w.mu.Lock()
	now := time.Now()
	if !always && now.Sub(w.reported) < reportInterval {
		w.mu.Unlock()
		return
	}
	w.reported = now
	p := w.progress
	p.Counters = w.outcome.Counters.All()
	if p.Counters == nil {
		p.Counters = map[batch.Counter]int64{}
	}
	for t := range w.running {
		for k, n := range maps.All(t.Counters().All()) {
			p.Counters[k] += n
		}
	}
	w.mu.Unlock()
	w.report(p)
}
