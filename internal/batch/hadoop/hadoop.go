// Package hadoop runs the jobs of a batch crawl on a Hadoop cluster with Hadoop Streaming.
//
// The kumo binary is shipped as mapper, combiner and reducer. Nothing is installed or changed on the cluster. The
// package needs Hadoop's client: its configuration, and the command hadoop with the Streaming jar.
//
// # Data flow
//
// Hadoop reads the input and splits it where its blocks are stored. Input, and records between mappers and reducers,
// pass through pipes (rawbytes). A task writes its output files to its attempt's own folder on HDFS. Hadoop makes that
// folder visible once, for the successful attempt, so failed and speculative attempts do no harm. Counters are sent in
// the same two ways: in files, or with the records.
//
// Each job commits to its own folder, whose files are then moved to the output. The reason is that an application
// master removes _temporary from its output when its process ends, seconds after its job. By then, another job might be
// using _temporary.
//
// If a runner is killed, its job continues. The next run of the same job finds it and waits for it.
package hadoop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"kumo/internal/archive/place"
	"kumo/internal/archive/place/hdfs"
	"kumo/internal/base/advice"
	"kumo/internal/batch"
	"kumo/internal/content/hadoopconf"
)

// A Config defines how jobs are run.
type Config struct {
	Place  *hdfs.Place // contains input and output
	Conf   hadoopconf.Conf
	Client Client // Hadoop's commands
	Binary string // the program to ship; default this program
	// Task are the arguments that make Binary run a task; ROLE and FILE for [Task] are appended.
	Task []string

	Queue    string // YARN queue; "" for the user's default
	Attempts int    // per task; default 4
	// Memory is the size of a task's container in MiB, shared by the JVM and kumo. The default is the cluster's,
	// usually 1024. A record of many MB needs several times its size.
	Memory int
	// Log, unless nil, receives the output of Hadoop's client, line by line.
	Log func(line string)
}

// A Runner runs jobs on a Hadoop cluster.
type Runner struct{ cfg Config }

var (
	_ batch.Runner    = (*Runner)(nil)
	_ batch.Abandoner = (*Runner)(nil)
)

// New returns a runner.
func New(cfg Config) (*Runner, error) {
	cfg.Attempts = cmp.Or(cfg.Attempts, 4)
	if cfg.Log == nil {
		cfg.Log = func(string) {}
	}
	if cfg.Binary == "" {
		var err error
		if cfg.Binary, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	// Hadoop takes comma-separated lists of files and has no escape for commas.
	if url, err := cfg.Place.FileURL("kumo"); err == nil && strings.Contains(url, ",") {
		return nil, advice.Usage("%s: Hadoop does not support paths with a comma: choose another folder",
			strings.TrimSuffix(url, "/kumo"))
	}
	return &Runner{cfg}, nil
}

// Run runs a job, or waits for the same job if an earlier process started it.
func (r *Runner) Run(ctx context.Context, run batch.Run) (*batch.Result, error) {
	if run.Reducers < 1 && run.Job.Reduces() {
		return nil, fmt.Errorf("job %s: %d reducers", run.Job.Name, run.Reducers)
	}
	j := &job{Run: run, cfg: &r.cfg, work: path.Join(run.Output, workName)}
	result, err := j.run(ctx)
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", run.Job.Name, err)
	}
	return result, nil
}

// Abandon kills the job with this output that an earlier process started.
func (r *Runner) Abandon(ctx context.Context, output string) error {
	j := &job{cfg: &r.cfg, work: path.Join(output, workName)}
	theirs, err := j.readSubmission(ctx)
	if theirs == nil || err != nil {
		return err
	}
	if id, state, err := j.byTag(ctx, theirs.Tag); err != nil || state != appRunning {
		return err
	} else {
		return j.kill(ctx, id)
	}
}

// A job is one run of a batch job.
type job struct {
	batch.Run
	cfg    *Config
	work   string // folder in the output for files that are not output
	temp   string // local folder
	failed int
}

