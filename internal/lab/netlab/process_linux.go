package netlab

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

// A Process runs on a host. It and all its children form a process group.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Start starts a command on the host, within its limits. The command ends when this process or the lab ends.
func (h *Host) Start(cmd *exec.Cmd) (*Process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := h.Do(func() error { return h.inGroups(cmd.Start) }); err != nil {
		return nil, fmt.Errorf("start %s on %s: %w", cmd.Path, h.Name, err)
	}
	p := &Process{cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Signal sends a signal to the process and all its children.
func (p *Process) Signal(s syscall.Signal) error {
	select {
	case <-p.done:
		return errors.New("the process has ended")
	default:
		return syscall.Kill(-p.cmd.Process.Pid, s)
	}
}

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Pid returns the process ID.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Code returns the exit code; -1 while the process runs, or if a signal ended it.
func (p *Process) Code() int {
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	default:
		return -1
	}
}

// Wait waits until the process has ended. It returns an error if the process fails, or still runs after that time.
func (p *Process) Wait(most time.Duration) error {
	select {
	case <-p.done:
		return p.err
	case <-time.After(most):
		return fmt.Errorf("%s has not ended within %v", p.cmd.Path, most)
	}
}
