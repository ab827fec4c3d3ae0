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

// namePrefix begins the names of all labs' namespaces; the number of the process that made the lab follows, and when that
// began.
const namePrefix = "kumolab-"

const namespaceDir = "/run/netns"

func ip(args ...string) error { return program("ip", args...) }

// ipAll does many commands of the program at once in a namespace; what it costs to start it would be the most of it.
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

// startTime is when a process began, in ticks of the system: with the number it tells it from all others.
func startTime(pid int) (string, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", err
	}
	_, rest, _ := bytes.Cut(data, []byte(") ")) // the name before it may have spaces
	fields := bytes.Fields(rest)
	if len(fields) < 20 {
		return "", fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	return string(fields[19]), nil
}

// removeStale removes the labs of processes that are no more.
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

// pids are the numbers of the processes in a namespace; none if it is gone.
func pids(space string) []string {
	path, err := tool("ip")
	if err != nil {
		return nil
	}
	out, _ := exec.Command(path, "netns", "pids", space).Output() // nobody is where nothing is
	return strings.Fields(string(out))
}

// remove ends what runs in some namespaces, and removes them with all that their hosts had.
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

// sbin is where a system keeps the programs that change it; who is no administrator may not have that in PATH.
var sbin = []string{"/usr/sbin", "/sbin", "/usr/local/sbin"}

// tool is the path of a program, in PATH or in sbin.
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
