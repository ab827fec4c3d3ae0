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
	"time"

	"golang.org/x/sync/errgroup"

	"kumo/internal/app/job"
	"kumo/internal/app/wire/sinks"
	"kumo/internal/archive/sink/follow"
	"kumo/internal/archive/sink/stdout"
	"kumo/internal/base/stats"
)

// A followerGroup sends a crawl's records to its sinks while it runs.
type followerGroup struct {
	followers []*follow.Follower
	index     *follow.Follower // nil without an index
	dir       string
	group     errgroup.Group
	cancel    context.CancelFunc
}

func (o *options) follow(ctx context.Context, show *console) (*followerGroup, error) {
	f := &followerGroup{dir: o.Job.Dir, cancel: func() {}}
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
		f.followers, o.Job.Stores = append(f.followers, f.index), append(o.Job.Stores, f.index)
	}
	for n, at := range o.Sinks {
		if slices.Contains(o.Sinks[:n], at) {
			continue
		}
		one, err := sinks.Follow(ctx, o.Job.Dir, at, o.SinkWait, func(err error) {
			show.log.Warn("the sink accepts no records: they wait in the crawl's folder, and kumo retries", "why",
				err.Error())
		}, func() { show.log.Warn("the sink accepts records again") })
		if err != nil {
			return nil, err
		}
		f.followers = append(f.followers, one)
		o.Job.Stores = append(o.Job.Stores, one)
	}
	if len(f.followers) > 0 {
		o.Job.Sinks = f.status
	}
	return f, nil
}

func indexErrorLogger(show *console) func(error) {
	return func(err error) {
		show.log.Warn("the index accepts no pages: they wait in the folder; kumo retries or rebuilds the index", "why",
			err.Error())
	}
}

func (f *followerGroup) start(ctx context.Context) error {
	for _, one := range f.followers {
		if err := one.Begin(); err != nil {
			return err
		}
	}
	ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for _, one := range f.followers {
		f.group.Go(func() error { return one.Run(ctx) })
	}
	return nil
}

// finalFlushTimeout limits how long a sink may take the remaining records after the user has stopped a crawl.
const finalFlushTimeout = 5 * time.Second

// finish waits until the sinks have all records or have failed. If the user stops the crawl, it waits at most
// finalFlushTimeout.
func (f *followerGroup) finish(ctx context.Context) error {
	for _, one := range f.followers {
		one.End()
	}
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(finalFlushTimeout, f.cancel) })
	defer stop()
	err := f.group.Wait()
	f.cancel()
	return follow.Advise(err, f.dir)
}

func (f *followerGroup) status() (all []stats.Sink) {
	for _, one := range f.followers {
		all = append(all, one.Status())
	}
	return all
}

func (f *followerGroup) printSinks(w io.Writer) {
	for _, one := range f.followers {
		s := one.Status()
		if one == f.index {
			printIndexed(w, s)
			continue
		}
		text := fmt.Sprintf("%s sent to %s", stats.Count(s.Sent, "records"), s.Sink)
		if s.Waiting > 0 {
			text += fmt.Sprintf(", %d wait", s.Waiting)
		}
		fmt.Fprintf(w, "  %-9s %s\n", "sink", text)
	}
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
