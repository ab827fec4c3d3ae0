package local

import (
	"maps"
	"sync"
	"time"

	"kumo/internal/batch"
)

// A watch counts what the tasks of a job do, and tells who looks.
type watch struct {
	told func(batch.Progress)

	mu       sync.Mutex // guards what follows
	progress batch.Progress
	outcome  batch.Result
	running  map[*batch.Task]bool
	last     time.Time // when it was told
}

const tellEvery = 200 * time.Millisecond

func newWatch(run batch.Run, maps int) *watch {
	w := &watch{told: run.Progress, running: map[*batch.Task]bool{}, outcome: batch.Result{Counters: &batch.Counters{}}}
	w.progress.Maps = maps
	if run.Job.Reduces() {
		w.progress.Reduces = run.Reducers
	}
	return w
}

// begin makes a task.
func (w *watch) begin(index, of, attempt int) *batch.Task {
	t := batch.NewTask(index, of, attempt, func(text string) {
		w.mu.Lock()
		w.progress.Status = text
		w.mu.Unlock()
		w.tell(false)
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running[t] = true
	return t
}

// end takes in what a task came to.
func (w *watch) end(t *batch.Task, err error) {
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
	w.tell(true)
}

func (w *watch) tell(always bool) {
	if w.told == nil {
		return
	}
	w.mu.Lock()
	now := time.Now()
	if !always && now.Sub(w.last) < tellEvery {
		w.mu.Unlock()
		return
	}
	w.last = now
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
	w.told(p)
}
