package hadoop

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"kumo/internal/archive/place"
	"kumo/internal/batch"
)

// A submission is a file in a job's output that exists from before the job is submitted until it has succeeded. If a
// runner is killed, the next one finds the job through it.
type submission struct {
	Fingerprint string // hash of everything that determines the output
	Tag         string // tag of the application, and name of the folder that it commits to
}

const submissionName = "running.json"

// fingerprint hashes the job, the program and the names of the input, but not the start time.
func (j *job) fingerprint(binarySum string) (string, error) {
	conf := *j.Conf
	conf.Start = time.Time{}
	text, err := json.Marshal(conf)
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%q\n%d\n", text, binarySum, j.Inputs, j.Reducers)
	return hex.EncodeToString(h.Sum(nil)), err
}

// uploadBinary uploads the program unless it is present, and returns its URL and digest.
func (j *job) uploadBinary(ctx context.Context) (url, sum string, err error) {
	f, err := os.Open(j.cfg.Binary)
	if err != nil {
		return "", "", err
	}
	defer f.Close()
	h := sha256.New()
	size, err := io.Copy(h, f)
	if err != nil {
		return "", "", err
	}
	sum = hex.EncodeToString(h.Sum(nil))
	name := path.Join(workName, "kumo-"+sum[:16])
	info, err := j.cfg.Place.Stat(ctx, name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size != size {
		if _, err = f.Seek(0, io.SeekStart); err == nil {
			err = j.upload(ctx, name, f)
		}
	}
	if err != nil {
		return "", "", err
	}
	url, err = j.cfg.Place.FileURL(name)
	return url, sum, err
}

func (j *job) upload(ctx context.Context, name string, f io.Reader) error {
	w, err := j.cfg.Place.Create(ctx, name)
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := io.Copy(w, f); err != nil {
		return err
	}
	return w.Close()
}

// findEarlier looks for a job that an earlier process started. It returns nil if there is none. If the job differs from
// this one, it is killed.
func (j *job) findEarlier(ctx context.Context, mine submission) (*status, error) {
	theirs, err := j.readSubmission(ctx)
	if theirs == nil || err != nil {
		return nil, err
	}
	id, state, err := j.byTag(ctx, theirs.Tag)
	switch {
	case err != nil:
		return nil, err
	case id == "" || state == appEnded:
		return nil, nil
	case theirs.Fingerprint == mine.Fingerprint:
		j.cfg.Log("found the job " + id + " of an earlier process")
		return &status{id: id, tag: theirs.Tag, ended: state == appSucceeded, succeeded: state == appSucceeded}, nil
	case state == appRunning:
		return nil, j.kill(ctx, id)
	}
	return nil, nil
}

// readSubmission reads the submission file of an earlier process, or returns nil.
func (j *job) readSubmission(ctx context.Context) (*submission, error) {
	theirs := &submission{}
	err := batch.ReadJSON(ctx, j.cfg.Place, path.Join(j.work, submissionName), theirs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return theirs, err
}

// byTag returns the job of an application that the ResourceManager knows, or "".
func (j *job) byTag(ctx context.Context, tag string) (id string, state appState, err error) {
	out, err := j.cfg.Client.output(ctx, "yarn", "application", "-list", "-appTags", tag, "-appStates", "ALL")
	if err != nil {
		return "", appEnded, err
	}
	id, state = lastApplication(out)
	return id, state, nil
}

// An appState is the state of an application.
type appState int

const (
	appEnded appState = iota // and cannot be taken over
	appRunning
	appSucceeded
)

var applicationLine = regexp.MustCompile(
	`(?m)^application(_\d+_\d+)\s.*?\b(NEW|NEW_SAVING|SUBMITTED|ACCEPTED|RUNNING|FINISHED|FAILED|KILLED)\s+(\w+)`)

// lastApplication returns the job of the last application in the output of "yarn application -list".
func lastApplication(out string) (job string, state appState) {
	for _, m := range applicationLine.FindAllStringSubmatch(out, -1) {
		job = "job" + m[1]
		switch {
		case m[2] == "FINISHED" && m[3] == "SUCCEEDED":
			state = appSucceeded
		case m[2] == "FINISHED" || m[2] == "FAILED" || m[2] == "KILLED":
			state = appEnded
		default:
			state = appRunning
		}
	}
	return job, state
}

// alreadyEnded matches the client's error for a job that ended before it could be killed.
var alreadyEnded = regexp.MustCompile(`already (succeeded|failed|been killed)`)

// kill ends a job, even after ctx has ended. A job that has already ended is not an error.
func (j *job) kill(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	j.cfg.Log("killing the job " + id)
	_, err := j.cfg.Client.output(ctx, "mapred", "job", "-kill", id)
	if err != nil && alreadyEnded.MatchString(err.Error()) {
		return nil
	}
	return err
}

// submit runs Hadoop's client until the job has ended. If the client dies earlier, the job continues without it.
func (j *job) submit(ctx context.Context, mine submission, binary, file string) (*status, error) {
	if err := j.removeOutput(ctx); err != nil {
		return nil, err
	}
	mine.Tag = "kumo-" + strings.ToLower(rand.Text())
	text, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	if err := place.WriteFile(ctx, j.cfg.Place, path.Join(j.work, submissionName), text); err != nil {
		return nil, err
	}
	args, err := j.arguments(ctx, mine.Tag, binary, file)
	if err != nil {
		return nil, err
	}
	s := &status{tag: mine.Tag}
	queued := make(chan string, 1)
	watch := j.watchQueue(ctx, queued)
	err = j.cfg.Client.run(ctx, func(line string) {
		j.cfg.Log(line)
		known := s.id != ""
		if s.read(line) {
			j.reportProgress(*s)
		}
		if s.id != "" && !known {
			queued <- s.id
		}
		if s.begun {
			watch.cancel()
		}
	}, "hadoop", args...)
	watch.stop()
	switch {
	case ctx.Err() != nil:
		return nil, errors.Join(ctx.Err(), j.stop(ctx, s.id, mine.Tag))
	case s.ended:
		return s, nil
	case s.id == "":
		return nil, j.explain(ctx, fmt.Errorf("the cluster did not accept the job: %s: %w",
			cmp.Or(s.why, "no reason from the client"), err))
	}
	return s, nil
}

// stop kills a job that may be known only by its tag.
func (j *job) stop(ctx context.Context, id, tag string) error {
	if id == "" {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		var err error
		if id, _, err = j.byTag(ctx, tag); id == "" {
			return err
		}
	}
	return j.kill(ctx, id)
}

// wait waits until a job has ended. It polls jobs that this process did not submit.
func (j *job) wait(ctx context.Context, s *status) error {
	for tries := 0; !s.ended; {
		var out string
		out, err := j.cfg.Client.output(ctx, "mapred", "job", "-status", s.id)
		switch {
		case ctx.Err() != nil:
			return errors.Join(ctx.Err(), j.kill(ctx, s.id))
		case err != nil:
			if tries++; tries < 3 {
				break
			}
			// Only the history server knows completed jobs. It may be missing, or not know the job yet.
			switch id, state, lost := j.byTag(ctx, s.tag); {
			case lost == nil && id != "" && state != appRunning:
				s.ended, s.succeeded = true, state == appSucceeded
				s.why = cmp.Or(s.why, j.diagnostics(ctx, s.id))
			case tries == 6:
				return fmt.Errorf("cannot query the state of %s: %w", s.id, err)
			}
		default:
			tries = 0
			now := status{id: s.id, tag: s.tag}
			for line := range strings.Lines(out) {
				now.read(strings.TrimRight(line, "\n"))
			}
			*s = now
			j.reportProgress(*s)
		}
		if !s.ended {
			if err := place.Sleep(ctx, pollInterval); err != nil {
				return errors.Join(err, j.kill(ctx, s.id))
			}
		}
	}
	j.failed = s.failed()
	if !s.succeeded {
		return j.failureReason(ctx, s.why)
	}
	return nil
}

// arguments returns the arguments of the command hadoop. Properties are passed in a file, as a list of inputs may
// exceed the maximum length of an argument.
func (j *job) arguments(ctx context.Context, tag, binary, file string) ([]string, error) {
	inputs, err := j.inputs(ctx)
	if err != nil {
		return nil, err
	}
	output, err := j.cfg.Place.FileURL(j.committed(tag))
	if err != nil {
		return nil, err
	}
	properties := j.properties(tag)
	properties["mapreduce.input.fileinputformat.inputdir"] = strings.Join(inputs[1:], ",")
	conf := filepath.Join(j.temp, "job.xml")
	if err := writeProperties(conf, properties); err != nil {
		return nil, err
	}
	args := []string{"jar", j.cfg.Client.Streaming, "-conf", conf,
		"-files", binary + "#kumo,file://" + filepath.ToSlash(file) + "#" + taskFileName,
		"-io", "rawbytes", "-input", inputs[0], "-output", output,
		// Each task is a JVM, and rounds produce many small files: several files share a task.
		"-inputformat", "org.apache.hadoop.mapred.lib.CombineSequenceFileInputFormat",
		"-outputformat", "org.apache.hadoop.mapred.lib.NullOutputFormat", // tasks write their files themselves
		"-cmdenv", "GOMEMLIMIT=" + strconv.Itoa(j.memory().kumo) + "MiB",
		"-mapper", j.task(roleMap)}
	if !j.Job.Reduces() {
		return append(args, "-reducer", "NONE"), nil
	}
	args = append(args, "-partitioner", partitioner, "-reducer", j.task(roleReduce))
	if j.Job.Combine != nil {
		args = append(args, "-combiner", j.task(roleCombine))
	}
	return args, nil
}

// task returns the command line of a task.
func (j *job) task(role string) string {
	return strings.Join(append(append([]string{"kumo"}, j.cfg.Task...), role, taskFileName), " ")
}

// inputs returns the URLs of the input as patterns; an empty file if there is no input.
func (j *job) inputs(ctx context.Context) (urls []string, err error) {
	names := j.Inputs
	if len(names) == 0 {
		empty := path.Join(j.work, "empty")
		if err := batch.WriteFile(ctx, j.cfg.Place, empty, func(batch.Emit) error { return nil }); err != nil {
			return nil, err
		}
		names = []string{empty}
	}
	for _, name := range names {
		url, err := j.cfg.Place.FileURL(name)
		if err != nil {
			return nil, err
		}
		urls = append(urls, noPattern.Replace(url))
	}
	return urls, nil
}

var noPattern = strings.NewReplacer(`\`, `\\`, ",", `\,`, "{", `\{`, "}", `\}`, "[", `\[`, "]", `\]`, "*", `\*`, "?",
	`\?`)

// splitSize is the maximum input of a mapper in bytes.
const splitSize = 128 << 20

// properties returns the job's properties, which override the cluster's.
func (j *job) properties(tag string) map[string]string {
	p := map[string]string{
		"mapreduce.job.name": strings.TrimSpace(fmt.Sprintf("kumo %s %s round %d", j.Job.Name,
			j.Conf.Date, j.Conf.Round)),
		"mapreduce.job.tags":                            tag,
		"mapreduce.job.reduces":                         "0",
		"mapreduce.map.maxattempts":                     strconv.Itoa(j.cfg.Attempts),
		"mapreduce.reduce.maxattempts":                  strconv.Itoa(j.cfg.Attempts),
		"mapreduce.map.failures.maxpercent":             "0",
		"mapreduce.input.fileinputformat.split.maxsize": strconv.Itoa(splitSize),
		// Make the output of tasks visible when the job succeeds, not one by one.
		"mapreduce.fileoutputcommitter.algorithm.version":  "1",
		"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
		"mapreduce.partition.keypartitioner.options":       codeChars,
		"mapreduce.map.output.key.field.separator":         "\t",
		"stream.jobconf.truncate.limit":                    "4096", // tasks get all properties as environment variables
	}
	if j.Job.Reduces() {
		p["mapreduce.job.reduces"] = strconv.Itoa(j.Reducers)
	}
	if j.Job.WaitsForServers { // no speculative tasks: they would request pages from servers twice
		p["mapreduce.map.speculative"], p["mapreduce.reduce.speculative"] = "false", "false"
	}
	if j.cfg.Queue != "" {
		p["mapreduce.job.queuename"] = j.cfg.Queue
	}
	m := j.memory()
	for _, kind := range []string{"map", "reduce"} {
		p["mapreduce."+kind+".java.opts"] = javaOpts(j.cfg.Conf.Get("mapreduce."+kind+".java.opts"),
			j.cfg.Conf.Get("mapred.child.java.opts"), m.heap)
		if j.cfg.Memory > 0 {
			p["mapreduce."+kind+".memory.mb"] = strconv.Itoa(j.cfg.Memory)
		}
	}
	return p
}

// A memoryShare is the division of a container, in MiB.
type memoryShare struct{ heap, kumo int }

// memory divides a container: the JVM's heap, kumo, and an eighth for the JVM's other memory.
func (j *job) memory() memoryShare {
	all := j.cfg.Memory
	if all == 0 {
		all = 1024
		for _, kind := range []string{"map", "reduce"} {
			if n, err := strconv.Atoi(j.cfg.Conf.Get("mapreduce." + kind + ".memory.mb")); err == nil && n > 0 {
				all = min(all, n)
			}
		}
	}
	return memoryShare{heap: all / 2, kumo: all * 3 / 8}
}

var heapOption = regexp.MustCompile(`(^|\s)-Xmx\S+`)

// javaOpts returns the cluster's JVM options for a task, with a heap that leaves room for kumo.
func javaOpts(cluster, older string, heap int) string {
	options := heapOption.ReplaceAllString(cmp.Or(cluster, older), "") + fmt.Sprintf(" -Xmx%dm", heap)
	return strings.TrimSpace(options)
}

// writeProperties writes a Hadoop configuration file, without empty values.
func writeProperties(name string, properties map[string]string) error {
	type property struct {
		Name  string `xml:"name"`
		Value string `xml:"value"`
	}
	var file struct {
		XMLName    xml.Name   `xml:"configuration"`
		Properties []property `xml:"property"`
	}
	for name, value := range properties {
		if value != "" {
			file.Properties = append(file.Properties, property{name, value})
		}
	}
	text, err := xml.Marshal(file)
	if err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o644)
}
