package netlab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Limits are what all processes of a host may take together of this machine. The zero value of a field is no limit.
type Limits struct {
	CPU        float64 // seconds of processor time a second; it has that also where the machine is busy
	Processors int     // that they run on, the first ones of this machine
	Memory     int64   // bytes, files that the system has in memory included; beyond, processes are killed
}

// Usage is what all processes of a host have taken together, of what is limited by Limit, Disk and Bandwidth, since the
// first two were called.
type Usage struct {
	CPU       time.Duration
	Throttled time.Duration // that processes were held back for the limit of CPU, all threads added up
	Peak      int64         // the most bytes of memory at any time
	Reclaims  int64         // how often memory was at its limit
	Written   int64         // bytes to the disk
	Received  int64         // bytes over the network, of all layers, since there is the host
	Sent      int64
}

// quotaPeriod is in what time a host's processes get their share of processor time: short, so that they do not stand
// still for long, and long enough for the kernel's least quota of a millisecond.
const quotaPeriod = 20 * time.Millisecond

// highestShares let those who are limited have what they may, however much others want.
const highestShares = "100000"

// controllers are the parts of the kernel that hold a host's processes within limits, or count for them; all in their
// first version.
var controllers = []string{"cpu", "cpuacct", "cpuset", "memory"}

// Limit holds the processes that are started on the host from now on within limits. It is called once.
func (h *Host) Limit(l Limits) error {
	if h.groups != nil {
		return fmt.Errorf("limit %s: it has limits", h.Name)
	}
	h.groups = make(map[string]string)
	for _, name := range controllers {
		own, err := ownGroup(name)
		if err != nil {
			return fmt.Errorf("limit %s: %w", h.Name, err)
		}
		dir := filepath.Join(own, h.space)
		if err := os.Mkdir(dir, 0o777); err != nil {
			return fmt.Errorf("limit %s: %w", h.Name, err)
		}
		h.groups[name] = dir
	}
	for _, s := range l.settings(filepath.Dir(h.groups["cpuset"])) {
		if err := write(filepath.Join(h.groups[s.controller], s.file), s.value); err != nil {
			return fmt.Errorf("limit %s: %w", h.Name, err)
		}
	}
	return nil
}

// A setting is a line of a controller's file.
type setting struct{ controller, file, value string }

// settings are how limits are told to the controllers; parent is the group of processors that the host's is made in.
func (l Limits) settings(parent string) []setting {
	memories, _ := os.ReadFile(filepath.Join(parent, "cpuset.mems")) // without them, what follows fails and says so
	processors, _ := os.ReadFile(filepath.Join(parent, "cpuset.cpus"))
	if l.Processors > 0 {
		processors = fmt.Appendf(nil, "0-%d", min(l.Processors, runtime.NumCPU())-1)
	}
	all := []setting{
		{"cpuset", "cpuset.mems", strings.TrimSpace(string(memories))},
		{"cpuset", "cpuset.cpus", strings.TrimSpace(string(processors))},
	}
	if l.CPU > 0 {
		quota := time.Duration(l.CPU * float64(quotaPeriod))
		all = append(all,
			setting{"cpu", "cpu.shares", highestShares},
			setting{"cpu", "cpu.cfs_period_us", strconv.FormatInt(quotaPeriod.Microseconds(), 10)},
			setting{"cpu", "cpu.cfs_quota_us", strconv.FormatInt(quota.Microseconds(), 10)})
	}
	if l.Memory > 0 {
		all = append(all, setting{"memory", "memory.limit_in_bytes", strconv.FormatInt(l.Memory, 10)})
	}
	return all
}