func (j *job) run(ctx context.Context) (_ *batch.Result, err error) {
	if j.temp, err = os.MkdirTemp("", "kumo-hadoop-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(j.temp)) }()
	file, err := j.taskFile()
	if err != nil {
		return nil, err
	}
	binary, sum, err := j.uploadBinary(ctx)
	if err != nil {
		return nil, err
	}
	var mine submission
	if mine.Fingerprint, err = j.fingerprint(sum); err != nil {
		return nil, err
	}
	found, err := j.findEarlier(ctx, mine)
	if err != nil {
		return nil, err
	}
	if found == nil {
		found, err = j.submit(ctx, mine, binary, file)
	}
	if err != nil {
		return nil, err
	}
	if err := j.wait(ctx, found); err != nil {
		return nil, err
	}
	return j.finish(ctx, found)
}

// taskFile writes the task file and returns its path.
func (j *job) taskFile() (string, error) {
	text, err := json.Marshal(taskFile{Conf: j.Conf, Hadoop: j.cfg.Conf.WithPrefix("fs.", "dfs.", "hadoop.security."),
		User: j.cfg.Place.User(), Place: j.cfg.Place.URL(), Work: j.work, Reducers: j.Reducers})
	if err != nil {
		return "", err
	}
	file := filepath.Join(j.temp, taskFileName)
	return file, os.WriteFile(file, text, 0o644)
}

const taskFileName = "kumo-task.json"

// committed returns the folder to which Hadoop commits a job's output.
func (j *job) committed(tag string) string { return path.Join(j.work, tag) }

// finish sums the counters of the successful tasks, moves their files to the output, and removes everything else. It
// can be interrupted and repeated.
func (j *job) finish(ctx context.Context, s *status) (*batch.Result, error) {
	result, err := j.counters(ctx, s)
	if errors.Is(err, errOutputLost) { // nothing is left to resume
		return nil, errors.Join(err, j.cfg.Place.Remove(ctx, j.work))
	}
	if err != nil {
		return nil, err
	}
	infos, err := j.cfg.Place.List(ctx, j.committed(s.tag))
	if err != nil {
		return nil, err
	}
	for _, info := range infos {
		if info.Name == workName || info.Name == temporaryName {
			continue
		}
		from := path.Join(j.committed(s.tag), info.Name)
		if err := j.cfg.Place.Rename(ctx, from, path.Join(j.Output, info.Name)); err != nil {
			return nil, err
		}
	}
	return result, j.cfg.Place.Remove(ctx, j.work)
}

// temporaryName is Hadoop's folder for uncommitted output. Some clusters are configured to keep it.
const temporaryName = "_temporary"

// If an application master is killed before its job ends, it removes committed task output, and its successor treats
// these tasks as complete.
var errOutputLost = errors.New(
	"their output is missing; this happens when YARN restarts the application master",
)

// counters sums the counter files of the tasks. A task without a counter file has no output either.
func (j *job) counters(ctx context.Context, s *status) (*batch.Result, error) {
	dir := path.Join(j.committed(s.tag), workName, countersName)
	files, err := j.cfg.Place.List(ctx, dir)
	if err != nil {
		return nil, err
	}
	want := j.Reducers
	if !j.Job.Reduces() {
		want = s.maps // 0 if unknown
	}
	if len(files) < want {
		return nil, advice.With(fmt.Errorf("%d of %d tasks: %w", want-len(files), want, errOutputLost), "run it again")
	}
	result := &batch.Result{Counters: &batch.Counters{}, Failed: j.failed}
	for _, info := range files {
		var tasks []taskReport
		if err := batch.ReadJSON(ctx, j.cfg.Place, path.Join(dir, info.Name), &tasks); err != nil {
			return nil, err
		}
		for _, t := range tasks {
			result.Tasks += t.Tasks
			for _, c := range t.Counts {
				result.Counters.Add(c.Group, c.Name, c.N)
			}
		}
	}
	return result, nil
}

// explain adds advice to the error of a failed job. If HDFS is full, tasks could not write their own error.
func (j *job) explain(ctx context.Context, failure error) error {
	if err := j.probe(ctx); errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%w; Hadoop reports: %w", err, failure)
	}
	return withAdvice(failure)
}

// failureReason returns the error of a failed job: the task's own message if there is one, or else Hadoop's.
func (j *job) failureReason(ctx context.Context, says string) error {
	dir := path.Join(j.work, failuresName)
	files, err := j.cfg.Place.List(ctx, dir)
	if err != nil || len(files) == 0 {
		return j.explain(ctx, errors.New(cmp.Or(says, "it failed without a reason from Hadoop")))
	}
	// Attempts are named by their number; the last one made the job fail.
	last := files[0]
	for _, f := range files {
		if f.Modified.After(last.Modified) {
			last = f
		}
	}
	text, err := place.ReadFile(ctx, j.cfg.Place, path.Join(dir, last.Name))
	if err != nil {
		return errors.New(cmp.Or(says, err.Error()))
	}
	return j.explain(ctx, fmt.Errorf("%s: %s (%d attempts failed)", last.Name, text, len(files)))
}

// probe writes a file into the job's folder and returns the error.
func (j *job) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	return place.WriteFile(ctx, j.cfg.Place, path.Join(j.work, "probe"), []byte{0})
}

const probeTime = 30 * time.Second

// reportProgress reports the job's progress, by the completed shares.
func (j *job) reportProgress(s status) {
	if j.Progress == nil {
		return
	}
	p := batch.Progress{Maps: s.maps, MapsDone: int(s.mapShare * float64(s.maps)), Status: s.id}
	if j.Job.Reduces() {
		p.Reduces = j.Reducers
		p.ReducesDone = int(s.reduceShare * float64(j.Reducers))
	}
	j.Progress(p)
}

// pollInterval is how often a job of another process is polled. Each query starts a JVM.
const pollInterval = 3 * time.Second

// removeOutput removes the output of an earlier job.
func (j *job) removeOutput(ctx context.Context) error {
	if err := j.cfg.Place.Remove(ctx, j.Output); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
