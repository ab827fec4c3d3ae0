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
	startTimeout  = 3 * time.Second        // with a crawl that is starting or ending
	retryInterval = 100 * time.Millisecond // until it is asked again

	diskTimeout = 5 * time.Second // with the disk, for who explains a URL while the crawl runs
)

// serveQueries lets the crawl be asked while it runs, until the function it returns is called. Where that cannot be, the user
// is told, and the crawl goes on.
func (s *Session) serveQueries() (stop func()) {
	if s.Folder == nil {
		return func() {}
	}
	src := s.source()
	src.DiskTimeout = diskTimeout
	server, err := inspect.Listen(s.Folder.Path(folder.EndpointName), src)
	if err != nil {
		s.Job.Warn(fmt.Errorf("nobody can look into the crawl while it runs: %w", err))
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

// Inspect opens a view of the crawl in dir. A crawl that runs there is asked. Otherwise open makes a session of the
// folder, which is shared and whose disk keeps all changes to itself; open closes it with an error.
func Inspect(ctx context.Context, dir string, open func(*folder.Folder) (*Session, error)) (*inspect.View, error) {
	var v *inspect.View
	err := retryWhileBusy(ctx, func() (again bool, err error) {
		v, err = inspectNow(ctx, dir, open)
		return errors.Is(err, folder.ErrLocked) && !errors.Is(err, inspect.ErrOtherMachine), err
	})
	return v, err
}

// retryWhileBusy calls f until it does not want to be called again, for as long as a crawl may take to start or to end.
func retryWhileBusy(ctx context.Context, f func() (again bool, err error)) error {
	patience, done := context.WithTimeout(ctx, startTimeout)
	defer done()
	for {
		again, err := f()
		if !again {
			return err
		}
		if wait.For(patience, retryInterval) != nil {
			return fmt.Errorf("a crawl is just starting or ending there, or waits for another look to end: try again in "+
				"a moment (%w)", err)
		}
	}
}

// inspectNow asks for the folder first: only where a crawl has it, there is somebody to answer. A crawl that was killed
// leaves word, too.
func inspectNow(ctx context.Context, dir string, open func(*folder.Folder) (*Session, error)) (*inspect.View, error) {
	f := folder.At(dir, vfs.NewOverlay(vfs.OS))
	err := f.Share(os.O_CREATE)
	if errors.Is(err, folder.ErrLocked) {
		return askRunning(ctx, f, err)
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

// Dial opens a view of the crawl that runs in dir, and waits for one that is just starting.
func Dial(ctx context.Context, dir string) (v *inspect.View, err error) {
	err = retryWhileBusy(ctx, func() (again bool, err error) {
		v, err = askRunning(ctx, folder.At(dir, vfs.OS), ErrNotRunning)
		return errors.Is(err, inspect.ErrUnreachable), err
	})
	return v, err
}

// askRunning asks the crawl that has locked the folder. It may not answer yet, or not any more.
func askRunning(ctx context.Context, f *folder.Folder, locked error) (*inspect.View, error) {
	client, err := inspect.Dial(ctx, f.Path(folder.EndpointName))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", locked, err)
	}
	return inspect.NewView(client, f.Dir, vfs.OS, true, client.Close), nil
}

// ViewOfFiles is the view of a crawl of which only record files are there, on a disk that has them below dir.
func ViewOfFiles(s *Session, dir string, disk vfs.FS) *inspect.View {
	return inspect.NewView(s.source(), dir, disk, false, s.Close).FilesOnly()
}

// A source answers for a crawl that is open in this process.
type source struct {
	*inspect.Live
	session *Session
}

func (s *Session) source() source {
	db, _ := s.Views.Seen.(*seen.DB)
	return source{&inspect.Live{Engine: s.Engine, Frontier: s.Frontier, Known: db}, s}
}
