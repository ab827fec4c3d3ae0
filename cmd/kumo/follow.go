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

// A following is the sinks that are sent a crawl's records while it runs.
type followerGroup struct {
	followers []*follow.Follower
	index     *follow.Follower // nil: there is none
	dir       string
	group     errgroup.Group
	cancel    context.CancelFunc
}

func (o *options) follow(ctx context.Context, show *console) (*followerGroup, error) {
	f := &followerGroup{dir: o.Job.Dir, cancel: func() {}}
	if len(o.Sinks) > 0 && o.Job.Dir == "" {
		return nil, usagef("--sink does not go with -o -: what is sent is read from a crawl's folder")
	}
	if len(o.Sinks) > 0 && !o.Job.Writes(job.JSONL) {
		return nil, usagef("--sink needs pages.jsonl, which --format has to name: jsonl")
	}
	if o.Index {
		if o.Job.Dir == "" || !o.Job.Writes(job.JSONL) {
			return nil, usagef("--index needs a folder with pages.jsonl, which --format has to name: jsonl")
		}
		f.index = sinks.FollowIndex(o.Job.Dir, indexErrorLogger(show))
		f.followers, o.Job.Stores = append(f.followers, f.index), append(o.Job.Stores, f.index)
	}
	for n, at := range o.Sinks {
		if slices.Contains(o.Sinks[:n], at) {
			continue
		}
		one, err := sinks.Follow(ctx, o.Job.Dir, at, o.SinkWait, func(err error) {
			show.log.Warn("a sink takes no records: they wait in the crawl's folder, and it is tried again and again", "why",
				err.Error())
		}, func() { show.log.Warn("the sink takes records again") })
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
		show.log.Warn("the index takes no pages: they wait in the crawl's folder, and it is tried again or made anew", "why",
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

// finalFlushTimeout is how long a sink has to take the rest of a crawl that a person has ended.
const finalFlushTimeout = 5 * time.Second

// finish waits until the sinks have all, or take nothing any more; of a crawl that a person ends, not for long.
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

// isSinkBehind reports whether a crawl has ended and a sink has not all of it.
func isSinkBehind(err error) bool {
	_, is := errors.AsType[*follow.BacklogError](err)
	return is
}

// pipe is kumo crawl -o -: pages go to standard output, all that is for people elsewhere, and nothing is kept.
func (o *options) pipe(ctx context.Context) error {
	signal.Ignore(syscall.SIGPIPE) // to be told by the write
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	o.Job.Stores = append(o.Job.Stores, follow.NewPipe(stdout.Open(os.Stdout), end))
	err := o.crawl(ctx, os.Stderr)
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, stdout.ErrClosed):
		return nil // who reads has enough
	case cause != nil && !errors.Is(cause, context.Canceled):
		return cause
	}
	return err
}
