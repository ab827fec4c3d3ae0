// Package worker reads documents in child processes.
//
// A document that is made to crash its reader, to run forever or to fill the memory ends a child, not the crawl, and
// costs only itself. Children start at the first document, end after a number of documents, and do not outlive their
// parent.
package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"kumo/internal/content/document"
)

// A Config is how documents are read. All but Command may be zero.
type Config struct {
	Command  []string // program and arguments of a child, which calls [Serve]
	Env      []string // further environment variables of children
	Children int      // number of documents that are read at once; 0 is 1
	CacheDir string   // of compiled code
	// Deadline is the time for a document; 0 is 30 s. What was read by then is returned.
	Deadline time.Duration
	// Grace is the time after the deadline after which a child is killed that has not stopped by itself; 0 is 5 s.
	Grace time.Duration
	// Memory is the limit for the contents of a document, in bytes; 0 is 512 MiB. A child may need twice as much and
	// 256 MiB more, as memory is copied when it grows.
	Memory int64
	// Recycle is the number of documents after which a child is replaced; 0 is 500.
	Recycle int
	// MaxFile is the size above which files are not read, in bytes; 0 is 256 MiB. A child has the file in memory.
	MaxFile int64
}

const (
	startDeadline = 3 * time.Minute  // compiling takes some seconds of CPU time, which a busy computer may not have
	retryStart    = 30 * time.Second // after a failed start
)

// A Worker has the children. It is safe for concurrent use.
type Worker struct {
	config Config
	idle   chan *child // as many as there may be; nil: not started
	closed chan struct{}
	once   sync.Once

	mu       sync.Mutex
	failed   *document.Error // why the last start failed
	failedAt time.Time
	started  int
}

// New returns a Worker. It starts no process.
func New(c Config) *Worker {
	c.Children = cmp.Or(c.Children, 1)
	c.Deadline = cmp.Or(c.Deadline, 30*time.Second)
	c.Grace = cmp.Or(c.Grace, 5*time.Second)
	c.Memory = cmp.Or(c.Memory, 512<<20)
	c.Recycle = cmp.Or(c.Recycle, 500)
	c.MaxFile = cmp.Or(c.MaxFile, 256<<20)
	w := &Worker{config: c, idle: make(chan *child, c.Children), closed: make(chan struct{})}
	for range c.Children {
		w.idle <- nil
	}
	return w
}

// Close ends the children. A Read that is running fails.
func (w *Worker) Close() error {
	w.once.Do(func() {
		close(w.closed)
		for range w.config.Children {
			if c := <-w.idle; c != nil {
				c.end()
			}
		}
	})
	return nil
}

// Started is the number of children that were started so far.
func (w *Worker) Started() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.started
}

// Read reads a document in a child; it waits until one is free. An error is always a *[document.Error].
func (w *Worker) Read(ctx context.Context, f document.File, lim document.Limits) (*document.Document, error) {
	if f.Size() > w.config.MaxFile {
		return nil, document.Errorf(document.TooLarge, "the file has %d bytes, at most %d are read", f.Size(),
			w.config.MaxFile)
	}
	var c *child
	select {
	case <-w.closed:
		return nil, errClosed()
	default:
	}
	select {
	case c = <-w.idle:
	case <-ctx.Done():
		return nil, document.Errorf(document.Timeout, "no process for documents was free: %w", ctx.Err())
	case <-w.closed:
		return nil, errClosed()
	}
	defer func() { w.idle <- c }()
	if c != nil && (c.count >= w.config.Recycle || c.ended()) {
		c.end()
		c = nil
	}
	if c == nil {
		var err error
		if c, err = w.start(ctx); err != nil {
			return nil, err
		}
	}
	d, err := w.exchange(ctx, c, f, lim)
	if c.ended() {
		c.end()
		c = nil
	}
	return d, err
}

func errClosed() error { return document.Errorf(document.Crashed, "reading documents was ended") }

// start starts a child. After a failure it does not try again for a while, or ever if the computer is not supported.
func (w *Worker) start(ctx context.Context) (*child, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed != nil && (w.failed.Problem == document.Unsupported || time.Since(w.failedAt) < retryStart) {
		return nil, w.failed
	}
	w.started++
	c, err := startChild(w.config)
	var ready reply
	if err == nil {
		hello := Hello{CacheDir: w.config.CacheDir, Memory: w.config.Memory, Total: 2*w.config.Memory + 256<<20}
		err = w.guard(ctx, c, startDeadline, func() error {
			if err := writeFrame(c.in, hello); err != nil {
				return err
			}
			return readFrame(c.out, &ready)
		})
		if err == nil && ready.Problem != "" {
			err = document.Errorf(ready.Problem, "%s", ready.Detail)
		}
		if err != nil {
			c.end()
			if e, ok := errors.AsType[*document.Error](err); !ok || e.Problem == document.Crashed {
				err = fmt.Errorf("%w%s", err, c.lastWords())
			}
		}
	}
	if err == nil {
		w.failed = nil
		return c, nil
	}
	if ctx.Err() != nil {
		return nil, document.Errorf(document.Timeout, "the process for documents was not started: %w", ctx.Err())
	}
	e, ok := errors.AsType[*document.Error](err)
	if !ok || e.Problem != document.Unsupported {
		e = document.Errorf(document.Crashed, "start the process for documents, %s: %w",
			strings.Join(w.config.Command, " "), err)
	}
	w.failed, w.failedAt = e, time.Now()
	return nil, e
}

