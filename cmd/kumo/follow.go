package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"kumo/internal/app/job"
	"kumo/internal/app/wire/sinks"
	"kumo/internal/archive/sink/follow"
	"kumo/internal/archive/sink/stdout"
	"kumo/internal/base/stats"
	"kumo/internal/view/telemetry"
)

// A followerGroup sends a crawl's records to its sinks, and to its index, while it runs.
type followerGroup struct {
	*sinks.Group
	index *follow.Follower // nil without an index
}

func (o *options) follow(ctx context.Context, show *console, exporter *telemetry.Exporter) (*followerGroup, error) {
	f := &followerGroup{Group: sinks.NewGroup(o.Job.Dir)}
	if len(o.Sinks) > 0 && o.Job.Dir == "" {
		return nil, usagef("--sink cannot be combined with -o -: sinks read records from the crawl's folder")
	}
	if len(o.Sinks) > 0 && !o.Job.Writes(job.JSONL) {
		return nil, usagef("--sink needs pages.jsonl: add jsonl to --format")
	}
	if o.Index {
		if o.Job.Dir == "" || !o.Job.Writes(job.JSONL) {
			return nil, usagef("--index needs a folder with pages.jsonl: add jsonl to --format")
		}
		f.index = sinks.FollowIndex(o.Job.Dir, indexErrorLogger(show))
		f.Add(f.index)
		o.Job.Stores = append(o.Job.Stores, f.index)
	}
	for n, at := range o.Sinks {
		if slices.Contains(o.Sinks[:n], at) {
			continue
		}
		one, err := sinks.Follow(ctx, &o.Job, at, sinks.Watch{
			Failed: func(_ string, err error) {
				show.log.Warn("the sink accepts no records: they wait in the crawl's folder, and kumo retries", "why",
					err.Error())
			},
			Works:    func(string) { show.log.Warn("the sink accepts records again") },
			Attempt:  exporter.TraceSending(),
			Patience: o.SinkWait,
		})
		if err != nil {
			return nil, err
		}
		f.Add(one)
		o.Job.Stores = append(o.Job.Stores, one)
	}
	if f.Len() > 0 {
		o.Job.Sinks = f.Status
	}
	return f, nil
}

func indexErrorLogger(show *console) func(error) {
	return func(err error) {
		show.log.Warn("the index accepts no pages: they wait in the folder; kumo retries or rebuilds the index", "why",
			err.Error())
	}
}

func (f *followerGroup) print(w io.Writer) {
	for _, s := range f.Status() {
		if f.index != nil && s.Sink == f.index.Name() {
			printIndexed(w, s)
		} else {
			printSink(w, &s)
		}
	}
}

// printSink prints the result of a sink at the end of a run.
func printSink(w io.Writer, s *stats.Sink) {
	text := fmt.Sprintf("%s sent to %s", stats.Count(s.Sent, "records"), s.Sink)
	if s.Waiting > 0 {
		text += fmt.Sprintf(", %d wait", s.Waiting)
	}
	fmt.Fprintf(w, "  %-9s %s\n", "sink", text)
}

func printIndexed(w io.Writer, s stats.Sink) {
	text := stats.Count(s.Sent, "pages") + " indexed: kumo search"
	if s.Waiting > 0 {
		text = fmt.Sprintf("%s indexed, %d wait", stats.Count(s.Sent, "pages"), s.Waiting)
	}
	fmt.Fprintf(w, "  %-9s %s\n", "index", text)
}

// isSinkBehind reports whether an error means that a crawl is done but a sink lacks some of its records.
func isSinkBehind(err error) bool {
	_, is := errors.AsType[*follow.BacklogError](err)
	return is
}

// pipe runs kumo crawl -o -: it writes pages to standard output, messages to standard error, and stores nothing.
func (o *options) pipe(ctx context.Context) error {
	signal.Ignore(syscall.SIGPIPE) // the write returns the error
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	o.Job.Stores = append(o.Job.Stores, follow.NewPipe(stdout.Open(os.Stdout), end))
	err := o.crawl(ctx, os.Stderr)
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, stdout.ErrClosed):
		return nil // the reader has closed the pipe
	case cause != nil && !errors.Is(cause, context.Canceled):
		return cause
	}
	return err
}
