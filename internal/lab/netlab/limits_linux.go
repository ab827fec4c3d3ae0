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

// Limits are the resources that all processes of a host may use together. The zero value of a field means no limit.
type Limits struct {
	CPU        float64 // seconds of processor time per second, guaranteed even on a busy machine
	Processors int     // number of processors, the first ones of this machine
	Memory     int64   // bytes, including cached files; beyond it, processes are killed
}

// Usage is the resource usage of all processes of a host, for the resources limited by Limit, Disk and Bandwidth. CPU,
// memory and disk count from the call of Limit or Disk.
type Usage struct {
	CPU       time.Duration
	Throttled time.Duration // time that threads were held back by the CPU limit, summed over all threads
	Peak      int64         // highest memory usage in bytes
	Reclaims  int64         // times that memory was at its limit
	Written   int64         // bytes written to the disk
	Received  int64         // bytes over the network, all layers included, since the host was created
	Sent      int64
}

// quotaPeriod is the period of the CPU quota. It is short, so that processes do not stall for long, and long enough for
// the kernel's minimum quota of one millisecond.
const quotaPeriod = 20 * time.Millisecond

// highestShares give limited processes their full quota, however busy the machine is.
const highestShares = "100000"

// controllers are the kernel's control group controllers that limit or account for a host's processes; all version 1.
var controllers = []string{"cpu", "cpuacct", "cpuset", "memory"}

// Limit limits the processes that are started on the host from now on. Call it once.
func (h *Host) Limit(l Limits) error {
	if h.groups != nil {
		return fmt.Errorf("limit %s: limits are already set", h.Name)
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

// A setting is a value in a control group file.
type setting struct{ controller, file, value string }

// settings returns the limits as control group settings. parent is the cpuset group in which the host's group is
// created.
func (l Limits) settings(parent string) []setting {
	memories, _ := os.ReadFile(filepath.Join(parent, "cpuset.mems")) // if this fails, the next write reports it
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

// Usage returns the host's resource usage. Fields of resources that are not limited are zero, except for the network.
func (h *Host) Usage() (u Usage, err error) {
	if h.groups != nil {
		stat, err := os.ReadFile(filepath.Join(h.groups["cpu"], "cpu.stat"))
		if err != nil {
			return u, err
		}
		_, after, _ := strings.Cut(string(stat), "throttled_time ")
		throttled, _, _ := strings.Cut(after, "\n")
		nanoseconds, _ := strconv.ParseInt(throttled, 10, 64) // kernels without quotas do not report it
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
		// Counts at the host's own end, so packets dropped on the way are not included.
		stat, err := os.ReadFile("/proc/thread-self/net/dev")
		if err != nil {
			return err
		}
		_, line, _ := strings.Cut(string(stat), "eth0:")
		fields := strings.Fields(line)
		if len(fields) < 9 {
			return fmt.Errorf("statistics of eth0 have %d fields", len(fields))
		}
		if u.Received, err = strconv.ParseInt(fields[0], 10, 64); err != nil {
			return err
		}
		u.Sent, err = strconv.ParseInt(fields[8], 10, 64)
		return err
	})
}

// inGroups calls f with this thread in the host's control groups, so that processes started by f belong to them.
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
				return // without unlocking: the thread is never reused
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

// write writes a line to a kernel file.
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

// ownGroup returns the folder of this process's control group for a version 1 controller.
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
	return "", fmt.Errorf("this process has no control group of %s", controller)
}

// groupsOf returns the mount point of a controller's groups.
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

// removeGroups removes control groups of the selected hosts. They must be empty.
func removeGroups(which func(space string) bool) error {
	var failed []error
	for _, name := range controllers {
		mount, err := groupsOf(name)
		if err != nil {
			continue // not mounted, so there are none
		}
		_ = filepath.WalkDir(mount, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() && which(d.Name()) { // other processes create and remove groups concurrently
				failed = append(failed, removeGroup(path))
				return filepath.SkipDir
			}
			return nil
		})
	}
	return errors.Join(failed...)
}

// removeGroup removes a group. It waits briefly for processes that were just killed.
func removeGroup(dir string) (err error) {
	for range 200 {
		if err = unix.Rmdir(dir); err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("remove %s: %w", dir, err)
}
