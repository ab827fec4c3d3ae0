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

const indexLong = `Build or update the full-text index of the crawl in the folder CRAWL, for kumo search, kumo serve
and kumo mcp.

The index has the newest visit of each URL: title, description, main text and the words of the URL,
analyzed for the text's language; and host, language, status, type and day as filters. It is in
CRAWL/index, and can be removed at any time. To index a running crawl, use kumo crawl --index.

If the crawl is only in a storage location, such as s3://bucket/news, the index is written to
FOLDER, together with the crawl's settings: kumo search -o FOLDER searches it.

After Ctrl-C, the same command resumes. Texts come from text.jsonl if the crawl was made with
--text; otherwise they are extracted from the WARC files, which takes some milliseconds per page.

An index that is damaged, or from another version of kumo, is rebuilt.`

func indexCommand() *cobra.Command {
	var quiet, anew bool
	var documents documentsFlag
	cmd := &cobra.Command{Use: "index CRAWL [FOLDER]", Short: "Build the full-text index of a crawl", Long: indexLong,
		Example: "  kumo index crawls/example.com\n  kumo search -o crawls/example.com 'tea \"green kettle\" -shop " +
			"lang:en'\n  kumo index s3://bucket/news/b~12345678 lost-b",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 2 && places.IsURL(args[0]):
			case len(args) == 1 && places.IsURL(args[0]):
				return usagef("an index is in a folder of this machine: name one after %s", args[0])
			default:
				return oneFolder(nil, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			x := sinks.Indexing{Crawl: args[0], Rebuild: anew, Documents: documents.reader()}
			named := func(err error) error { return err }
			if len(args) == 2 {
				src, err := uploads.OpenSource(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				defer func() { _ = src.Close() }() // a temporary folder
				x.Crawl, x.Disk, x.Into, named = src.Dir, src.Disk, args[1], src.WithName
			} else if err := uploads.CheckLocal(args[0], "kumo index"); err != nil {
				return err
			}
			line := newProgressLine(os.Stderr, !quiet)
			begin := time.Now()
			x.Warn = func(err error) { fmt.Fprintln(cmd.ErrOrStderr(), "kumo:", named(err)) }
			x.Progress = func(s stats.Sink) {
				line.show("%s indexed, %s pending", stats.Grouped(s.Sent), stats.Grouped(s.Waiting))
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
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print only errors")
	documents.bind(cmd.Flags())
	cmd.Flags().BoolVar(&anew, "anew", false, "rebuild the index")
	return cmd
}

// A nodeIndex indexes a node's part in a crawl. The node gets a new part after it has lost its place.
type nodeIndex struct {
	mu        sync.Mutex
	dir       string
	followers []*follow.Follower
	current   *follow.Follower // follower of the current part; nil if there was none
	done      chan struct{}    // closed when current is done
	err       error
	group     sync.WaitGroup
	ctx       context.Context // context of all followers
	cancel    context.CancelFunc
}

// addTo adds a follower to a job's stores, if an index is wanted. The follower waits until a node opens a part with the
// job: some jobs are made for other purposes.
func (x *nodeIndex) addTo(j *job.Job, wanted bool, logErr func(error)) {
	if !wanted {
		return
	}
	f := sinks.FollowIndex(j.Dir, logErr)
	j.Stores = append(j.Stores, f)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ctx == nil {
		x.ctx, x.cancel = context.WithCancel(context.Background())
	}
	x.dir, x.followers = j.Dir, append(x.followers, f)
	x.group.Go(func() { x.follow(f, logErr) })
}

// follow indexes a part, after the previous part is finished.
func (x *nodeIndex) follow(f *follow.Follower, logErr func(error)) {
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
		logErr(err) // at once, because a node may run for long
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.current == f {
		x.err = err
	} else if err != nil {
		logErr(err)
	}
}

// finish waits until everything is indexed. If the user stops the node, it waits at most sinks.FinalFlushTimeout.
func (x *nodeIndex) finish(ctx context.Context, out io.Writer, quiet bool) error {
	x.mu.Lock()
	for _, f := range x.followers {
		f.End()
	}
	x.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(sinks.FinalFlushTimeout, x.stop) })
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
