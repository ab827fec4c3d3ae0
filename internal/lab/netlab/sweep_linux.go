package netlab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// namePrefix is the prefix of all labs' namespaces. The PID of the process that created the lab follows, and its start
// time.
const namePrefix = "kumolab-"

const namespaceDir = "/run/netns"

func ip(args ...string) error { return program("ip", args...) }

// ipAll runs many commands of ip in one process in a namespace, because starting the program dominates the cost.
func ipAll(space string, commands []string) error {
	if len(commands) == 0 {
		return nil
	}
	return programWith(strings.NewReader(strings.Join(commands, "\n")+"\n"), "ip", "-n", space, "-batch", "-")
}

func program(name string, args ...string) error { return programWith(nil, name, args...) }

func programWith(input io.Reader, name string, args ...string) error {
	path, err := tool(name)
	if err != nil {
		return err
	}
	var said bytes.Buffer
	cmd := exec.Command(path, args...)
	cmd.Stdin = input
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}

// startTime returns the start time of a process in system ticks. Together with the PID it identifies the process.
func startTime(pid int) (string, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", err
	}
	_, rest, _ := bytes.Cut(data, []byte(") ")) // the process name before it may contain spaces
	fields := bytes.Fields(rest)
	if len(fields) < 20 {
		return "", fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	return string(fields[19]), nil
}

// removeStale removes the labs of processes that no longer run.
func removeStale() error {
	return remove(func(space string) bool {
		parts := strings.SplitN(strings.TrimPrefix(space, namePrefix), "-", 4)
		pid, err := strconv.Atoi(parts[0])
		if !strings.HasPrefix(space, namePrefix) || len(parts) < 4 || err != nil {
			return false
		}
		began, err := startTime(pid)
		return err != nil || began != parts[1]
	})
}

// pids returns the PIDs of the processes in a namespace; none if it does not exist.
func pids(space string) []string {
	path, err := tool("ip")
	if err != nil {
		return nil
	}
	out, _ := exec.Command(path, "netns", "pids", space).Output() // none if the namespace does not exist
	return strings.Fields(string(out))
}

// remove ends the processes in the selected namespaces, and removes the namespaces and all resources of their hosts.
func remove(which func(space string) bool) error {
	found, err := filepath.Glob(filepath.Join(namespaceDir, namePrefix+"*"))
	if err != nil {
		return err
	}
	var failed []error
	for _, path := range found {
		space := filepath.Base(path)
		if !which(space) {
			continue
		}
		for _, field := range pids(space) {
			if pid, err := strconv.Atoi(field); err == nil && pid != os.Getpid() {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may just have ended
			}
		}
		failed = append(failed, ip("netns", "del", space))
	}
	failed = append(failed, removeGroups(which), removeDisks(which))
	return errors.Join(failed...)
}

// sbin lists folders of system administration programs, which may be missing from the PATH of ordinary users.
var sbin = []string{"/usr/sbin", "/sbin", "/usr/local/sbin"}

// tool returns the path of a program, found in PATH or sbin.
func tool(name string) (string, error) {
	path, err := exec.LookPath(name)
	for _, dir := range sbin {
		if err == nil {
			return path, nil
		}
		path, err = exec.LookPath(filepath.Join(dir, name))
	}
	if err != nil {
		return "", fmt.Errorf("%s is neither in PATH nor in %v", name, sbin)
	}
	return path, nil
}
