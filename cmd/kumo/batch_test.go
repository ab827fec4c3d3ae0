package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kumo/internal/archive/place"
	"kumo/internal/archive/place/file"
	"kumo/internal/base/vfs"
	"kumo/internal/batch"
	"kumo/internal/batch/collection"
	"kumo/internal/batch/stream"
	"kumo/internal/lab/synthweb"
)

const batchDay = "2026-11-21"

// A batchRun is a made-up web, and a collection of it in its own storage location.
type batchRun struct {
	*testing.T
	config string
	place  *file.Place
	col    *collection.Collection
}

func newBatchRun(t *testing.T, seed string) *batchRun {
	t.Helper()
	dir := t.TempDir()
	b := &batchRun{T: t, config: filepath.Join(dir, "en.yaml")}
	text := fmt.Sprintf("code: en\nseeds: [%q]\nscope: any\ndepth: 30\ninterval: 0s\nlanguage: {share: 0, "+
		"confidence: 0}\n", seed)
	var err error
	if err = os.WriteFile(b.config, []byte(text), 0o600); err == nil {
		b.place, err = file.Open(filepath.Join(dir, "place"), vfs.OS)
	}
	if err == nil {
		b.col, err = collection.Load(b.config)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *batchRun) command(ctx context.Context) *exec.Cmd {
	return exec.CommandContext(ctx, kumoProgram(b.T), "batch", "run", "--allow-private", "--ip-delay", "0", "--date",
		batchDay,
		"--reducers", "3", "--place", b.place.Dir(), b.config)
}

// killAtNext starts a run and kills the process when a job begins that is not in met. It reports whether a job did.
func (b *batchRun) killAtNext(met map[string]bool) bool {
	b.Helper()
	cmd := b.command(b.Context())
	cmd.Stdout = io.Discard
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	killed := false
	var said bytes.Buffer
	for lines := bufio.NewScanner(io.TeeReader(out, &said)); lines.Scan(); {
		_, job, begins := strings.Cut(lines.Text(), " msg=job ")
		if !begins || met[job] {
			continue
		}
		met[job] = true // also skips a job that began before the signal arrived
		if killed {
			continue
		}
		killed = true
		if err := cmd.Process.Kill(); err != nil {
			b.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil && !killed {
		b.Fatalf("%v\n%s", err, said.String())
	}
	return killed
}

func (b *batchRun) run() {
	b.Helper()
	if out, err := b.command(b.Context()).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
}

// pages returns the digests of the day's documents by URL.
func (b *batchRun) pages() map[string]string {
	b.Helper()
	names, err := batch.DayFiles(b.Context(), b.place, b.col, "doc", batchDay)
	if err != nil {
		b.Fatal(err)
	}
	all := map[string]string{}
	for _, name := range names {
		for r, err := range batch.ReadFile(b.Context(), b.place, name) {
			if err != nil {
				b.Fatal(err)
			}
			d, err := batch.ReadDocument(r.Key, r.Value)
			if err != nil {
				b.Fatal(err)
			}
			if _, twice := all[d.URL]; twice {
				b.Errorf("%s is there twice", d.URL)
			}
			all[d.URL] = fmt.Sprintf("%d %x %s %d %s", d.Status, d.Digest, d.RedirectTo, d.Depth, d.Title)
		}
	}
	return all
}

func serveBatchWeb(t *testing.T) string {
	t.Helper()
	cfg := synthweb.Clean(3, 3, 25)
	cfg.ByAddress = true
	server, err := synthweb.Serve(t.Context(), synthweb.New(cfg), synthweb.ServeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return server.SeedURLs()[0]
}

// TestABatchRunThatIsKilledGoesOn kills a run in each of its jobs, and then lets it end. The result is the same as that
// of a run without kills.
func TestABatchRunThatIsKilledGoesOn(t *testing.T) {
	t.Parallel()
	seed := serveBatchWeb(t)
	whole := newBatchRun(t, seed)
	whole.run()
	want := whole.pages()
	b, kills := newBatchRun(t, seed), 0
	for met := map[string]bool{}; b.killAtNext(met); kills++ {
	}
	if kills < 3 { // some jobs are over before the signal arrives
		t.Errorf("%d kills", kills)
	}
	b.run()
	if got := b.pages(); !maps.Equal(got, want) || len(want) < 25 {
		t.Errorf("%d documents, not %d, or others", len(got), len(want))
	}
	if left, err := batch.ListFiles(t.Context(), b.place, batch.WorkFolder); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// TestTasksByThemselvesDoAsTheJob runs a map task of parse as Hadoop Streaming would, and compares its output with the
// job's.
func TestTasksByThemselvesDoAsTheJob(t *testing.T) {
	b := newBatchRun(t, serveBatchWeb(t))
	b.run()
	conf := filepath.Join(t.TempDir(), "conf.json")
	data, err := json.Marshal(&batch.Conf{Job: batch.JobParse, Date: batchDay,
		Collections: []*collection.Collection{b.col},
		Reducers:    1, Fetching: batch.Fetching{Agent: "kumo"}})
	if err == nil {
		err = os.WriteFile(conf, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	var in bytes.Buffer
	w := stream.NewWriter(&in)
	names, err := batch.DayFiles(t.Context(), b.place, b.col, "doc", batchDay)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		for r, err := range batch.ReadFile(t.Context(), b.place, name) {
			if err := errors.Join(err, w.Write(r.Key, r.Value)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	again := in.Bytes()
	cmd := exec.Command(kumoProgram(t), "batch", "task", "parse", "map", "--conf", conf)
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(again), &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &said)
	}
	if !strings.Contains(said.String(), "reporter:counter:en,links,") {
		t.Errorf("no counters are told:\n%s", &said)
	}
	want := b.outLinks()
	got := map[string]string{}
	for in := stream.NewReader(&out); ; {
		key, value, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got[string(key)] = string(value)
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s: %q, not %q", k, got[k], v)
		}
	}
	if !maps.Equal(got, want) || len(got) < 25 {
		t.Errorf("%d records came out of the task, %d of the job, or others", len(got), len(want))
	}

	// outDir files of a place
	cmd = exec.Command(kumoProgram(t), "batch", "task", "parse", "map", "--conf", conf, "--place", b.place.Dir(),
		"--output",
		"attempt")
	cmd.Stdin, cmd.Env = bytes.NewReader(again), append(os.Environ(), "mapreduce_task_partition=7",
		"mapreduce_task_attempt_id=attempt_1700000000000_0001_m_000007_2")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	left, err := batch.ListFiles(t.Context(), b.place, "attempt")
	if err != nil || !slices.Equal(left, []string{"attempt/crawler_en/out/part-00007"}) {
		t.Errorf("%v %v", left, err)
	}
}

// A task of Hadoop Streaming gets its field rules from its Conf, and makes the same records as the job.
func TestATaskMakesTheRecordsOfTheJob(t *testing.T) {
	b := newBatchRun(t, serveBatchWeb(t))
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	const text = "- {name: page, url: http, fields: {title: title, none: .nowhere, links: {css: a, attr: href, list: " +
		"true}}}\n"
	config, err := os.OpenFile(b.config, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = fmt.Fprintf(config, "fields: %s\n", rules)
		err = errors.Join(err, config.Close(), os.WriteFile(rules, []byte(text), 0o600))
	}
	if err == nil {
		b.col, err = collection.Load(b.config)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.run()
	conf := filepath.Join(t.TempDir(), "conf.json")
	data, err := json.Marshal(&batch.Conf{Job: batch.JobXML, Date: batchDay, Collections: []*collection.Collection{b.col},
		Reducers: 1,
		Fetching: batch.Fetching{Agent: "kumo"}})
	if err == nil {
		err = errors.Join(os.Remove(rules), os.WriteFile(conf, data, 0o600)) // another machine does not have the file
	}
	names, derr := batch.DayFiles(t.Context(), b.place, b.col, "doc", batchDay)
	if err = errors.Join(err, derr); err != nil {
		t.Fatal(err)
	}
	var in bytes.Buffer
	w := stream.NewWriter(&in)
	for _, name := range names {
		for r, err := range batch.ReadFile(t.Context(), b.place, name) {
			if err := errors.Join(err, w.Write(r.Key, r.Value)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(kumoProgram(t), "batch", "task", "xml", "map", "--conf", conf, "--place", b.place.Dir(),
		"--output", "attempt")
	cmd.Stdin = &in
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, folder := range []string{"fields", "tally"} {
		got, want := b.lines("attempt/crawler_en/"+folder), b.lines(batch.DayFolder(b.col, folder, batchDay))
		if !slices.Equal(got, want) || len(want) < 25 {
			t.Errorf("%s: %d lines came out of the task, %d of the job, or others", folder, len(got), len(want))
		}
	}
	r, err := batch.ReadFieldsReport(t.Context(), b.place, b.col, batchDay)
	if err != nil || r == nil || len(r.Day) == 0 || r.Day[0].Rule != "page" || !strings.HasPrefix(r.Day[0].Host,
		"http://") {
		t.Fatalf("%+v, %v", r, err)
	}
	missed := int64(0)
	for _, c := range r.Day {
		for _, f := range c.Fields {
			if f.Field == "none" {
				missed += f.Missed
			}
		}
	}
	if int(missed) != len(b.lines(batch.DayFolder(b.col, "tally", batchDay))) {
		t.Errorf("a field that no page has was missed on %d", missed)
	}
}

// lines returns the lines of all parts in a folder, in order.
func (b *batchRun) lines(dir string) (all []string) {
	b.Helper()
	infos, err := b.place.List(b.Context(), dir)
	if err != nil {
		b.Fatal(err)
	}
	for _, i := range infos {
		if !strings.HasPrefix(i.Name, "part-") {
			continue
		}
		data, err := place.ReadFile(b.Context(), b.place, dir+"/"+i.Name)
		if err != nil {
			b.Fatal(err)
		}
		all = slices.AppendSeq(all, strings.Lines(string(data)))
	}
	slices.Sort(all)
	return all
}

// outLinks returns the values of out/ by key.
func (b *batchRun) outLinks() map[string]string {
	b.Helper()
	all := map[string]string{}
	err := place.Walk(b.Context(), b.place, batch.DayFolder(b.col, "out", batchDay), func(name string,
		_ place.Info) error {
		for r, err := range batch.ReadFile(b.Context(), b.place, name) {
			if err != nil {
				return err
			}
			all[string(r.Key)] = string(r.Value)
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return all
}
