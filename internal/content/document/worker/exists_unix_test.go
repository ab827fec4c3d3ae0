//go:build unix

package worker

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// exists reports whether a process runs. One that has ended and is not yet removed does not.
func exists(pid int) bool {
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && strings.Contains(string(stat), ") Z ") {
		return false
	}
	return syscall.Kill(pid, 0) == nil
}
