package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"kumo/internal/app/job"
	"kumo/internal/app/wire/places"
	"kumo/internal/app/wire/sinks"
	"kumo/internal/app/wire/uploads"
	"kumo/internal/archive/sink/follow"
	"kumo/internal/base/stats"
)

const indexLong = `Make the full-text index of the crawl in the folder CRAWL, for kumo search, the page of kumo serve and kumo mcp, or go on with it.

It has the newest visit of each URL: title, description, main text and the words of the URL, by the rules of the text's language,
and host, language, status, type and day to narrow a search. It lies in CRAWL/index, and can be removed at any time. kumo crawl
--index makes it while a crawl runs, which this command cannot.

Of a crawl that lies in a place, as s3://bucket/news, the index goes to FOLDER, which gets the crawl's settings, too, and nothing
else: kumo search -o FOLDER searches it.

What was taken in is there for good: after Ctrl-C the same command goes on. Of a crawl that was made with --text the texts are
taken from text.jsonl; of another they are found in its WARC files, which takes some milliseconds a page.

An index that is damaged, or of another version of kumo, is made anew.`

func indexCommand() *cobra.Command {
	var quiet, anew bool
	cmd := &cobra.Command{Use: "index CRAWL [FOLDER]", Short: "Make a full-text index of a crawl", Long: indexLong,
		Example: "  kumo index crawls/example.com\n  kumo search -o crawls/example.com 'tea \"green kettle\" -shop " +
			"lang:en'\n  kumo index s3://bucket/news/b~12345678 lost-b",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 2 && places.IsURL(args[0]):
			case len(args) == 1 && places.IsURL(args[0]):
				return usagef("an index lies in a folder of this machine: name one behind %s", args[0])
			default:
				return oneFolder(nil, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			x := sinks.Indexing{Crawl: args[0], Rebuild: anew}
			named := func(err error) error { return err }
			if len(args) == 2 {
				src, err := uploads.OpenSource(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				defer func() { _ = src.Close() }() // a folder for the time being
				x.Crawl, x.Disk, x.Into, named = src.Dir, src.Disk, args[1], src.WithName
			} else if err := uploads.CheckLocal(args[0], "kumo index"); err != nil {
				return err
			}
			line := newProgressLine(os.Stderr, !quiet)
			begin := time.Now()
			x.Warn = func(err error) { fmt.Fprintln(cmd.ErrOrStderr(), "kumo:", named(err)) }
			x.Progress = func(s stats.Sink) {
				line.show("%s indexed, %s wait", stats.Grouped(s.Sent), stats.Grouped(s.Waiting))
			}
			r, err := sinks.Index(cmd.Context(), x)
			line.clear()
			if err != nil {
				return named(err)
			}
			if !quiet {
				fmt.Fprintf(cmd.OutOrStdout(), "%s indexed in %.1f s: the index has %s of %s\n", stats.Count(r.Pages, "pages"),
					time.Since(begin).Seconds(), stats.Count(r.Docs, "URLs"), stats.Bytes(r.Bytes))
			}
			return nil
		}}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "say nothing unless something is wrong")
	cmd.Flags().BoolVar(&anew, "anew", false, "make it anew, whatever is there")
	return cmd
}

// A nodeIndex is the index of a node's part in a crawl, which is another one after the node has lost its place.
type nodeIndex struct {
	mu        sync.Mutex
	dir       string
	followers []*follow.Follower
	current   *follow.Follower // that of the part under way; nil: there was none
	done      chan struct{}    // closed when now is done
	err       error
	group     sync.WaitGroup
	ctx       context.Context // of all that follow
	cancel    context.CancelFunc
}

// addTo has the records of a job indexed, if a node opens a part with it: jobs are made for other ends, too.
func (x *nodeIndex) addTo(j *job.Job, wanted bool, said func(error)) {
	if !wanted {
		return
	}
	f := sinks.FollowIndex(j.Dir, said)
	j.Stores = append(j.Stores, f)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ctx == nil {
		x.ctx, x.cancel = context.WithCancel(context.Background())
	}
	x.dir, x.followers = j.Dir, append(x.followers, f)
	x.group.Go(func() { x.follow(f, said) })
}

// follow follows a part, once that of the part before is done.
func (x *nodeIndex) follow(f *follow.Follower, said func(error)) {
	if !f.WaitForData(x.ctx) {
		return
	}
	x.mu.Lock()
	last, before, over := x.current, x.done, make(chan struct{})
	x.current, x.done = f, over
	x.mu.Unlock()
	defer close(over)
	if last != nil {
		last.End()
		<-before
	}
	err := f.Begin()
	if err == nil {
		err = f.Run(x.ctx)
	} else {
		said(err) // at once: a node may run for long
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.current == f {
		x.err = err
	} else if err != nil {
		said(err)
	}
}

// finish waits until all is indexed; of a node that a person ends, not for long.
func (x *nodeIndex) finish(ctx context.Context, out io.Writer, quiet bool) error {
	x.mu.Lock()
	for _, f := range x.followers {
		f.End()
	}
	x.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(finalFlushTimeout, x.stop) })
	defer stop()
	x.group.Wait()
	x.stop()
	if x.current != nil && !quiet {
		printIndexed(out, x.current.Status())
	}
	return follow.Advise(x.err, x.dir)
}

func (x *nodeIndex) stop() {
	if x.cancel != nil {
		x.cancel()
	}
}
