//go:build unix && !linux

package worker

import "syscall"

// attributes keep signals of the terminal from a child. It ends with its parent because its input is closed.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
