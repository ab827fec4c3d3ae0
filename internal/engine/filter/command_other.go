//go:build !unix

package filter

import (
	"os"
	"syscall"
)

// attributes are none: what outlives this process sees its input end.
func attributes() *syscall.SysProcAttr { return nil }

// bound bounds nothing: only Linux bounds the memory of another process.
func bound(int, int64) error { return nil }

// awaitExit cannot wait for a child and leave its number its own.
func awaitExit(int) bool { return false }

// killGroup ends a process. Its children see their input end, if they read it.
func killGroup(p *os.Process) { _ = p.Kill() }
