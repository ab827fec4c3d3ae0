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

// killGroup kills what a browser that has ended left of its processes, and reaps those whose parent this process is: as
// the first process of a container, it inherits them.
func killGroup(group int) {
	_ = syscall.Kill(-group, syscall.SIGKILL) // usually none is left
	for {
		if pid, err := syscall.Wait4(-group, nil, syscall.WNOHANG, nil); err != nil || pid <= 0 {
			return
		}
	}
}
