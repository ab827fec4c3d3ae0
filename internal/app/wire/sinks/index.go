package sinks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"kumo/internal/app/folder"
	"kumo/internal/app/lookup"
	"kumo/internal/archive/fulltext"
	"kumo/internal/archive/sink"
	"kumo/internal/archive/sink/follow"
	"kumo/internal/base/advice"
	"kumo/internal/base/settings"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/content/parse"
	"kumo/internal/state/store/jsonl"
)

// indexName is what people are told of the index.
const indexName = "the index"

// positionName is the file that says how far an index has a crawl's files. It lies in the index, and goes with it.
const positionName = "position.json"

// indexBatchDelay is how long records are gathered for the index: what is searched is so much behind.
const indexBatchDelay = 3 * time.Second

// FollowIndex makes what writes the full-text index of a crawl while the crawl runs.
func FollowIndex(dir string, said func(error)) *follow.Follower {
	return followIndex(vfs.OS, dir, filepath.Join(dir, folder.IndexDir), said, nil, func() (io.Closer, error) {
		f := folder.At(dir, vfs.OS)
		if err := f.LockIndex(); err != nil {
			return nil, errors.Join(advice.With(fmt.Errorf("the index of %w", err),
				"it is written by kumo index, or by a crawl or node that has ended and takes in the rest: wait for it to end"),
				f.Close())
		}
		return f, nil
	})
}

// followIndex writes the index at of the crawl that a disk has in dir.
func followIndex(disk vfs.FS, dir, at string, said func(error), text textOf,
	hold func() (io.Closer, error)) *follow.Follower {
	return follow.New(follow.Config{Dir: dir, Disk: disk, Name: indexName, PositionFile: filepath.Join(at, positionName),
		BatchDelay:    indexBatchDelay,
		ResumeCommand: "kumo index", Lock: hold, Now: time.Now, Wait: sink.Sleep, Patience: 10 * time.Second, OnFailure: said,
		OnRestart: func() error { return fulltext.Remove(vfs.OS, at) },
		ID:        func() (string, error) { return fulltext.ID(vfs.OS, at) },
		Open: func(context.Context) (sink.Sink, error) {
			x, err := fulltext.Open(vfs.OS, at)
			if err != nil {
				return nil, rebuildIfDamaged(err)
			}
			return &index{x, text}, nil
		}})
}

// rebuildIfDamaged tells who sends that an index is to be made anew, if it is damaged.
func rebuildIfDamaged(err error) error {
	if fulltext.IsDamaged(err) {
		return errors.Join(sink.ErrDataLost, err)
	}
	return err
}

// textOf finds the text of a page that the crawl has written down without; "" if there is none. After an error it is
// there when it is asked again.
type textOf func(context.Context, *sink.Record) (string, error)

// An index is the sink that is no server.
type index struct {
	*fulltext.Index
	text textOf
}

var _ sink.Sink = (*index)(nil)

// Put is Sink's.
func (x *index) Put(ctx context.Context, batch []sink.Record) error {
	batch = sink.Newest(batch)
	if x.text != nil {
		g, inner := errgroup.WithContext(ctx)
		g.SetLimit(runtime.GOMAXPROCS(0))
		for i := range batch {
			if r := &batch[i]; r.Text == "" && r.Status/100 == 2 && parse.IsHTML(r.Type) {
				g.Go(func() (err error) {
					r.Text, err = x.text(inner, r)
					return err
				})
			}
		}
		if err := g.Wait(); err != nil {
			return err
		}
	}
	docs := make([]fulltext.Doc, len(batch))
	for i := range batch {
		r := &batch[i]
		about := r.Description
		if r.H1 != r.Title {
			about = r.H1 + "\n" + about
		}
		docs[i] = fulltext.Doc{URL: r.URL, Line: r.Line, Status: r.Status, Time: r.Time, Lang: r.Lang, Type: r.Type,
			Title: r.Title, About: about, Text: r.Text}
	}
	return rebuildIfDamaged(x.Index.Put(ctx, docs))
}

// Flush is Sink's: what was put can be found.
func (x *index) Flush(context.Context) error { return nil }

// Close is Sink's.
func (x *index) Close() error { return nil }

// An Indexing says of which crawl an index is made.
type Indexing struct {
	Crawl    string
	Disk     vfs.FS           // has the crawl's files; nil: this machine's
	Into     string           // the folder that gets the index, and the crawl's settings; "": the crawl's
	Rebuild  bool             // what is there is not gone on with
	Progress func(stats.Sink) // is told now and then
	Warn     func(error)      // is told what is wrong, and is being mended
}

