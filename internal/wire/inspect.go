package wire

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"kumo/internal/folder"
	"kumo/internal/inspect"
	"kumo/internal/seen"
	"kumo/internal/vfs"
)

const (
	lookPatience = 3 * time.Second        // with a crawl that is starting or ending
	lookAgain    = 100 * time.Millisecond // until it is asked again
)

// answerLooks lets the crawl be asked while it runs, until the function it returns is called. Where that cannot be, the
// user is told, and the crawl goes on.
func (c *Crawl) answerLooks() (away func()) {
	if c.folder == nil {
		return func() {}
	}
	server, err := inspect.Listen(c.folder.Path(folder.EndpointName), c.source())
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

// Inspect opens a view of the crawl in dir: it reads the folder, with the job's settings, and changes nothing there. A
// crawl that has the folder is asked instead.
func Inspect(ctx context.Context, dir string, job func() (*Job, error)) (*inspect.View, error) {
	patience, done := context.WithTimeout(ctx, lookPatience)
	defer done()
	for {
		l, err := inspectNow(ctx, dir, job)
		if !errors.Is(err, folder.ErrLocked) || errors.Is(err, inspect.ErrElsewhere) {
			return l, err
		}
		select {
		case <-patience.Done():
			return nil, fmt.Errorf("a crawl is just starting or ending there, or waits for another look to end: try again in "+
				"a moment (%w)", err)
		case <-time.After(lookAgain):
		}
	}
}

// inspectNow asks for the folder first: only where a crawl has it, there is somebody to answer. A crawl that was killed
// leaves word, too.
func inspectNow(ctx context.Context, dir string, job func() (*Job, error)) (*inspect.View, error) {
	f := folder.At(dir, vfs.NewOverlay(vfs.OS))
	err := f.Share(os.O_CREATE)
	if errors.Is(err, folder.ErrLocked) {
		return askRunning(ctx, f, err)
	}
	if err != nil {
		return nil, err
	}
	c, err := openShared(f, job)
	if err != nil {
		return nil, err
	}
	return inspect.NewView(c.source(), dir, f.Disk, false, c.Close), nil
}

// askRunning asks the crawl that has locked the folder. It may not answer yet, or not any more.
func askRunning(ctx context.Context, f *folder.Folder, locked error) (*inspect.View, error) {
	client, err := inspect.Dial(ctx, f.Path(folder.EndpointName))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", locked, err)
	}
	return inspect.NewView(client, f.Dir, vfs.OS, true, client.Close), nil
}

// A source answers for a crawl that is open in this process.
type source struct {
	*inspect.Live
	crawl *Crawl
}

func (c *Crawl) source() source {
	db, _ := c.views.Seen.(*seen.DB)
	return source{&inspect.Live{Engine: c.engine, Frontier: c.Frontier, Known: db}, c}
}
