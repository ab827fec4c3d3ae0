// Package doctor checks whether a Hadoop cluster meets the requirements of batch crawl jobs, and suggests fixes.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"kumo/internal/archive/place"
	"kumo/internal/archive/place/hdfs"
	"kumo/internal/base/advice"
	"kumo/internal/batch"
	"kumo/internal/batch/hadoop"
	"kumo/internal/content/hadoopconf"
)

// A State is how bad a finding is.
type State int

// The states.
const (
	Good    State = iota
	Warning       // jobs run, but
	Failed        // jobs do not run
)

// A Finding is what came of looking at something.
type Finding struct {
	Subject string // was looked at, in a word or two
	State   State
	Detail  string
	Advice  string // about it; "" where nothing is to be done
}

// A Config says what to look at.
type Config struct {
	ConfDir   string // Hadoop's configuration; default by the environment
	URL       string // the folder that a crawl is to have on HDFS; default hdfs:///user/NAME
	Home      string // of Hadoop's commands, and
	Streaming string // the jar, see hadoop.FindClient
	Memory    int    // MiB that a task is to have; default the cluster's own
	Queue     string
	Job       bool     // run a small job, too
	Task      []string // the arguments of this program that make it a task of that job, see hadoop.Config
}

// A visit is one look at everything.
type checker struct {
	Config
	report func(Finding)
	worst  State
	conf   hadoopconf.Conf
	client hadoop.Client
	web    *http.Client
}

// Check looks at everything, tells each finding, and returns the worst state. What depends on something that is missing
// is not looked at.
func Check(ctx context.Context, cfg Config, tell func(Finding)) State {
	v := &checker{Config: cfg, report: tell, web: &http.Client{Timeout: 10 * time.Second}}
	if !v.configuration() {
		return v.worst
	}
	commands := v.commands(ctx)
	p := v.fileSystem(ctx)
	if p != nil {
		defer p.Close() //nolint:errcheck // what was written was checked
	}
	running := v.yarn(ctx)
	v.history(ctx)
	if cfg.Job && commands && running && p != nil {
		v.job(ctx, p)
	}
	return v.worst
}

func (v *checker) add(what string, state State, do, format string, args ...any) {
	v.worst = max(v.worst, state)
	v.report(Finding{Subject: what, State: state, Detail: fmt.Sprintf(format, args...), Advice: do})
}

// addError tells an error, with what can be done about it.
func (v *checker) addError(what string, err error, do string) {
	v.add(what, Failed, cmp.Or(advice.Of(err), do), "%v", err)
}

func (v *checker) configuration() bool {
	const what = "configuration"
	dir := cmp.Or(v.ConfDir, hadoopconf.Dir())
	if dir == "" {
		v.add(what, Failed, "copy the folder etc/hadoop from a machine of the cluster, and name it by HADOOP_CONF_DIR",
			"%v", hadoopconf.ErrNotFound)
		return false
	}
	var err error
	if v.conf, err = hadoopconf.Load(dir); err != nil {
		v.addError(what, err, "copy the folder etc/hadoop from a machine of the cluster, and name it by HADOOP_CONF_DIR")
		return false
	}
	v.add(what, Good, "", "%s; file system %s", dir, cmp.Or(v.conf.Get("fs.defaultFS"), "not named"))
	if name := v.conf.Get("mapreduce.framework.name"); name != "yarn" {
		v.add(what, Failed, "set mapreduce.framework.name to yarn in mapred-site.xml, or take that file from the cluster",
			"mapreduce.framework.name is %q: jobs would run on this machine alone", cmp.Or(name, "local"))
	}
	if v.conf.Secure() {
		v.add("Kerberos", Warning,
			"give KRB5_CLIENT_KTNAME and /etc/krb5.conf on all nodes, the keytab readable by who runs the tasks",
			"the cluster asks for it: tasks write to HDFS themselves, with a keytab of their node and not with "+
				"Hadoop's tokens")
	}
	return true
}

// commands looks at what is on this machine.
func (v *checker) commands(ctx context.Context) bool {
	javaIs := v.java(ctx)
	client, err := hadoop.FindClient(v.conf, v.Home, v.Streaming)
	if err != nil {
		v.addError("client", err, "")
		return false
	}
	v.client = client
	version, err := client.Version(ctx)
	if err != nil {
		v.addError("client", err, "")
		return false
	}
	v.add("client", Good, "", "Hadoop %s", version)
	switch jar := filepath.Base(client.Streaming); {
	case !strings.Contains(jar, version) && jar != "hadoop-streaming.jar":
		v.add("streaming", Warning, "name the jar that belongs to the client", "%s is not of Hadoop %s",
			client.Streaming, version)
	default:
		v.add("streaming", Good, "", "%s", client.Streaming)
	}
	return javaIs
}

var javaVersion = regexp.MustCompile(`version "(?:1\.)?(\d+)`)

const minJava = 8

func (v *checker) java(ctx context.Context) bool {
	name := "java"
	if home := os.Getenv("JAVA_HOME"); home != "" {
		name = filepath.Join(home, "bin", "java")
	}
	out, err := exec.CommandContext(ctx, name, "-version").CombinedOutput()
	if err != nil {
		v.addError("Java", err, "install a JDK or JRE, 8 or later, and set JAVA_HOME where it is not on PATH")
		return false
	}
	m := javaVersion.FindSubmatch(out)
	if m == nil {
		v.add("Java", Warning, "", "what %s says is no version: %.100q", name, out)
		return true
	}
	if n, _ := strconv.Atoi(string(m[1])); n < minJava {
		v.add("Java", Failed, "install a JDK or JRE, 8 or later", "%s is of version %d", name, n)
		return false
	}
	v.add("Java", Good, "", "%s", strings.TrimSpace(strings.SplitN(string(out), "\n", 2)[0]))
	return true
}

