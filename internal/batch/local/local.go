// Package local runs the jobs of a batch crawl in this process. It maps, combines, partitions, sorts and reduces files
// on all cores, in bounded memory.
package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/gofrs/flock"
	"golang.org/x/sync/errgroup"

	"kumo/internal/archive/place"
	"kumo/internal/base/extsort"
	"kumo/internal/base/vfs"
	"kumo/internal/batch"
	"kumo/internal/batch/seqfile"
)

// A Config defines how jobs are run.
type Config struct {
	Place place.Place // contains input and output
	// folder for data between map and reduce, about as large as the input; default the system's
	Temp     string
	Disk     vfs.FS // file system of Temp; default vfs.OS
	Cores    int    // concurrent tasks; default the number of processors
	Memory   int64  // bytes for sorting, for all tasks together; default 192 MiB
	Attempts int    // per task; default 4
	Split    int64  // maximum bytes of a file per map task; default 64 MiB
}

func (cfg Config) withDefaults() Config {
	if cfg.Disk == nil {
		cfg.Disk = vfs.OS
	}
	cfg.Temp = cmp.Or(cfg.Temp, os.TempDir())
	cfg.Cores = cmp.Or(cfg.Cores, runtime.GOMAXPROCS(0))
	cfg.Memory = cmp.Or(cfg.Memory, 192<<20)
	cfg.Attempts = cmp.Or(cfg.Attempts, 4)
	cfg.Split = cmp.Or(cfg.Split, 64<<20)
	return cfg
}

// MemoryLimit returns a limit for debug.SetMemoryLimit in a process that runs jobs, so that garbage does not double the
// memory for sorting. It is always more than a crawl job needs.
func (cfg Config) MemoryLimit() int64 {
	return max(cfg.withDefaults().Memory+256<<20, minMemoryLimit)
}

const minMemoryLimit = 448 << 20

// A Runner runs jobs in this process.
type Runner struct{ cfg Config }

var _ batch.Runner = (*Runner)(nil)

// New returns a runner.
func New(cfg Config) *Runner { return &Runner{cfg.withDefaults()} }

// Run runs a job.
func (r *Runner) Run(ctx context.Context, run batch.Run) (_ *batch.Result, err error) {
	if run.Reducers < 1 && run.Job.Reduces() {
		return nil, fmt.Errorf("job %s: %d reducers", run.Job.Name, run.Reducers)
	}
	if err := r.cfg.Place.Remove(ctx, run.Output); err != nil {
		return nil, err
	}
	splits, err := r.splits(ctx, run.Inputs)
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", run.Job.Name, err)
	}
	temp, done, err := r.createTemp()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	j := &job{Run: run, cfg: &r.cfg, temp: temp, splits: splits, monitor: newProgressMonitor(run, len(splits))}
	if err := j.run(ctx); err != nil {
		return nil, fmt.Errorf("job %s: %w", run.Job.Name, err)
	}
	return &j.monitor.outcome, nil
}

// A split is the part of a file that a map task reads.
type split struct {
	name     string
	from, to int64
}

func (r *Runner) splits(ctx context.Context, names []string) (all []split, err error) {
	for _, name := range names {
		info, err := r.cfg.Place.Stat(ctx, name)
		if err != nil {
			return nil, err
		}
		for from := int64(0); from < info.Size; from += r.cfg.Split {
			to := from + r.cfg.Split
			if info.Size-to < r.cfg.Split/8 { // avoid a tiny last split
				all = append(all, split{name, from, info.Size})
				break
			}
			all = append(all, split{name, from, to})
		}
	}
	return all, nil
}

const (
	tempPrefix = "kumo-batch-"
	lockName   = "lock"
)

// createTemp creates a folder for a job, and removes those of killed processes.
func (r *Runner) createTemp() (dir string, done func() error, err error) {
	if err := os.MkdirAll(r.cfg.Temp, 0o755); err != nil {
		return "", nil, err
	}
	entries, err := os.ReadDir(r.cfg.Temp)
	if err != nil {
		return "", nil, err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tempPrefix) {
			removeStale(filepath.Join(r.cfg.Temp, e.Name()))
		}
	}
	dir = filepath.Join(r.cfg.Temp, fmt.Sprintf("%s%016x", tempPrefix, rand.Uint64()))
	lock := flock.New(dir + "." + lockName)
	if _, err := lock.TryLock(); err != nil {
		return "", nil, err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", nil, errors.Join(err, lock.Unlock())
	}
	return dir, func() error {
		err := os.RemoveAll(dir)
		return errors.Join(err, os.Remove(lock.Path()), lock.Unlock())
	}, nil
}

