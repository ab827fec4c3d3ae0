//go:build !unix

package filter

import (
	"os"
	"syscall"
)

// attributes returns nil: when this process ends, a child reads the end of its input.
func attributes() *syscall.SysProcAttr { return nil }

// bound does nothing: only Linux can limit the memory of another process.
func bound(int, int64) error { return nil }

// awaitExit returns false: it cannot wait for a child without freeing its process ID.
func awaitExit(int) bool { return false }

// killGroup kills a process. Its children read the end of their input, if they read it.
func killGroup(p *os.Process) { _ = p.Kill() }
