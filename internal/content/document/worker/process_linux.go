package worker

import "syscall"

// attributes let a child end with its parent, and keep signals of the terminal from it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
