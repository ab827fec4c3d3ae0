package hadoop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"kumo/internal/archive/place"
	"kumo/internal/archive/place/hdfs"
	"kumo/internal/base/extsort"
	"kumo/internal/batch"
	"kumo/internal/batch/stream"
	"kumo/internal/content/hadoopconf"
)

// A taskFile is the configuration of tasks. It is shipped with each job, so that nothing has to be installed or
// configured on the nodes.
type taskFile struct {
	Conf     *batch.Conf
	Hadoop   map[string]string // how to reach HDFS
	User     string
	Place    string // URL of the runner's storage location
	Work     string // folder there for files from tasks to the runner
	Reducers int
}

// Names in the folder Work, and in the folder of that name in a task's own output.
const (
	workName     = "_kumo"
	countersName = "counters" // one file per task: a list of taskReport, which appears with its output
	failuresName = "failures" // one file per failed attempt: its error text
)

// Roles of a task.
const (
	roleMap     = "map"
	roleCombine = "combine"
	roleReduce  = "reduce"
)

// Pipes are the streams between a task and Hadoop.
type Pipes struct {
	In       io.Reader // records
	Out, Err io.Writer // Out has records; Err has counters and status for Hadoop, and log lines
}

// Jobs creates a job from its Conf and its runner's storage location, which is nil for a combiner.
type Jobs func(conf *batch.Conf, p place.Place) (*batch.Job, error)

// Task runs a mapper, combiner or reducer as started by Hadoop Streaming, of the job that the task file defines. It
// also sends its error to the runner.
func Task(ctx context.Context, role, file string, jobs Jobs, pipes Pipes) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	t := &task{role: role, pipes: pipes, attempt: os.Getenv("mapreduce_task_attempt_id")}
	if err := json.Unmarshal(text, &t.taskFile); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	t.reporter = stream.NewReporter(pipes.Err, t.Conf)
	if err = batch.CatchPanic(func() error { return t.execute(ctx, jobs) }); err == nil {
		return nil
	}
	t.writeFailure(ctx, err)
	return err
}

type task struct {
	taskFile
	role     string
	pipes    Pipes
	attempt  string // attempt_1795402650629_0001_m_000003_0
	reporter *stream.Reporter
	job      *batch.Job
	codes    codes
	mappers  []taskReport // reports of mappers that reached this reducer
}

// execute runs the task in its role.
func (t *task) execute(ctx context.Context, jobs Jobs) (err error) {
	var home place.Place
	if t.role != roleCombine {
		p, err := t.open(ctx, t.Place)
		if err != nil {
			return err
		}
		defer p.Close() //nolint:errcheck // what was written is there
		home = p
	}
	if t.job, err = jobs(t.Conf, home); err != nil {
		return err
	}
	if t.codes, err = partitionCodes(max(t.Reducers, 1)); err != nil {
		return err
	}
	switch t.role {
	case roleCombine:
		return t.combine()
	case roleMap, roleReduce:
		return t.run(ctx)
	}
	return fmt.Errorf("unknown role %q: expected %s, %s or %s", t.role, roleMap, roleCombine, roleReduce)
}

// run runs a mapper or reducer. The attempt writes its files and counters to its own folder, which Hadoop commits if
// the attempt succeeds. If an application master dies, Hadoop drops such folders of mappers that precede reducers. So
// these mappers send their counters with the records, to a reducer.
func (t *task) run(ctx context.Context) error {
	above, folder := path.Split(os.Getenv("mapreduce_task_output_dir"))
	if folder == "" {
		return errors.New("mapreduce_task_output_dir is not set: run this only as a task of Hadoop Streaming")
	}
	out, err := t.open(ctx, above)
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // what was written is there
	index, _ := strconv.Atoi(os.Getenv("mapreduce_task_partition"))
	of, _ := strconv.Atoi(os.Getenv("mapreduce_job_" + t.role + "s"))
	attempt, _ := strconv.Atoi(t.attempt[strings.LastIndexByte(t.attempt, '_')+1:])
	self := batch.NewTask(index, of, attempt, t.reporter.Status)
	stop := t.reporter.Watch(self.Counters())
	defer stop() //nolint:errcheck // it goes to Hadoop's pages; what counts is left in files
	if t.role == roleMap && t.job.Reduces() {
		return t.mapToReducers(ctx, self)
	}
	if err := t.toFiles(ctx, self, out, folder); err != nil {
		return err
	}
	return t.writeCounters(ctx, out, folder, self)
}

func (t *task) open(ctx context.Context, url string) (*hdfs.Place, error) {
	return hdfs.Open(ctx, url, hdfs.Config{Conf: hadoopconf.New(t.Hadoop), User: t.User,
		Spool: "."}) // the container's folder
}

