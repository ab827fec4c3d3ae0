package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	wirebatch "kumo/internal/app/wire/batch"
	"kumo/internal/app/wire/places"
	"kumo/internal/archive/place"
	"kumo/internal/batch"
	"kumo/internal/batch/hadoop"
	"kumo/internal/batch/stream"
)

const batchTaskLong = `Run one task of a job, as started by Hadoop Streaming. JOB is crawl, parse, optimize, merge or
xml, and its configuration is in a JSON file.

Records are read from standard input and written to standard output as rawbytes: key and value, each
with its length in four bytes, big-endian, followed by its bytes. A combiner and a reducer get them
sorted by key. With --output, the output of a reducer, or of a mapper in a job without reducers, is
written to files instead: FOLDER/part-00000, as routed by the job. They appear at the end. Counters
and status are lines on standard error: reporter:counter:GROUP,NAME,N and reporter:status:TEXT.
Hadoop accepts 120 counters per job, so charsets, languages and reasons are summed, and collections
after the third are combined.

The environment identifies the task: mapreduce_task_partition, mapreduce_task_attempt_id.`

type batchTaskOptions struct{ conf, place, output string }

func batchTaskCommand() *cobra.Command {
	o := &batchTaskOptions{}
	kinds := []string{"map", "combine", "reduce"}
	cmd := &cobra.Command{Use: "task JOB map|combine|reduce", Short: "Run one task over pipes, for Hadoop Streaming",
		Long: batchTaskLong,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 || !slices.Contains(kinds, args[1]) {
				return usagef("a job and one of %s are wanted", strings.Join(kinds, ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args[0], args[1], os.Stdin, os.Stdout, cmd.ErrOrStderr())
		}}
	f := cmd.Flags()
	f.StringVar(&o.conf, "conf", "conf.json", "the job's configuration, a JSON `FILE`")
	f.StringVar(&o.place, "place", "", "the `URL` of the storage location with the job's files")
	f.StringVar(&o.output, "output", "", "write the job's output to this `FOLDER` of --place")
	return cmd
}

func (o *batchTaskOptions) run(ctx context.Context, name, kind string, in io.Reader, out, errs io.Writer) (err error) {
	job, conf, err := o.job(ctx, name)
	if err != nil {
		return err
	}
	reporter := stream.NewReporter(errs, conf)
	task := taskOf(os.Getenv, reporter.Status)
	stop := reporter.Watch(task.Counters())
	defer func() { err = errors.Join(err, stop()) }()
	w := stream.NewWriter(out)
	records := stream.NewReader(in)
	final := kind == "reduce" || kind == "map" && !job.Reduces()
	if final && o.output != "" {
		return o.commit(ctx, job, task, func(emit batch.Emit) error { return runTask(ctx, job, task, kind, records, emit) })
	}
	return errors.Join(runTask(ctx, job, task, kind, records, w.Write), w.Flush())
}

func (o *batchTaskOptions) job(ctx context.Context, name string) (*batch.Job, *batch.Conf, error) {
	data, err := os.ReadFile(o.conf)
	if err != nil {
		return nil, nil, usagef("%w", err)
	}
	conf := &batch.Conf{}
	if err := json.Unmarshal(data, conf); err != nil {
		return nil, nil, usagef("%s: %w", o.conf, err)
	}
	if conf.Job != name {
		return nil, nil, usagef("%s is the configuration of job %q, not %q", o.conf, conf.Job, name)
	}
	deps := batch.Deps{Text: pageTexts(), Documents: sharedDocuments()}
	if o.place != "" {
		if deps.Place, err = places.Open(ctx, o.place); err != nil {
			return nil, nil, err
		}
	} else if len(conf.Rules) > 0 || o.output != "" {
		return nil, nil, usagef("give --place: the job reads files, or has an --output")
	}
	job, err := batch.NewJob(conf, deps)
	return job, conf, err
}

// commit writes the task's output.
func (o *batchTaskOptions) commit(ctx context.Context, job *batch.Job, t *batch.Task,
	run func(batch.Emit) error) error {
	at, err := places.Open(ctx, o.place)
	if err != nil {
		return err
	}
	sink := batch.NewSink(ctx, at, o.output, t.Index, job)
	defer sink.Abort()
	if err := run(sink.Emit); err != nil {
		return err
	}
	return sink.Commit()
}

func runTask(ctx context.Context, job *batch.Job, t *batch.Task, kind string, in *stream.Reader,
	emit batch.Emit) error {
	switch kind {
	case "map":
		return stream.Map(ctx, job, t, in, emit)
	case "combine":
		return stream.Combine(ctx, job, in, emit)
	}
	if !job.Reduces() {
		return usagef("job %s has no reducers", job.Name)
	}
	return stream.Reduce(ctx, job, t, in, emit)
}

// taskOf returns the task described by Hadoop's environment: its partition, the number of partitions, and the attempt,
// which is the last number of attempt_1700000000000_0001_r_000002_0.
func taskOf(env func(string) string, status func(string)) *batch.Task {
	number := func(text string) int {
		n, err := strconv.Atoi(text)
		if err != nil {
			return 0
		}
		return n
	}
	id := env("mapreduce_task_attempt_id")
	of := max(number(env("mapreduce_job_reduces")), 1)
	if strings.Contains(id, "_m_") {
		of = max(number(env("mapreduce_job_maps")), 1)
	}
	return batch.NewTask(number(env("mapreduce_task_partition")), of, number(id[strings.LastIndexByte(id, '_')+1:]),
		status)
}

// batchAttemptCommand is the hidden command that a Hadoop cluster starts for a task. The file describes the task
// completely.
func batchAttemptCommand() *cobra.Command {
	return &cobra.Command{Use: wirebatch.HadoopTask[1] + " ROLE FILE", Hidden: true, Args: cobra.ExactArgs(2),
		Short: "Run an attempt of a task on a Hadoop cluster",
		RunE: func(cmd *cobra.Command, args []string) error {
			jobs := func(conf *batch.Conf, at place.Place) (*batch.Job, error) {
				return batch.NewJob(conf, batch.Deps{Place: at, Text: pageTexts(), Documents: sharedDocuments()})
			}
			return hadoop.Task(cmd.Context(), args[0], args[1], jobs,
				hadoop.Pipes{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr()})
		}}
}
