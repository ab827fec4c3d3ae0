package filter

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

// find locates a command's program.
func find(words []string) ([]string, error) {
	path, err := exec.LookPath(words[0])
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%w: make it executable with chmod +x, or name its interpreter, as in python3 %s", err,
			words[0])
	case err != nil:
		return nil, err
	}
	return append([]string{path}, words[1:]...), nil
}

// CheckCommand checks a command without running it.
func CheckCommand(command string) error {
	words, err := Words(command)
	if err == nil {
		_, err = find(words)
	}
	if err != nil {
		return fmt.Errorf("filter %s: %w", Plain(command, maxName), err)
	}
	return nil
}

// startCommand starts a program in its own process group. onLine is called with each line of its standard error.
func startCommand(words []string, cfg *Config, onLine func(string)) (*process, error) {
	pipes, err := openPipes()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env, cmd.SysProcAttr = cfg.Env, attributes()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = pipes.in.r, pipes.out.w, pipes.err.w
	c := &child{cmd: cmd, pipes: pipes, onLine: onLine, done: make(chan struct{})}
	started := make(chan error)
	go c.run(cfg.Memory, started)
	if err := <-started; err != nil {
		return nil, err
	}
	return &process{in: pipes.in.w, out: bufio.NewReaderSize(pipes.out.r, 64<<10), killAll: c.kill, done: c.done,
		exitState: func() string { return c.exitState }}, nil
}

// A child is a process started by startCommand.
type child struct {
	cmd       *exec.Cmd
	pipes     *pipes
	onLine    func(string)
	done      chan struct{}
	exitState string // how the process ended

	mu        sync.Mutex
	ended     bool // its process group ID may be reused
	lastLines []string
}

// run starts the child and waits for its end. It has its own thread: Pdeathsig, which kills a child with its parent,
// refers to the parent's thread.
func (c *child) run(memory int64, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := c.cmd.Start()
	c.pipes.closeTheirs()
	if err == nil && memory > 0 {
		if err = bound(c.cmd.Process.Pid, memory); err != nil {
			c.kill()
			err = errors.Join(fmt.Errorf("limit its memory: %w", err), c.cmd.Wait())
		}
	}
	if started <- err; err != nil {
		c.pipes.closeOurs()
		return
	}
	heard := make(chan struct{})
	go func() { defer close(heard); c.listen() }()
	if awaitExit(c.cmd.Process.Pid) {
		c.reap()
		err = c.cmd.Wait()
	} else {
		err = c.cmd.Wait()
		c.reap()
	}
	late := time.NewTimer(patience)
	select {
	case <-heard:
	case <-late.C: // a process outside the group has the pipe open
		c.pipes.err.r.Close()
		<-heard
	}
	late.Stop()
	c.exitState = c.describe(err)
	close(c.done)
	time.AfterFunc(patience, c.pipes.closeOurs) // until then, its answers can be read
}

// reap kills the remaining children of the process, and prevents later kills.
func (c *child) reap() {
	c.kill()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

// kill kills the process group, unless its ID may have been reused.
func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		killGroup(c.cmd.Process)
	}
}

const keptLines = 3 // last lines to report when a process ends

// listen reads standard error. A line that is too long is cut.
func (c *child) listen() {
	r := bufio.NewReaderSize(c.pipes.err.r, 16<<10)
	rest := false
	for {
		part, err := r.ReadSlice('\n')
		if line := strings.TrimRight(Plain(strings.TrimRight(string(part), "\r\n"), MaxHeard), " "); line != "" && !rest {
			c.mu.Lock()
			c.lastLines = append(c.lastLines[max(0, len(c.lastLines)-keptLines+1):], line)
			c.mu.Unlock()
			c.onLine(line)
		}
		if rest = errors.Is(err, bufio.ErrBufferFull); err != nil && !rest {
			return
		}
	}
}

func (c *child) describe(err error) string {
	how := "exit status 0"
	if err != nil {
		how = err.Error()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.lastLines) > 0 {
		how += "; last output: " + strings.Join(c.lastLines, " | ")
	}
	return how
}

// pipes are a process's input, output and standard error.
type pipes struct{ in, out, err pipe }

type pipe struct{ r, w *os.File }

func openPipes() (p *pipes, err error) {
	p = new(pipes)
	for _, one := range []*pipe{&p.in, &p.out, &p.err} {
		if one.r, one.w, err = os.Pipe(); err != nil {
			p.closeTheirs()
			p.closeOurs()
			return nil, err
		}
	}
	return p, nil
}

func (p *pipes) closeTheirs() { closeAll(p.in.r, p.out.w, p.err.w) }

func (p *pipes) closeOurs() { closeAll(p.in.w, p.out.r, p.err.r) }

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}
