package filter

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes: a group of its own, which Ctrl-C does not reach and which can be killed as a whole; and its end where
// this process ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// bound bounds a process's address space, and that of the children that it will have.
func bound(pid int, memory int64) error {
	n := uint64(memory)
	return unix.Prlimit(pid, unix.RLIMIT_AS, &unix.Rlimit{Cur: n, Max: n}, nil)
}

// awaitExit waits until a child has ended, and reports true if its number is still its own.
func awaitExit(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}
