package wire

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"kumo/internal/folder"
	"kumo/internal/inspect"
	"kumo/internal/vfs"
)

const (
	lookPatience = 3 * time.Second        // with a crawl that is starting or ending
	lookAgain    = 100 * time.Millisecond // until it is asked again
)

// answerLooks lets the crawl be asked while it runs, until the function it returns is called. Where that cannot be, the user is told,
// and the crawl goes on.
func (c *Crawl) answerLooks() (away func()) {
	if c.folder == nil {
		return func() {}
	}
	server, err := inspect.Listen(c.folder.Path(folder.EndpointName), source{c})
	if err != nil {
		c.Job.Warn(fmt.Errorf("nobody can look into the crawl while it runs: %w", err))
		return func() {}
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve() }()
	return func() {
		if err := errors.Join(server.Close(), <-served); err != nil {
			c.Job.Warn(err)
		}
	}
}

// A Look is a look into the crawl in a folder.
type Look struct {
	inspect.Source
	dir     string
	disk    vfs.FS // with the crawl's files as they count
	running bool
	close   func() error
}

// OpenLook opens a look into the crawl in dir: it reads the folder, with the job's settings, and changes nothing there. A crawl that
// has the folder is asked instead.
func OpenLook(ctx context.Context, dir string, job func() (*Job, error)) (*Look, error) {
	patience, done := context.WithTimeout(ctx, lookPatience)
	defer done()
	for {
		l, err := openLook(ctx, dir, job)
		if !errors.Is(err, folder.ErrLocked) || errors.Is(err, inspect.ErrElsewhere) {
			return l, err
		}
		select {
		case <-patience.Done():
			return nil, fmt.Errorf("a crawl is just starting or ending there, or waits for another look to end: try again in a moment (%w)", err)
		case <-time.After(lookAgain):
		}
	}
}

// openLook asks for the folder first: only where a crawl has it, there is somebody to answer. A crawl that was killed leaves word, too.
func openLook(ctx context.Context, dir string, job func() (*Job, error)) (*Look, error) {
	f := folder.At(dir, vfs.NewOverlay(vfs.OS))
	err := f.Share(os.O_CREATE)
	if errors.Is(err, folder.ErrLocked) {
		return dialLook(ctx, f, err)
	}
	if err != nil {
		return nil, err
	}
	c, err := openShared(f, job)
	if err != nil {
		return nil, err
	}
	return &Look{source{c}, dir, f.Disk, false, c.Close}, nil
}

// dialLook asks the crawl that has locked the folder. It may not answer yet, or not any more.
func dialLook(ctx context.Context, f *folder.Folder, locked error) (*Look, error) {
	client, err := inspect.Dial(ctx, f.Path(folder.EndpointName))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", locked, err)
	}
	return &Look{client, f.Dir, vfs.OS, true, client.Close}, nil
}

// Close ends the look.
func (l *Look) Close() error { return l.close() }

const (
	lookTries = 5                      // at a URL that is just going from one place to another
	lookPause = 100 * time.Millisecond // lines are in the files after a commit
)

// Explain says what became of a URL, with what the crawl's files say of it.
func (l *Look) Explain(ctx context.Context, url string) (*inspect.Explanation, error) {
	for try := 1; ; try++ {
		x, err := l.Source.Explain(ctx, url)
		if err != nil {
			return nil, err
		}
		x.Running = l.running
		if err := l.addFiles(x); err != nil {
			return nil, err
		}
		if x.Settle(); x.Fate != inspect.Unaccounted || try == lookTries {
			return x, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lookPause):
		}
	}
}
