//go:build unix && !linux

package filter

import "syscall"

// attributes puts the child into its own process group, which Ctrl-C does not reach and which can be killed as a whole.
// When this process ends, the child reads the end of its input.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// bound does nothing: only Linux can limit the memory of another process.
func bound(int, int64) error { return nil }

// awaitExit returns false: it cannot wait for a child without freeing its process ID.
func awaitExit(int) bool { return false }
