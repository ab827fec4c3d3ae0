//go:build unix

package filter

import (
	"os"
	"syscall"
)

// killGroup ends a process and those of its group.
func killGroup(p *os.Process) {
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL) // there may be none any more
}
