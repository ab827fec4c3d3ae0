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

// A State is the severity of a finding.
type State int

// States of findings.
const (
	Good    State = iota
	Warning       // jobs run, with limitations
	Failed        // jobs do not run
)

// A Finding is the result of one check.
type Finding struct {
	Subject string // the checked object, in a word or two
	State   State
	Detail  string
	Advice  string // how to fix it; "" if nothing needs to be done
}

// A Config defines the checks.
type Config struct {
	ConfDir   string // folder of Hadoop's configuration; default from the environment
	URL       string // the crawl's folder on HDFS; default hdfs:///user/NAME
	Home      string // installation of Hadoop's commands
	Streaming string // path of the Streaming jar, see hadoop.FindClient
	Memory    int    // MiB per task; default from the cluster's configuration
	Queue     string
	Job       bool     // run a small job, too
	Task      []string // arguments that make this program a task of that job, see hadoop.Config
}

// A checker is one run of all checks.
type checker struct {
	Config
	report func(Finding)
	worst  State
	conf   hadoopconf.Conf
	client hadoop.Client
	web    *http.Client
}

// Check runs all checks, reports each finding, and returns the worst state. Checks that depend on a missing part are
// skipped.
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

// addError adds an error as a finding, with advice.
func (v *checker) addError(what string, err error, do string) {
	v.add(what, Failed, cmp.Or(advice.Of(err), do), "%v", err)
}

func (v *checker) configuration() bool {
	const what = "configuration"
	dir := cmp.Or(v.ConfDir, hadoopconf.Dir())
	if dir == "" {
		v.add(what, Failed, "copy the folder etc/hadoop from a machine of the cluster, and set HADOOP_CONF_DIR to it",
			"%v", hadoopconf.ErrNotFound)
		return false
	}
	var err error
	if v.conf, err = hadoopconf.Load(dir); err != nil {
		v.addError(what, err, "copy the folder etc/hadoop from a machine of the cluster, and set HADOOP_CONF_DIR to it")
		return false
	}
	v.add(what, Good, "", "%s; file system %s", dir, cmp.Or(v.conf.Get("fs.defaultFS"), "not named"))
	if name := v.conf.Get("mapreduce.framework.name"); name != "yarn" {
		v.add(what, Failed, "set mapreduce.framework.name to yarn in mapred-site.xml, or copy that file from the "+
			"cluster",
			"mapreduce.framework.name is %q: jobs would run only on this machine", cmp.Or(name, "local"))
	}
	if v.conf.Secure() {
		v.add("Kerberos", Warning,
			"provide KRB5_CLIENT_KTNAME and /etc/krb5.conf on all nodes, with a keytab readable by the user of the "+
				"tasks",
			"required by the cluster: tasks write to HDFS directly, with a keytab of their node instead of "+
				"Hadoop's tokens")
	}
	return true
}

// commands checks the commands on this machine.
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
		v.add("streaming", Warning, "set the jar that belongs to the client", "%s does not belong to Hadoop %s",
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
		v.addError("Java", err, "install a JDK or JRE, 8 or later, and set JAVA_HOME if it is not on PATH")
		return false
	}
	m := javaVersion.FindSubmatch(out)
	if m == nil {
		v.add("Java", Warning, "", "unexpected version output of %s: %.100q", name, out)
		return true
	}
	if n, _ := strconv.Atoi(string(m[1])); n < minJava {
		v.add("Java", Failed, "install a JDK or JRE, 8 or later", "%s has version %d", name, n)
		return false
	}
	v.add("Java", Good, "", "%s", strings.TrimSpace(strings.SplitN(string(out), "\n", 2)[0]))
	return true
}

// fileSystem writes a file to HDFS, reads it, renames it and removes it. This needs the NameNode, DataNodes and
// permissions.
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
		v.addError(what, err, "hdfs dfsadmin -report lists the DataNodes that are alive; their ports must be "+
			"reachable from here")
		_ = p.Close() // HDFS does not work anyway
		return nil
	}
	state, do := Good, ""
	if left < total/20 {
		state, do = Warning, "free space or add DataNodes"
	}
	v.add(what, state, do, "%s is writable and readable by %s; %d of %d GB are free", p.URL(), p.User(), left/1e9,
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
		err = fmt.Errorf("%s: a file was read back with different content", p.URL())
	}
	return errors.Join(err, p.Remove(ctx, dir))
}

// history checks the JobHistoryServer, which knows completed jobs.
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
			"no JobHistoryServer is configured: a job that ends while kumo is not running cannot be "+
				"taken over, and runs again")
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

// job runs a small job. It shows whether tasks start, whether Java and the shuffle work on the nodes, and whether this
// program runs there.
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
	job, _ := Job(conf, p) // the Conf is valid
	result, err := runner.Run(ctx, batch.Run{Job: job, Conf: conf, Inputs: []string{dir + "/in"}, Output: dir + "/out",
		Reducers: 2})
	took := time.Since(begin).Round(time.Second)
	switch {
	case err != nil:
		v.addError(what, err, "see the containers' logs: the ResourceManager's web pages, or yarn logs -applicationId")
	case result.Counters.Get("doctor", "in") != records || result.Counters.Get("doctor", "out") != records:
		v.add(what, Failed, "", "of %d records, %d were mapped and %d reduced", records, result.Counters.Get("doctor",
			"in"),
			result.Counters.Get("doctor", "out"))
	case result.Failed > 0:
		v.add(what, Warning, "look for the failed attempts in the ResourceManager's web pages",
			"it took %v, and %d attempts failed", took, result.Failed)
	default:
		v.add(what, Good, "", "with 2 reducers it took %v", took)
	}
}

const jobName = "doctor"

// Job returns the small job, for its tasks.
func Job(c *batch.Conf, _ place.Place) (*batch.Job, error) {
	if c.Job != jobName {
		return nil, fmt.Errorf("unknown job %q", c.Job)
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
