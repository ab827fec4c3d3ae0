package hadoop

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kumo/internal/archive/place"
	"kumo/internal/archive/place/hdfs"
	"kumo/internal/batch"
	"kumo/internal/batch/batchtest"
	"kumo/internal/content/hadoopconf"
	"kumo/internal/content/hadoopconf/hadooptest"
)

// The test's own binary is shipped. Called with "task", it is a task; called with "run", it is a runner in its own
// process, which can be killed.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 4 && os.Args[1] == "task":
		err := Task(context.Background(), os.Args[2], os.Args[3], func(c *batch.Conf, p place.Place) (*batch.Job,
			error) {
			if j := testJob(c.Job, p); j != nil {
				return j, nil
			}
			return nil, fmt.Errorf("no job %q", c.Job)
		}, Pipes{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
		if err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	case len(os.Args) == 3 && os.Args[1] == "run":
		if err := runAlone(context.Background(), os.Args[2]); err != nil {
			fmt.Println("FAILED:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// testJob returns the suite's jobs and some more, whose tasks use a storage location.
func testJob(name string, p place.Place) *batch.Job {
	switch name {
	case "greedy":
		return &batch.Job{Name: name, Map: greedy}
	case "held":
		j := *batchtest.Job("identity")
		j.Name = name
		j.Reduce = held(p, j.Reduce)
		return &j
	}
	return batchtest.Job(name)
}

const releaseName = "release"

// held returns a Reduce function in which all tasks but the first wait for a file.
func held(p place.Place, reduce reduceFunc) reduceFunc {
	return func(ctx context.Context, t *batch.Task, groups batch.Groups, emit batch.Emit) error {
		for t.Index > 0 {
			_, err := p.Stat(ctx, releaseName)
			if err == nil {
				break
			}
			if !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if err := place.Sleep(ctx, 100*time.Millisecond); err != nil {
				return err
			}
		}
		return reduce(ctx, t, groups, emit)
	}
}

type reduceFunc = func(context.Context, *batch.Task, batch.Groups, batch.Emit) error

// greedy allocates more memory than its container has, and waits to be killed.
func greedy(ctx context.Context, t *batch.Task, _ batch.Record, _ batch.Emit) error {
	all := make([]byte, 1<<30)
	for i := 0; i < len(all); i += 4096 {
		all[i] = 1
	}
	t.Status(fmt.Sprintf("%d bytes", len(all)))
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
	}
	runtime.KeepAlive(all)
	return errors.New("nobody minds")
}

// runAlone runs a job over the input of a storage location.
func runAlone(ctx context.Context, url string) error {
	conf, err := hadoopconf.Load(os.Getenv("KUMO_TEST_HADOOP"))
	if err != nil {
		return err
	}
	p, err := hdfs.Open(ctx, url, hdfs.Config{Conf: conf})
	if err != nil {
		return err
	}
	r, err := newRunner(conf, p, func(line string) { fmt.Println(line) })
	if err != nil {
		return err
	}
	_, err = r.Run(ctx, heldIdentity())
	return err
}

func newRunner(conf hadoopconf.Conf, p *hdfs.Place, log func(string)) (*Runner, error) {
	client, err := FindClient(conf, "", "")
	if err != nil {
		return nil, err
	}
	return New(Config{Place: p, Conf: conf, Client: client, Task: []string{"task"}, Log: log})
}

func identity(reducers int) batch.Run {
	return batch.Run{Job: testJob("identity", nil), Conf: &batch.Conf{Job: "identity"}, Inputs: []string{"input/a",
		"input/b"},
		Output: "output", Reducers: reducers}
}

// heldIdentity returns identity(2), which ends when the file releaseName exists.
func heldIdentity() batch.Run {
	run := identity(2)
	run.Job, run.Conf = testJob("held", nil), &batch.Conf{Job: "held"}
	return run
}

// A lab is a runner with its own storage location.
type lab struct {
	*Runner
	place *hdfs.Place

	mu    sync.Mutex // guards the fields below
	lines []string   // output of Hadoop's client
	watch func(line string)
}

func open(t *testing.T, url string) *lab {
	t.Helper()
	conf := hadooptest.Conf(t)
	p, err := hdfs.Open(t.Context(), url, hdfs.Config{Conf: conf, Spool: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	l := &lab{place: p}
	if l.Runner, err = newRunner(conf, p, l.log); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(strings.Join(l.lines, "\n"))
		}
	})
	return l
}

func (l *lab) log(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	if l.watch != nil {
		l.watch(line)
	}
}

func (l *lab) said(words string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(strings.Join(l.lines, "\n"), words)
}

// lastJob returns the last job in the output of Hadoop's client.
func lastJob(lines []string) string {
	all := jobLine.FindAllStringSubmatch(strings.Join(lines, "\n"), -1)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1][1]
}

const records = 3000

func (l *lab) writeInput(t *testing.T) {
	t.Helper()
	for i, name := range identity(1).Inputs {
		err := batch.WriteFile(t.Context(), l.place, name, func(emit batch.Emit) error {
			for n := range records / 2 {
				if err := emit(fmt.Appendf(nil, "key %d", n%97), fmt.Appendf(nil, "value %d of %d", n, i)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// check checks that the output contains all records exactly once, and nothing else.
func (l *lab) check(t *testing.T, reducers int, result *batch.Result) {
	t.Helper()
	names, err := batch.ListFiles(t.Context(), l.place, "output")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, name := range names {
		for r, err := range batch.ReadFile(t.Context(), l.place, name) {
			if err != nil {
				t.Fatal(name, err)
			}
			seen[string(r.Value)]++
		}
	}
	if len(seen) != records || len(names) != reducers {
		t.Errorf("%d records came out of %d, in %q", len(seen), records, names)
	}
	for value, n := range seen {
		if n != 1 {
			t.Fatalf("%s came out %d times", value, n)
		}
	}
	if n := result.Counters.Get("test", "in"); n != records || result.Tasks != 1+reducers {
		t.Errorf("%d records were counted, %d tasks", n, result.Tasks)
	}
}

func TestRunner(t *testing.T) {
	top := hadooptest.TempFolder(t)
	batchtest.Run(t, func(t *testing.T) batchtest.Fixture {
		l := open(t, top+"/"+strings.ReplaceAll(path.Base(t.Name()), ",", ""))
		if strings.HasSuffix(t.Name(), "/a_huge_record") {
			l.cfg.Memory = 2560
		}
		return batchtest.Fixture{Runner: l.Runner, Place: l.place}
	})
}

// If a runner is killed, its job keeps running. The next runner takes it over if it is the same job, and kills it
// otherwise.
func TestARunnerIsKilled(t *testing.T) {
	for name, run := range map[string]batch.Run{"the same job": heldIdentity(), "another job": identity(3)} {
		t.Run(name, func(t *testing.T) {
			l := open(t, hadooptest.TempFolder(t))
			l.writeInput(t)
			id := l.beginAndDie(t)
			found := "found the job " + id
			l.watch = func(line string) {
				if strings.Contains(line, found) {
					l.release(t)
				}
			}
			result, err := l.Run(t.Context(), run)
			if err != nil {
				t.Fatal(err)
			}
			l.check(t, run.Reducers, result)
			if same := run.Reducers == 2; l.said(found) != same || l.said("Submitted application") == same {
				t.Errorf("the job %s was not taken over, or another one was", id)
			}
			if left, err := l.place.List(t.Context(), path.Join("output", workName)); err != nil || len(left) != 0 {
				t.Errorf("left: %v %v", left, err)
			}
		})
	}
}

// beginAndDie starts a job in another process and kills that process.
func (l *lab) beginAndDie(t *testing.T) (id string) {
	t.Helper()
	first := exec.Command(os.Args[0], "run", l.place.URL())
	out, err := first.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); id == "" && lines.Scan(); {
		if m := jobLine.FindStringSubmatch(lines.Text()); m != nil {
			id = m[1]
		}
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out)
	_ = first.Wait() // it was killed
	if id == "" {
		t.Fatal("the first runner did not begin a job")
	}
	return id
}

// Killing a completed job is not an error.
func TestAJobHasEndedBeforeItsKill(t *testing.T) {
	l := open(t, hadooptest.TempFolder(t))
	l.writeInput(t)
	if _, err := l.Run(t.Context(), identity(2)); err != nil {
		t.Fatal(err)
	}
	j := &job{cfg: &l.cfg}
	for _, id := range []string{lastJob(l.lines), l.killed(t)} {
		if err := j.kill(t.Context(), id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// killed returns a job that was killed.
func (l *lab) killed(t *testing.T) (id string) {
	t.Helper()
	id = l.beginAndDie(t)
	if err := l.Abandon(t.Context(), "output"); err != nil {
		t.Fatal(err)
	}
	l.wasKilled(t, id)
	return id
}

func TestAJobIsAbandoned(t *testing.T) {
	l := open(t, hadooptest.TempFolder(t))
	l.writeInput(t)
	if err := l.Abandon(t.Context(), "output"); err != nil {
		t.Fatal("nothing there:", err)
	}
	l.killed(t)
}

// wasKilled checks that a job was killed.
func (l *lab) wasKilled(t *testing.T, id string) {
	t.Helper()
	out := hadooptest.Run(t, "yarn", "application", "-list", "-appStates", "ALL")
	if at := strings.Index(out, strings.Replace(id, "job", "application", 1)); id == "" || at < 0 ||
		!strings.Contains(strings.SplitN(out[at:], "\n", 2)[0], "KILLED") {
		t.Errorf("the job %s goes on:\n%s", id, out)
	}
}

func TestARunThatIsEndedEndsItsJob(t *testing.T) {
	l := open(t, hadooptest.TempFolder(t))
	l.writeInput(t)
	ctx, cancel := context.WithCancel(t.Context())
	id := ""
	l.watch = func(line string) {
		if m := jobLine.FindStringSubmatch(line); m != nil {
			id = m[1]
			cancel()
		}
	}
	// The job waits, so that it cannot succeed first on a slow machine.
	if _, err := l.Run(ctx, heldIdentity()); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	l.wasKilled(t, id)
	l.watch = nil
	l.release(t)
	result, err := l.Run(t.Context(), heldIdentity())
	if err != nil {
		t.Fatal(err)
	}
	l.check(t, 2, result)
}

// A heldRun runs a job whose first reducer has committed its output and whose second waits.
type heldRun struct {
	*lab
	run    batch.Run
	result *batch.Result
	ended  chan error
}

func (l *lab) hold(t *testing.T) *heldRun {
	t.Helper()
	h := &heldRun{lab: l, run: heldIdentity(), ended: make(chan error, 1)}
	go func() {
		var err error
		h.result, err = l.Run(t.Context(), h.run)
		h.ended <- err
	}()
	hadooptest.Await(t, 2*time.Minute, "the output of the first reducer", func() bool {
		names, err := batch.ListFiles(t.Context(), l.place, "output")
		return err == nil && slices.ContainsFunc(names, func(name string) bool {
			return strings.Contains(name, "_temporary/1/task_") && strings.Contains(name, "_r_000000/")
		})
	})
	return h
}

// release lets the second reducer of a held job continue.
func (l *lab) release(t *testing.T) {
	if err := place.WriteFile(t.Context(), l.place, releaseName, nil); err != nil {
		t.Error(err)
	}
}

// release lets the second reducer continue, and waits for the end of the run.
func (h *heldRun) release(t *testing.T) (*batch.Result, error) {
	t.Helper()
	h.lab.release(t)
	err := <-h.ended
	return h.result, err
}

// When its process ends, seconds after its job, an application master removes _temporary from its output, where another
// job may be writing.
func TestAnotherJobHadTheOutputBefore(t *testing.T) {
	l := open(t, hadooptest.TempFolder(t))
	l.writeInput(t)
	var master *hadooptest.Master
	l.watch = func(line string) {
		if master == nil && strings.Contains(line, "Counters: ") { // the client has read the counters
			master = hadooptest.MasterOf(t, lastJob(l.lines))
			master.Pause()
		}
	}
	if _, err := l.Run(t.Context(), identity(2)); err != nil {
		t.Fatal(err)
	}
	h := l.hold(t)
	master.Resume(t)
	result, err := h.release(t)
	if err != nil {
		t.Fatal(err)
	}
	l.check(t, 2, result)
}

// An application master killed by YARN also removes committed output of reducers, which its successor considers
// complete.
func TestAnApplicationMasterIsEnded(t *testing.T) {
	l := open(t, hadooptest.TempFolder(t))
	l.writeInput(t)
	h := l.hold(t)
	l.mu.Lock()
	id := lastJob(l.lines)
	l.mu.Unlock()
	hadooptest.Await(t, time.Minute, "the end of the first reducer", func() bool {
		done := hadooptest.Run(t, "mapred", "job", "-list-attempt-ids", id, "REDUCE", "completed")
		return strings.Contains(done, "_r_000000_")
	})
	hadooptest.MasterOf(t, id).Terminate(t)
	result, err := h.release(t)
	if errors.Is(err, errOutputLost) {
		result, err = l.Run(t.Context(), h.run)
	}
	if err != nil {
		t.Fatal(err)
	}
	l.check(t, 2, result)
}

// A runner may be killed while it moves a job's output.
func TestWhatAnotherRunnerHasBegunToMove(t *testing.T) {
	l := open(t, hadooptest.TempFolder(t))
	j := &job{Run: identity(2), cfg: &l.cfg, work: path.Join("output", workName)}
	s := &status{tag: "kumo-tag"}
	counters := path.Join(j.committed(s.tag), workName, countersName)
	write := func(name, text string) {
		t.Helper()
		if err := place.WriteFile(t.Context(), l.place, name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	write("output/a/part-00000", "moved")
	write(path.Join(j.committed(s.tag), "b/part-00000"), "not yet")
	write(path.Join(j.committed(s.tag), "b/part-00001"), "not yet")
	write(path.Join(j.committed(s.tag), temporaryName, "1/_temporary/attempt/b/part-00001"), "of no account")
	write(counters+"/r-00000", `[{"Tasks":1,"Counts":[{"Group":"test","Name":"in","N":3}]}]`)
	write(counters+"/r-00001", `[{"Tasks":1,"Counts":[{"Group":"test","Name":"in","N":4}]}]`)
	result, err := j.finish(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if n := result.Counters.Get("test", "in"); n != 7 || result.Tasks != 2 {
		t.Errorf("%d were counted by %d tasks", n, result.Tasks)
	}
	names, err := batch.ListFiles(t.Context(), l.place, "output")
	if want := []string{"output/a/part-00000", "output/b/part-00000", "output/b/part-00001"}; err != nil ||
		!slices.Equal(names, want) {
		t.Errorf("%q are there, of %q: %v", names, want, err)
	}
}

func TestANodeManagerDies(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes on a busy machine")
	}
	l := open(t, hadooptest.TempFolder(t))
	l.writeInput(t)
	var once sync.Once
	l.watch = func(line string) {
		if strings.Contains(line, "map 100% reduce 0%") {
			once.Do(func() { hadooptest.Kill(t, "nodemanager1") })
		}
	}
	result, err := l.Run(t.Context(), identity(2))
	if err != nil {
		t.Fatal(err)
	}
	l.check(t, 2, result)
}

func TestATaskThatTakesTooMuchMemory(t *testing.T) {
	l := open(t, hadooptest.TempFolder(t))
	l.writeInput(t)
	l.cfg.Attempts = 2 // Hadoop reports why attempts failed, except the last
	run := identity(1)
	run.Job, run.Conf = testJob("greedy", nil), &batch.Conf{Job: "greedy"}
	_, err := l.Run(t.Context(), run)
	if err == nil || !strings.Contains(err.Error(), "memory limit") {
		t.Errorf("the error is %v", err)
	}
}

// Tasks run without Hadoop's job configuration.
func TestATaskWithoutItsJob(t *testing.T) {
	dir := t.TempDir()
	file := path.Join(dir, "task.json")
	text, err := json.Marshal(taskFile{Conf: &batch.Conf{Job: "none"}, Place: "hdfs://127.0.0.1:9/x"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("mapreduce_task_attempt_id", "attempt_1_0001_m_000000_0")
	var says strings.Builder
	none := func(c *batch.Conf, _ place.Place) (*batch.Job, error) {
		return nil, fmt.Errorf("there is no job %s", c.Job)
	}
	err = Task(t.Context(), roleCombine, file, none, Pipes{In: strings.NewReader(""), Out: io.Discard, Err: &says})
	if err == nil || !strings.Contains(says.String(), "reporter:status:failed: there is no job none\n") {
		t.Errorf("%v, and says %q", err, says.String())
	}
	panics := func(*batch.Conf, place.Place) (*batch.Job, error) { panic("at the disco") }
	if err := Task(t.Context(), roleCombine, file, panics, Pipes{Err: io.Discard}); err == nil ||
		!strings.Contains(err.Error(), "at the disco") {
		t.Errorf("a panic: %v", err)
	}
}

func TestAPlaceWithACommaIsRefused(t *testing.T) {
	conf := hadooptest.Conf(t)
	url := hadooptest.TempFolder(t) + "/news, today"
	p, err := hdfs.Open(t.Context(), url, hdfs.Config{Conf: conf, Spool: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := newRunner(conf, p, nil); err == nil || !strings.Contains(err.Error(), "comma") {
		t.Errorf("%s: %v", url, err)
	}
}
