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
	"kumo/internal/content/document"
	"kumo/internal/content/parse"
	"kumo/internal/state/store/jsonl"
)

// indexName is the name of the index in messages.
const indexName = "the index"

// positionName is the file with the index's position in the crawl's files. It is in the index's folder.
const positionName = "position.json"

// indexBatchDelay is how long records are collected before they are indexed.
const indexBatchDelay = 3 * time.Second

// FollowIndex returns a follower that updates the full-text index of a crawl while the crawl runs.
func FollowIndex(dir string, said func(error)) *follow.Follower {
	return followIndex(vfs.OS, dir, filepath.Join(dir, folder.IndexDir), said, nil, func() (io.Closer, error) {
		f := folder.At(dir, vfs.OS)
		if err := f.LockIndex(); err != nil {
			return nil, errors.Join(advice.With(fmt.Errorf("the index of %w", err),
				"it is being written by kumo index, or by a crawl or node that is ending: wait for it to end"),
				f.Close())
		}
		return f, nil
	})
}

// followIndex returns a follower that writes the index in folder at for the crawl in dir on disk.
func followIndex(disk vfs.FS, dir, at string, said func(error), missing *missingTexts,
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
			return &index{x, missing}, nil
		}})
}

// rebuildIfDamaged adds sink.ErrDataLost to the error if the index is damaged, so that the follower rebuilds it.
func rebuildIfDamaged(err error) error {
	if fulltext.IsDamaged(err) {
		return errors.Join(sink.ErrDataLost, err)
	}
	return err
}

// A textOf returns the text of a page that was stored without one; "" if it has none. After an error it may be called
// again.
type textOf func(context.Context, *sink.Record) (string, error)

// An index is the full-text index as a sink.
type index struct {
	*fulltext.Index
	missing *missingTexts // nil: texts are not read from the archive
}

// missingTexts reads texts that the crawl did not store.
type missingTexts struct {
	of              textOf
	html, documents bool // of which types
}

// has reports whether a record may have a text that was not stored.
func (m *missingTexts) has(r *sink.Record) bool {
	return r.Text == "" && r.Status/100 == 2 &&
		(m.html && parse.IsHTML(r.Type) || m.documents && document.MayBe(r.Type))
}

var _ sink.Sink = (*index)(nil)

// Put implements [sink.Sink].
func (x *index) Put(ctx context.Context, batch []sink.Record) error {
	batch = sink.Newest(batch)
	if x.missing != nil {
		g, inner := errgroup.WithContext(ctx)
		g.SetLimit(runtime.GOMAXPROCS(0))
		for i := range batch {
			if r := &batch[i]; x.missing.has(r) {
				g.Go(func() (err error) {
					r.Text, err = x.missing.of(inner, r)
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

// Flush implements [sink.Sink]. Records can be found after Put.
func (x *index) Flush(context.Context) error { return nil }

// Close implements [sink.Sink].
func (x *index) Close() error { return nil }

// An Indexing configures Index.
type Indexing struct {
	Crawl    string
	Disk     vfs.FS           // with the crawl's files; nil: the local disk
	Into     string           // folder for the index and the crawl's settings; "": the crawl's folder
	Rebuild  bool             // start again from the beginning
	Progress func(stats.Sink) // called from time to time
	Warn     func(error)      // called with problems that are being repaired

	Documents document.Reader // for PDFs, office documents and e-books without a stored text; nil: these have none
}

// An Indexed describes an index after Index.
type Indexed struct {
	Pages int64 // indexed by this call
	Docs  int64 // in total
	Bytes int64
}

var errCrawlStarted = errors.New("a crawl was started: kumo crawl --index also continues the index")

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
		return nil, advice.Usage("%s is the folder of a crawl: name another folder for the index of an uploaded crawl",
			x.Into)
	}
	config, err := vfs.ReadFile(vfs.OS, filepath.Join(x.Crawl, settings.Name), settings.MaxSize)
	if err != nil {
		return nil, err
	}
	if err := vfs.OS.MkdirAll(x.Into); err != nil {
		return nil, err
	}
	return f, vfs.Replace(vfs.OS, f.Path(settings.Name), config) // marks it as a crawl's folder
}

// Index creates or updates the index of a crawl that is not running.
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
	flw := followIndex(x.Disk, x.Crawl, at, x.Warn, textsOf(x.Disk, x.Crawl, x.Documents), nil)
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
	if errors.Is(err, fulltext.ErrNoIndex) { // there are no pages
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	r.Docs, r.Bytes = in.Docs()
	return r, nil
}

// textsOf returns the texts that a crawl did not store, from its archive: all if it ran without --text, and those of
// documents if it did not read them.
func textsOf(disk vfs.FS, crawl string, documents document.Reader) *missingTexts {
	size, err := disk.Size(filepath.Join(crawl, jsonl.TextsName))
	return &missingTexts{of: textsIn(lookup.New(disk, crawl, documents)), html: err != nil || size == 0,
		documents: documents != nil}
}

func textsIn(a *lookup.Archive) textOf {
	return func(ctx context.Context, r *sink.Record) (string, error) {
		rec, err := a.Record(r.Line)
		if err != nil {
			return "", temporary(ctx, err)
		}
		resp, err := a.Document(ctx, rec)
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

// temporary returns the error if it may disappear, or after a fix by the user; nil for others, such as damage, which
// kumo verify reports.
func temporary(ctx context.Context, err error) error {
	var sys interface{ Temporary() bool } // too many open files
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOMEM), errors.As(err, &sys) && sys.Temporary():
		return fmt.Errorf("read a page's text from the archive: %w", err)
	}
	return nil
}
