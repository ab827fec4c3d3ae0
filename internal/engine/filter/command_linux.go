package filter

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes puts the child into its own process group, which Ctrl-C does not reach and which can be killed as a whole.
// The child is killed when this process ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// bound limits the address space of a process and its future children.
func bound(pid int, memory int64) error {
	n := uint64(memory)
	return unix.Prlimit(pid, unix.RLIMIT_AS, &unix.Rlimit{Cur: n, Max: n}, nil)
}

// awaitExit waits until a child has exited, and returns true if its process ID is not free for reuse yet.
func awaitExit(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}