// exchange sends a document to a child and returns its answer.
func (w *Worker) exchange(ctx context.Context, c *child, f document.File, lim document.Limits) (*document.Document, error) {
	c.count++
	var a reply
	err := w.guard(ctx, c, w.config.Deadline+w.config.Grace, func() error {
		if err := writeFrame(c.in, request{Size: f.Size(), Limits: lim, Deadline: w.config.Deadline}); err != nil {
			return err
		}
		n, err := io.Copy(c.in, io.NewSectionReader(f, 0, f.Size()))
		if err == nil && n < f.Size() {
			err = fmt.Errorf("the file ends after %d of %d bytes", n, f.Size())
		}
		if err != nil {
			return err
		}
		return readFrame(c.out, &a)
	})
	switch {
	case err == nil && a.Document != nil:
		return a.Document, nil
	case err == nil:
		return nil, document.Errorf(cmp.Or(a.Problem, document.Crashed), "%s", a.Detail)
	}
	c.end() // its state is unknown
	select {
	case <-w.closed:
		return nil, errClosed()
	default:
	}
	if _, ok := errors.AsType[*document.Error](err); ok {
		return nil, err
	}
	if c.cmd.ProcessState.ExitCode() == exitMemory {
		return nil, document.Errorf(document.TooLarge, "reading needs more than %d MiB of memory",
			(2*w.config.Memory+256<<20)>>20)
	}
	return nil, document.Errorf(document.Crashed, "the process that reads documents ended: %s%s", c.cmd.ProcessState,
		c.lastWords())
}

// guard calls a function that talks to a child, and kills the child when the time is up, which ends the function.
func (w *Worker) guard(ctx context.Context, c *child, limit time.Duration, talk func() error) error {
	done := make(chan error, 1)
	go func() { done <- talk() }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var cause error
	select {
	case err := <-done:
		return err
	case <-timer.C:
		cause = document.Errorf(document.Timeout, "the process that reads documents did not answer within %s", limit)
	case <-ctx.Done():
		cause = document.Errorf(document.Timeout, "reading was ended: %w", ctx.Err())
	case <-w.closed:
		cause = errClosed()
	}
	c.kill()
	<-done //nolint:errcheck // an error because of the kill
	return cause
}

// A child is a process that reads documents.
type child struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.Reader
	outEnd io.Closer
	errors *firstLine
	gone   chan struct{} // closed when the process has ended
	count  int           // of documents
}

func startChild(config Config) (*child, error) {
	if len(config.Command) == 0 {
		return nil, errors.New("no command is given")
	}
	cmd := exec.Command(config.Command[0], config.Command[1:]...) //nolint:gosec // kumo's own binary
	cmd.Env = append(append(os.Environ(), "GOMAXPROCS=2"), config.Env...)
	cmd.SysProcAttr = attributes()
	c := &child{cmd: cmd, errors: &firstLine{}, gone: make(chan struct{})}
	cmd.Stderr = c.errors
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// not StdoutPipe: Wait would close it while an answer is read
	out, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, c.in, c.out, c.outEnd = write, in, out, out
	started := make(chan error)
	go func() {
		// Linux kills a child when the thread that started it ends: the thread is to stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		_ = write.Close()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in ProcessState
			close(c.gone)
		}
	}()
	if err := <-started; err != nil {
		_ = out.Close()
		return nil, err
	}
	return c, nil
}

func (c *child) ended() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

func (c *child) kill() { _ = c.cmd.Process.Kill() }

// end ends the process and waits for it. An idle child ends by itself; one that is busy is killed.
func (c *child) end() {
	_ = c.in.Close()
	timer := time.AfterFunc(2*time.Second, c.kill)
	defer timer.Stop()
	<-c.gone
	_ = c.outEnd.Close()
}

// lastWords is the beginning of what the process wrote to standard error, such as a panic's message.
func (c *child) lastWords() string {
	if s := c.errors.String(); s != "" {
		return ": " + s
	}
	return ""
}

// A firstLine holds the first line of what is written to it, up to 1,024 bytes.
type firstLine struct {
	mu   sync.Mutex
	text []byte
}

func (t *firstLine) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[:min(len(p), 1024-len(t.text))]...)
	return len(p), nil
}

func (t *firstLine) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	line, _, _ := strings.Cut(strings.TrimSpace(string(t.text)), "\n")
	return line
}