func (t *task) mapToReducers(ctx context.Context, self *batch.Task) error {
	out := &coder{Writer: stream.NewWriter(t.pipes.Out)}
	err := stream.Map(ctx, t.job, self, stream.NewReader(t.pipes.In), func(key, value []byte) error {
		return out.write(t.codes.of[t.job.PartitionOf(key, t.Reducers)], key, value)
	})
	if err != nil {
		return err
	}
	text, err := json.Marshal(reportOf(self))
	if err != nil {
		return err
	}
	if err := out.write(t.codes.counters, []byte(t.fileName(self.Index)), text); err != nil {
		return err
	}
	return out.Flush()
}

// A coder writes records whose keys have the prefix of their partition.
type coder struct {
	*stream.Writer
	key []byte
}

func (c *coder) write(prefix code, key, value []byte) error {
	c.key = append(append(c.key[:0], prefix[:]...), key...)
	return c.Write(c.key, value)
}

func (t *task) toFiles(ctx context.Context, self *batch.Task, out place.Place, folder string) error {
	sink := batch.NewSink(ctx, out, folder, self.Index, t.job)
	defer sink.Abort()
	var err error
	if t.role == roleMap {
		err = stream.Map(ctx, t.job, self, stream.NewReader(t.pipes.In), sink.Emit)
	} else {
		err = t.reduceAll(ctx, self, sink.Emit)
	}
	if err != nil {
		return err
	}
	return sink.Commit()
}

func (t *task) reduceAll(ctx context.Context, self *batch.Task, emit batch.Emit) error {
	groups, failed := extsort.Groups(&codedReader{in: stream.NewReader(t.pipes.In), strip: codeLen,
		countersCode: t.codes.counters, counters: func(_, text []byte) error {
			var l taskReport
			err := json.Unmarshal(text, &l)
			t.mappers = append(t.mappers, l)
			return err
		}})
	err := t.job.Reduce(ctx, self, groups, emit)
	return errors.Join(err, drain(groups, failed))
}

// combine combines a mapper's sorted records. Their keys keep the prefix of their partition.
func (t *task) combine() error {
	out := stream.NewWriter(t.pipes.Out)
	groups, failed := extsort.Groups(&codedReader{in: stream.NewReader(t.pipes.In), countersCode: t.codes.counters,
		counters: out.Write})
	for key, values := range groups {
		err := t.job.Combine(key[codeLen:], values, func(value []byte) error { return out.Write(key, value) })
		if err != nil {
			return err
		}
	}
	return errors.Join(failed(), out.Flush())
}

// drain reads the rest of the input: Hadoop fails a task that does not read all of it.
func drain(groups batch.Groups, failed func() error) error {
	for range groups { // read only
	}
	return failed()
}

// A codedReader reads records whose keys have a prefix, and separates mappers' counters.
type codedReader struct {
	in           *stream.Reader
	strip        int // length of the prefix to remove from keys
	countersCode code
	counters     func(key, text []byte) error // called with mappers' counters
}

func (r *codedReader) Next() (key, value []byte, err error) {
	for {
		key, value, err := r.in.Next()
		switch {
		case err != nil:
			return nil, nil, err
		case len(key) < codeLen:
			return nil, nil, errors.New("read from Hadoop: a key without the prefix of its partition")
		case code(key) != r.countersCode:
			return key[r.strip:], value, nil
		}
		if err := r.counters(key, value); err != nil {
			return nil, nil, err
		}
	}
}

// fileName returns the name of the task's files: m-00003.
func (t *task) fileName(index int) string { return fmt.Sprintf("%c-%05d", t.role[0], index) }

// A taskReport is what a task reports to the runner: its counters.
type taskReport struct {
	Tasks  int
	Counts []count
}

type count struct {
	Group, Name string
	N           int64
}

func reportOf(self *batch.Task) taskReport {
	l := taskReport{Tasks: 1}
	for c, n := range self.Counters().All() {
		l.Counts = append(l.Counts, count{c.Group, c.Name, n})
	}
	return l
}

// writeCounters writes the task's counters, and those of mappers that reached it.
func (t *task) writeCounters(ctx context.Context, out place.Place, folder string, self *batch.Task) error {
	text, err := json.Marshal(append(t.mappers, reportOf(self)))
	if err != nil {
		return err
	}
	return place.WriteFile(ctx, out, path.Join(folder, workName, countersName, t.fileName(self.Index)), text)
}

const maxFailure = 16 << 10 // bytes of an error

// writeFailure writes the error for the runner: Hadoop itself only reports that a process exited with 1.
func (t *task) writeFailure(ctx context.Context, failure error) {
	t.reporter.Status("failed: " + failure.Error())
	fmt.Fprintf(t.pipes.Err, "kumo: %v\n", failure)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	p, err := t.open(ctx, t.Place)
	if err == nil {
		text := failure.Error()
		err = place.WriteFile(ctx, p, path.Join(t.Work, failuresName, t.attempt), []byte(text[:min(len(text),
			maxFailure)]))
		err = errors.Join(err, p.Close())
	}
	if err != nil {
		fmt.Fprintf(t.pipes.Err, "kumo: cannot report the error to the runner: %v\n", err)
	}
}
