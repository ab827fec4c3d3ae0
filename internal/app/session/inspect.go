package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"kumo/internal/app/folder"
	"kumo/internal/app/inspect"
	"kumo/internal/base/vfs"
	"kumo/internal/base/wait"
	"kumo/internal/state/seen"
)

const (
	startTimeout  = 3 * time.Second        // for a crawl that is starting or ending
	retryInterval = 100 * time.Millisecond // between two attempts

	diskTimeout = 5 * time.Second // for queries about a URL during the run
)

// serveQueries starts a server for queries, and returns a function that stops it. If that fails, it warns the user and
// the crawl continues.
func (s *Session) serveQueries() (stop func()) {
	if s.Folder == nil {
		return func() {}
	}
	src := s.source()
	src.DiskTimeout = diskTimeout
	server, err := inspect.Listen(s.Folder.Path(folder.EndpointName), src)
	if err != nil {
		s.Job.Warn(fmt.Errorf("queries during the run are not possible: %w", err))
		return func() {}
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve() }()
	return func() {
		if err := errors.Join(server.Close(), <-served); err != nil {
			s.Job.Warn(err)
		}
		src.Wait()
	}
}

// Inspect opens a view of the crawl in dir. It queries a running crawl. Otherwise it locks the folder for reading, and
// open creates a session on an overlay disk, which discards changes; open closes the folder on an error.
func Inspect(ctx context.Context, dir string, open func(*folder.Folder) (*Session, error)) (*inspect.View, error) {
	var v *inspect.View
	err := retryWhileBusy(ctx, func() (again bool, err error) {
		v, err = inspectNow(ctx, dir, open)
		return errors.Is(err, folder.ErrLocked) && !errors.Is(err, inspect.ErrOtherMachine), err
	})
	return v, err
}

// retryWhileBusy calls f until it returns false, for as long as a crawl may take to start or end.
func retryWhileBusy(ctx context.Context, f func() (again bool, err error)) error {
	patience, done := context.WithTimeout(ctx, startTimeout)
	defer done()
	for {
		again, err := f()
		if !again {
			return err
		}
		if wait.For(patience, retryInterval) != nil {
			return fmt.Errorf("the crawl is just starting or ending, or waits for another reader to end: try again in "+
				"a moment (%w)", err)
		}
	}
}

// inspectNow first tries to lock the folder: only if a crawl holds it, a server can answer. A killed crawl leaves its
// endpoint file, too.
func inspectNow(ctx context.Context, dir string, open func(*folder.Folder) (*Session, error)) (*inspect.View, error) {
	f := folder.At(dir, vfs.NewOverlay(vfs.OS))
	err := f.Share(os.O_CREATE)
	if errors.Is(err, folder.ErrLocked) {
		return queryRunning(ctx, f, err)
	}
	if err != nil {
		return nil, err
	}
	s, err := open(f)
	if err != nil {
		return nil, err
	}
	return inspect.NewView(s.source(), dir, f.Disk, false, s.Close), nil
}

// Dial opens a view of the running crawl in dir. It waits for a crawl that is just starting.
func Dial(ctx context.Context, dir string) (v *inspect.View, err error) {
	err = retryWhileBusy(ctx, func() (again bool, err error) {
		v, err = queryRunning(ctx, folder.At(dir, vfs.OS), ErrNotRunning)
		return errors.Is(err, inspect.ErrUnreachable), err
	})
	return v, err
}

// queryRunning connects to the crawl that holds the folder, which may not answer yet, or no more.
func queryRunning(ctx context.Context, f *folder.Folder, locked error) (*inspect.View, error) {
	client, err := inspect.Dial(ctx, f.Path(folder.EndpointName))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", locked, err)
	}
	return inspect.NewView(client, f.Dir, vfs.OS, true, client.Close), nil
}

// ViewOfFiles returns a view of a crawl that only has record files, on a disk that has them below dir.
func ViewOfFiles(s *Session, dir string, disk vfs.FS) *inspect.View {
	return inspect.NewView(s.source(), dir, disk, false, s.Close).FilesOnly()
}

// A source answers queries about a crawl in this process.
type source struct {
	*inspect.Live
	session *Session
}

func (s *Session) source() source {
	db, _ := s.Views.Seen.(*seen.DB)
	return source{&inspect.Live{Engine: s.Engine, Frontier: s.Frontier, Known: db}, s}
}
