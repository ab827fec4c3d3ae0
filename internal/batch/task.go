package batch

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"sync"
)

// A Task is one run of a job's Map over a part of the input, or of its Reduce over a partition.
type Task struct {
	Index   int // among the job's tasks of this kind, from 0
	Total   int // how many these are
	Attempt int // 0 for the first run of the task

	counters Counters
	status   func(text string) // nil: nobody looks
}

// NewTask makes a task. Its status is told to status, unless that is nil.
func NewTask(index, of, attempt int, status func(text string)) *Task {
	return &Task{Index: index, Total: of, Attempt: attempt, status: status}
}

// Count adds to a counter. It may be called by many goroutines at once.
func (t *Task) Count(group, name string, n int64) { t.counters.Add(group, name, n) }

// Status says in a few words how far the task is, for people. A task that neither reads nor writes for minutes is to
// call it now and then, or a cluster takes it for dead.
func (t *Task) Status(text string) {
	if t.status != nil {
		t.status(text)
	}
}

// Counters are what the task has counted.
func (t *Task) Counters() *Counters { return &t.counters }

// CatchPanic calls f and makes an error of a panic: one page is not to end a crawl of days without a word of which job it
// was.
func CatchPanic(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			buf := make([]byte, 16<<10)
			err = fmt.Errorf("panic: %v\n%s", p, buf[:runtime.Stack(buf, false)])
		}
	}()
	return f()
}

// A Counter names what is counted.
type Counter struct{ Group, Name string }

// Kind is the name without the word that it counts by: "charset" of "charset gbk", "failed" of "failed: dns". There are
// few kinds, whatever a crawl meets.
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

// Counters count. The zero value has counted nothing. Its methods may be called by many goroutines at once.
type Counters struct {
	mu sync.Mutex // guards n
	n  map[Counter]int64
}

// Add adds to a counter.
func (c *Counters) Add(group, name string, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[Counter]int64{}
	}
	c.n[Counter{group, name}] += n
}

// Get is a counter.
func (c *Counters) Get(group, name string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[Counter{group, name}]
}

// All are all counters that were added to.
func (c *Counters) All() map[Counter]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.n)
}

// AddAll adds what others have counted.
func (c *Counters) AddAll(others map[Counter]int64) {
	for k, n := range others {
		c.Add(k.Group, k.Name, n)
	}
}

// A Runner runs jobs. A family has one interface: batch/batchtest is the contract that each runner passes.
type Runner interface {
	// Run runs a job over its input and leaves the output in r.Output, which is removed first. When it returns without
	// an error, the output is complete and durable: what failed or superfluous attempts of a task emitted is not among
	// it. After an error, or if the process is killed, there may be anything. A task that fails is run again a few times.
	Run(ctx context.Context, r Run) (*Result, error)
}

// An Abandoner is a runner whose jobs may outlive the process that has begun them. When it is to run one whose output
// is where an earlier process has begun the same, it goes on with that.
type Abandoner interface {
	// Abandon ends the job that an earlier process has begun with this output, if it is under way.
	Abandon(ctx context.Context, output string) error
}

// A Run is a job with its input and output.
type Run struct {
	Job *Job
	// Conf is what Job was made from, for tasks in other processes.
	Conf *Conf
	// Inputs are files of the place, SequenceFiles as jobs write them. There may be none.
	Inputs []string
	// Output is a folder of the place. Its files are FOLDER/part-00000 and so on, or part-00000.xml, as Job.Route says.
	Output string
	// Reducers is how many partitions there are; 1 at least.
	Reducers int
	// Progress, unless nil, is told how far the job is now and then, from any goroutine.
	Progress func(Progress)
}

// A Result is what a job came to.
type Result struct {
	Counters *Counters // of the attempts whose output counts
	Tasks    int
	Failed   int // attempts that failed
}

// A Progress is how far a job is.
type Progress struct {
	Maps, MapsDone       int // MapsDone of Maps tasks
	Reduces, ReducesDone int
	Status               string // of some task that said something
	Counters             map[Counter]int64
}