// removeStale removes a folder, or a lock without one, if no process holds the lock. On errors, the next run tries
// again.
func removeStale(name string) {
	dir, isLock := strings.CutSuffix(name, "."+lockName)
	lock := flock.New(dir + "." + lockName)
	if isLock {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			return // the lock is removed with its folder
		}
	}
	if got, err := lock.TryLock(); err != nil || !got {
		return
	}
	_ = os.RemoveAll(dir)
	_ = os.Remove(lock.Path())
	_ = lock.Unlock()
}

// A job is one run of a batch job.
type job struct {
	batch.Run
	cfg     *Config
	temp    string
	splits  []split
	runs    [][]extsort.Run // output of each map task for the reducers
	monitor *progressMonitor
}

func (j *job) run(ctx context.Context) error {
	j.runs = make([][]extsort.Run, len(j.splits))
	err := j.runTasks(ctx, len(j.splits), j.cfg.Cores, j.mapTask)
	if err != nil || !j.Job.Reduces() {
		return err
	}
	var runs []extsort.Run
	for _, some := range j.runs {
		runs = append(runs, some...)
	}
	atOnce := j.cfg.Cores
	if j.Job.WaitsForServers {
		atOnce = j.Reducers
	}
	return j.runTasks(ctx, j.Reducers, atOnce, func(ctx context.Context, t *batch.Task) error {
		return j.reduceTask(ctx, t, runs)
	})
}

// runTasks runs n tasks, some concurrently, and retries each a few times.
func (j *job) runTasks(outer context.Context, n, atOnce int, run func(context.Context, *batch.Task) error) error {
	g, ctx := errgroup.WithContext(outer)
	g.SetLimit(atOnce)
	for index := range n {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			for attempt := 0; ; attempt++ {
				t := j.monitor.startTask(index, n, attempt)
				err := batch.CatchPanic(func() error { return run(ctx, t) })
				j.monitor.endTask(t, err)
				switch {
				case err == nil:
					return nil
				case ctx.Err() != nil:
					return ctx.Err()
				case attempt+1 >= j.cfg.Attempts || vfs.IsFull(err):
					return fmt.Errorf("task %d of %d failed%s: %w", index+1, n, lastOf(attempt+1), err)
				}
			}
		})
	}
	return cmp.Or(g.Wait(), outer.Err())
}

// lastOf returns a note on the number of failures; the error is the last one.
func lastOf(n int) string {
	if n == 1 {
		return ""
	}
	return fmt.Sprintf(" %d times, last error", n)
}

func (j *job) mapTask(ctx context.Context, t *batch.Task) (err error) {
	if !j.Job.Reduces() {
		return j.commit(ctx, t, func(emit batch.Emit) error { return j.mapAll(ctx, t, emit) })
	}
	parts := j.Reducers
	s := extsort.New(extsort.Config{Disk: j.cfg.Disk, Dir: j.dir("map", t), Parts: parts, Combine: j.combine(),
		Memory: int(j.cfg.Memory / int64(min(j.cfg.Cores, len(j.splits))))})
	defer func() { err = errors.Join(err, s.Close()) }()
	err = j.mapAll(ctx, t, func(key, value []byte) error { return s.Add(j.Job.PartitionOf(key, parts), key, value) })
	if err != nil {
		return err
	}
	j.runs[t.Index], err = s.Runs()
	return err
}

func (j *job) combine() extsort.Combine {
	if j.Job.Combine == nil {
		return nil
	}
	return extsort.Combine(j.Job.Combine)
}

// dir returns a folder for an attempt of a task.
func (j *job) dir(kind string, t *batch.Task) string {
	return filepath.Join(j.temp, fmt.Sprintf("%s-%05d-%d", kind, t.Index, t.Attempt))
}

func (j *job) mapAll(ctx context.Context, t *batch.Task, emit batch.Emit) (err error) {
	s := j.splits[t.Index]
	in, err := seqfile.Open(ctx, j.cfg.Place, s.name, s.from, s.to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	for n := 0; ; n++ {
		if n%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		key, value, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = j.Job.Map(ctx, t, batch.Record{Key: key, Value: value}, emit)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
}

func (j *job) reduceTask(ctx context.Context, t *batch.Task, runs []extsort.Run) (err error) {
	m, err := extsort.Open(extsort.Config{Disk: j.cfg.Disk, Dir: j.dir("reduce", t), Combine: j.combine()}, runs, t.Index)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	return j.commit(ctx, t, func(emit batch.Emit) error {
		groups, failed := m.Groups()
		err := j.Job.Reduce(ctx, t, groups, emit)
		return errors.Join(err, failed())
	})
}

// commit publishes the output of a task if it succeeds.
func (j *job) commit(ctx context.Context, t *batch.Task, run func(batch.Emit) error) error {
	sink := batch.NewSink(ctx, j.cfg.Place, j.Output, t.Index, j.Job)
	defer sink.Abort()
	if err := run(sink.Emit); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return sink.Commit()
}
