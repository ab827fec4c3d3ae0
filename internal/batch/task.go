package batch

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"sync"
)

// A Task is one attempt to run a job's Map over a part of the input, or its Reduce over a partition.
type Task struct {
	Index   int // among the job's tasks of this type, from 0
	Total   int // number of tasks of this type
	Attempt int // 0 for the first attempt

	counters Counters
	status   func(text string) // may be nil
}

// NewTask creates a task. status, unless nil, receives its status texts.
func NewTask(index, of, attempt int, status func(text string)) *Task {
	return &Task{Index: index, Total: of, Attempt: attempt, status: status}
}

// Count adds to a counter. It may be called concurrently.
func (t *Task) Count(group, name string, n int64) { t.counters.Add(group, name, n) }

// Status sets a short progress text for display. A task that neither reads nor writes for minutes must call it
// periodically, or a cluster considers it dead.
func (t *Task) Status(text string) {
	if t.status != nil {
		t.status(text)
	}
}

// Counters returns the task's counters.
func (t *Task) Counters() *Counters { return &t.counters }

// CatchPanic calls f and converts a panic into an error: one page must not end a crawl of days without naming the job.
func CatchPanic(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			buf := make([]byte, 16<<10)
			err = fmt.Errorf("panic: %v\n%s", p, buf[:runtime.Stack(buf, false)])
		}
	}()
	return f()
}

// A Counter identifies a counter.
type Counter struct{ Group, Name string }

// Kind returns the name without its variable part: "charset" of "charset gbk", "failed" of "failed: dns". The number of
// kinds is small, whatever a crawl finds.
func (c Counter) Kind() string {
	if kind, _, is := strings.Cut(c.Name, ": "); is {
		return kind
	}
	for _, kind := range []string{"charset", "language"} {
		if strings.HasPrefix(c.Name, kind+" ") {
			return kind
		}
	}
	return c.Name
}

// Counters is a set of counters. The zero value is empty. Its methods may be called concurrently.
type Counters struct {
	mu sync.Mutex // guards n
	n  map[Counter]int64
}

// Add adds n to a counter.
func (c *Counters) Add(group, name string, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[Counter]int64{}
	}
	c.n[Counter{group, name}] += n
}

// Get returns a counter.
func (c *Counters) Get(group, name string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[Counter{group, name}]
}

// All returns all counters that were set.
func (c *Counters) All() map[Counter]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.n)
}

// AddAll adds other counters.
func (c *Counters) AddAll(others map[Counter]int64) {
	for k, n := range others {
		c.Add(k.Group, k.Name, n)
	}
}

// A Runner runs jobs. Package batch/batchtest contains the contract that each runner passes.
type Runner interface {
	// Run runs a job over its input and writes the output to r.Output, which is removed first. When it returns without
	// error, the output is complete and durable, and contains no records of failed or superfluous attempts. After an
	// error or a crash, the output is undefined. A failed task is retried a few times.
	Run(ctx context.Context, r Run) (*Result, error)
}

// An Abandoner is a runner whose jobs may outlive the process that started them. If it is to run a job that an earlier
// process started with the same output, it resumes that one.
type Abandoner interface {
	// Abandon ends the job that an earlier process started with this output, if it is active.
	Abandon(ctx context.Context, output string) error
}

// A Run is a job with its input and output.
type Run struct {
	Job *Job
	// Conf is the configuration from which Job was created, for tasks in other processes.
	Conf *Conf
	// Inputs are the names of SequenceFiles in the storage location. There may be none.
	Inputs []string
	// Output is a folder of the place. Its files are FOLDER/part-00000 and so on, or part-00000.xml, as Job.Route says.
	Output string
	// Reducers is the number of partitions; at least 1.
	Reducers int
	// Progress, unless nil, is called periodically, from any goroutine.
	Progress func(Progress)
}

// A Result is the result of a job.
type Result struct {
	Counters *Counters // of successful attempts
	Tasks    int
	Failed   int // number of failed attempts
}

// Progress is the progress of a job.
type Progress struct {
	Maps, MapsDone       int // number of tasks
	Reduces, ReducesDone int
	Status               string // last status of any task
	Counters             map[Counter]int64
}