// Usage is zero where it was not limited, but for the network.
func (h *Host) Usage() (u Usage, err error) {
	if h.groups != nil {
		stat, err := os.ReadFile(filepath.Join(h.groups["cpu"], "cpu.stat"))
		if err != nil {
			return u, err
		}
		_, after, _ := strings.Cut(string(stat), "throttled_time ")
		throttled, _, _ := strings.Cut(after, "\n")
		nanoseconds, _ := strconv.ParseInt(throttled, 10, 64) // kernels without quotas do not say it
		u.Throttled = time.Duration(nanoseconds)
		for _, count := range []struct {
			controller, file string
			to               *int64
		}{
			{"cpuacct", "cpuacct.usage", (*int64)(&u.CPU)},
			{"memory", "memory.max_usage_in_bytes", &u.Peak},
			{"memory", "memory.failcnt", &u.Reclaims},
		} {
			data, err := os.ReadFile(filepath.Join(h.groups[count.controller], count.file))
			if err == nil {
				*count.to, err = strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
			}
			if err != nil {
				return u, err
			}
		}
	}
	if h.disk != nil {
		if u.Written, err = h.disk.written(); err != nil {
			return u, err
		}
	}
	return u, h.Do(func() error {
		// of this host's own end: what was dropped on the way to it is not in it
		stat, err := os.ReadFile("/proc/thread-self/net/dev")
		if err != nil {
			return err
		}
		_, line, _ := strings.Cut(string(stat), "eth0:")
		fields := strings.Fields(line)
		if len(fields) < 9 {
			return fmt.Errorf("the statistics of eth0 have %d fields", len(fields))
		}
		if u.Received, err = strconv.ParseInt(fields[0], 10, 64); err != nil {
			return err
		}
		u.Sent, err = strconv.ParseInt(fields[8], 10, 64)
		return err
	})
}

// inGroups calls f with this thread in the host's groups: processes that f starts begin there.
func (h *Host) inGroups(f func() error) (err error) {
	if h.groups == nil {
		return f()
	}
	runtime.LockOSThread()
	thread := strconv.Itoa(unix.Gettid())
	defer func() {
		for _, name := range controllers {
			if back := write(filepath.Join(filepath.Dir(h.groups[name]), "tasks"), thread); back != nil {
				err = errors.Join(err, back)
				return // still locked: the thread is never used again
			}
		}
		runtime.UnlockOSThread()
	}()
	for _, name := range controllers {
		if err := write(filepath.Join(h.groups[name], "tasks"), thread); err != nil {
			return err
		}
	}
	return f()
}

// write writes a line into a file of the kernel's.
func write(path, line string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString(line); err != nil {
		return fmt.Errorf("write %s: %w", line, err)
	}
	return nil
}

// ownGroup is the folder of the group that this process is in, of a controller of the first version.
func ownGroup(controller string) (string, error) {
	mount, err := groupsOf(controller)
	if err != nil {
		return "", err
	}
	mine, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mine)) {
		if f := strings.SplitN(strings.TrimSpace(line), ":", 3); len(f) == 3 && has(f[1], controller) {
			return filepath.Join(mount, f[2]), nil
		}
	}
	return "", fmt.Errorf("this process has no group of %s", controller)
}

// groupsOf is where a controller's groups are mounted.
func groupsOf(controller string) (string, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 3 && f[2] == "cgroup" && has(f[3], controller) {
			return f[1], nil
		}
	}
	return "", fmt.Errorf("control groups of %s, version 1, are not mounted", controller)
}

func has(list, word string) bool { return slices.Contains(strings.Split(list, ","), word) }

// removeGroups removes groups of some hosts, in which nothing runs any more.
func removeGroups(which func(space string) bool) error {
	var failed []error
	for _, name := range controllers {
		mount, err := groupsOf(name)
		if err != nil {
			continue // then there are none
		}
		_ = filepath.WalkDir(mount, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() && which(d.Name()) { // others make and remove groups meanwhile
				failed = append(failed, removeGroup(path))
				return filepath.SkipDir
			}
			return nil
		})
	}
	return errors.Join(failed...)
}

// removeGroup waits a moment for processes that were just killed.
func removeGroup(dir string) (err error) {
	for range 200 {
		if err = unix.Rmdir(dir); err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("remove %s: %w", dir, err)
}