// fileSystem writes a file on HDFS, reads, renames and removes it: that takes NameNode, DataNodes, and permissions.
func (v *checker) fileSystem(ctx context.Context) *hdfs.Place {
	const what = "HDFS"
	url := cmp.Or(v.URL, "hdfs:///user/"+hadoopconf.User())
	p, err := hdfs.Open(ctx, url, hdfs.Config{Conf: v.conf, Patience: 20 * time.Second})
	if err != nil {
		v.addError(what, err, "")
		return nil
	}
	err = try(ctx, p)
	var total, left uint64
	if err == nil {
		total, left, err = p.Room(ctx)
	}
	if err != nil {
		v.addError(what, err, "hdfs dfsadmin -report says which DataNodes are alive; their ports have to be "+
			"reachable from here")
		_ = p.Close() // it does not work
		return nil
	}
	state, do := Good, ""
	if left < total/20 {
		state, do = Warning, "make room or add DataNodes"
	}
	v.add(what, state, do, "%s can be written and read by %s; %d of %d GB are free", p.URL(), p.User(), left/1e9,
		total/1e9)
	return p
}

func try(ctx context.Context, p *hdfs.Place) error {
	dir := fmt.Sprintf("_kumo/doctor-%08x", rand.Uint32())
	text := strings.Repeat("kumo ", 10_000)
	if err := place.WriteFile(ctx, p, dir+"/a", []byte(text)); err != nil {
		return err
	}
	if err := p.Rename(ctx, dir+"/a", dir+"/b"); err != nil {
		return err
	}
	got, err := place.ReadFile(ctx, p, dir+"/b")
	if err == nil && string(got) != text {
		err = fmt.Errorf("%s: a file came back as another", p.URL())
	}
	return errors.Join(err, p.Remove(ctx, dir))
}

// history looks for the server that knows jobs which have ended.
func (v *checker) history(ctx context.Context) {
	const what = "history"
	address := v.conf.Get("mapreduce.jobhistory.webapp.address")
	if address == "" {
		address = "0.0.0.0:19888"
		if host, _, found := strings.Cut(v.conf.Get("mapreduce.jobhistory.address"), ":"); found {
			address = host + ":19888"
		}
	}
	if strings.HasPrefix(address, "0.0.0.0") {
		v.add(what, Warning, "set mapreduce.jobhistory.address in mapred-site.xml",
			"nobody says where the JobHistoryServer is: a job that ends while no kumo waits for it cannot be "+
				"taken over, and is run again")
		return
	}
	var info struct {
		HistoryInfo struct {
			HadoopVersion string `json:"hadoopVersion"`
		} `json:"historyInfo"`
	}
	if err := v.query(ctx, "http://"+address+"/ws/v1/history/info", &info); err != nil {
		v.add(what, Warning, "start it: mapred --daemon start historyserver", "%v", err)
		return
	}
	v.add(what, Good, "", "%s", address)
}

// job runs a small job, which shows what nobody can be asked: whether tasks start, Java and shuffle work on the nodes,
// and this program runs there.
func (v *checker) job(ctx context.Context, p *hdfs.Place) {
	const what, records = "a job", 1000
	dir := fmt.Sprintf("_kumo/doctor-%08x", rand.Uint32())
	err := batch.WriteFile(ctx, p, dir+"/in", func(emit batch.Emit) error {
		for i := range records {
			if err := emit(fmt.Appendf(nil, "%d", i), []byte("kumo")); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		v.addError(what, err, "")
		return
	}
	defer func() { _ = p.Remove(context.WithoutCancel(ctx), dir) }() // it is small
	runner, err := hadoop.New(hadoop.Config{Place: p, Conf: v.conf, Client: v.client, Task: v.Task, Queue: v.Queue,
		Memory: v.Memory, Attempts: 2})
	if err != nil {
		v.addError(what, err, "")
		return
	}
	begin := time.Now()
	conf := &batch.Conf{Job: jobName}
	job, _ := Job(conf, p) // it is that
	result, err := runner.Run(ctx, batch.Run{Job: job, Conf: conf, Inputs: []string{dir + "/in"}, Output: dir + "/out",
		Reducers: 2})
	took := time.Since(begin).Round(time.Second)
	switch {
	case err != nil:
		v.addError(what, err, "the containers' logs say more: the ResourceManager's pages, or yarn logs -applicationId")
	case result.Counters.Get("doctor", "in") != records || result.Counters.Get("doctor", "out") != records:
		v.add(what, Failed, "", "of %d records %d were mapped and %d reduced", records, result.Counters.Get("doctor",
			"in"),
			result.Counters.Get("doctor", "out"))
	case result.Failed > 0:
		v.add(what, Warning, "look for the failed attempts in the ResourceManager's pages",
			"it took %v, and %d attempts failed", took, result.Failed)
	default:
		v.add(what, Good, "", "with 2 reducers it took %v", took)
	}
}

const jobName = "doctor"

// Job is the small job, for its tasks.
func Job(c *batch.Conf, _ place.Place) (*batch.Job, error) {
	if c.Job != jobName {
		return nil, fmt.Errorf("there is no job %q", c.Job)
	}
	return &batch.Job{Name: jobName,
		Map: func(_ context.Context, t *batch.Task, r batch.Record, emit batch.Emit) error {
			t.Count("doctor", "in", 1)
			return emit(r.Key, r.Value)
		},
		Reduce: batch.EachKey(func(_ context.Context, t *batch.Task, key []byte, values iter.Seq[[]byte],
			emit batch.Emit) error {
			for v := range values {
				t.Count("doctor", "out", 1)
				if err := emit(key, v); err != nil {
					return err
				}
			}
			return nil
		})}, nil
}
