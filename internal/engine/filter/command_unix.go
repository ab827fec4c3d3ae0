//go:build unix

package filter

import (
	"os"
	"syscall"
)

// killGroup kills a process and its group.
func killGroup(p *os.Process) {
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL) // the group may be gone
}
