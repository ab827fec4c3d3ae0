package chromium

import (
	"os/exec"
	"syscall"
)

// isolate gives the browser a process group of its own, so that Ctrl-C does not end it before the crawl, and has the
// kernel kill it if kumo is killed.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
