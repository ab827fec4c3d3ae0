//go:build unix && !linux

package filter

import "syscall"

// attributes: a group of its own, which Ctrl-C does not reach and which can be killed as a whole. What outlives this
// process sees its input end.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// bound bounds nothing: only Linux bounds the memory of another process.
func bound(int, int64) error { return nil }

// awaitExit cannot wait for a child and leave its number its own.
func awaitExit(int) bool { return false }