// An Indexed says what an index has.
type Indexed struct {
	Pages int64 // that were taken in by this call
	Docs  int64 // that are in it
	Bytes int64
}

var errCrawlStarted = errors.New("the crawl goes on: kumo crawl --index goes on with the index, too")

func (x *Indexing) open() (*folder.Folder, error) {
	if x.Into == "" {
		x.Disk = vfs.OS
		f, err := openShared(x.Crawl)
		if errors.Is(err, folder.ErrLocked) {
			err = advice.With(err, "kumo crawl --index writes the index while a crawl runs")
		}
		return f, err
	}
	f := folder.At(x.Into, vfs.OS)
	if f.HasJournal() || f.HasOutputs() {
		return nil, advice.Usage("%s is the folder of a crawl: name another for the index of one in a place", x.Into)
	}
	config, err := vfs.ReadFile(vfs.OS, filepath.Join(x.Crawl, settings.Name), settings.MaxSize)
	if err != nil {
		return nil, err
	}
	if err := vfs.OS.MkdirAll(x.Into); err != nil {
		return nil, err
	}
	return f, vfs.Replace(vfs.OS, f.Path(settings.Name), config) // by which it is known as a crawl's
}

// Index makes the index of a crawl that does not run, or goes on with it.
func Index(ctx context.Context, x Indexing) (_ *Indexed, err error) {
	f, err := x.open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.LockIndex(); err != nil {
		return nil, err
	}
	at := f.Path(folder.IndexDir)
	_, err = fulltext.Open(vfs.OS, at)
	if fulltext.IsDamaged(err) {
		x.Warn(err)
		x.Rebuild, err = true, nil
	}
	if err != nil {
		return nil, err
	}
	if x.Rebuild {
		if err := fulltext.Remove(vfs.OS, at); err != nil {
			return nil, err
		}
	}
	if err := vfs.OS.MkdirAll(at); err != nil {
		return nil, err
	}
	flw := followIndex(x.Disk, x.Crawl, at, x.Warn, textsOf(x.Disk, x.Crawl), nil)
	if err := errors.Join(flw.Begin(), flw.FollowStatic()); err != nil {
		return nil, err
	}
	flw.End()
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	told := make(chan struct{})
	go func() {
		defer close(told)
		for sink.Sleep(running, 500*time.Millisecond) == nil {
			if x.Progress(flw.Status()); f.WantedByCrawl() {
				cancel(errCrawlStarted)
			}
		}
	}()
	err = flw.Run(running)
	if cause := context.Cause(running); cause != nil && err != nil {
		err = cause
	}
	cancel(nil)
	<-told
	if err != nil {
		return nil, err
	}
	r := &Indexed{Pages: flw.Status().Sent}
	in, err := fulltext.OpenReader(vfs.OS, at)
	if errors.Is(err, fulltext.ErrNoIndex) { // there was no page
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	r.Docs, r.Bytes = in.Docs()
	return r, nil
}

// textsOf finds texts in a crawl's archive, of pages that were fetched without --text; nil if there are texts.
func textsOf(disk vfs.FS, crawl string) textOf {
	if size, err := disk.Size(filepath.Join(crawl, jsonl.TextsName)); err == nil && size > 0 {
		return nil
	}
	return textsIn(lookup.New(disk, crawl))
}

func textsIn(a *lookup.Archive) textOf {
	return func(ctx context.Context, r *sink.Record) (string, error) {
		rec, err := a.Record(r.Line)
		if err != nil {
			return "", temporary(ctx, err)
		}
		resp, err := a.Answer(ctx, rec)
		if err != nil {
			return "", temporary(ctx, err)
		}
		t, err := lookup.TextOf(resp)
		if err != nil {
			return "", temporary(ctx, err)
		}
		whole := sink.Record{Text: t.Text}
		whole.Fit()
		return whole.Text, nil
	}
}

// temporary is an error that may be over later, or when somebody has mended what is wrong; nil for others: what is
// damaged is kumo verify's to tell of.
func temporary(ctx context.Context, err error) error {
	var sys interface{ Temporary() bool } // too many open files
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOMEM), errors.As(err, &sys) && sys.Temporary():
		return fmt.Errorf("find a page's text in the archive: %w", err)
	}
	return nil
}
