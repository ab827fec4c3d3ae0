package machine

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// groups holds the directories of the control groups of the process: its own and all ancestors that are visible. In a
// container the topmost visible group is the container's. A limit on any of them applies to the process.
type groups struct {
	v2 []string
	v1 map[string][]string // by controller
}

func (l *Limits) groups() groups {
	own := map[string]string{} // the path of the process's group in each hierarchy, by controller; "" is version 2
	for line := range lines(l.path("proc/self/cgroup")) {
		if f := strings.SplitN(line, ":", 3); len(f) == 3 {
			for controller := range strings.SplitSeq(f[1], ",") {
				own[controller] = f[2]
			}
		}
	}
	g := groups{v1: map[string][]string{}}
	for line := range lines(l.path("proc/self/mountinfo")) {
		before, after, _ := strings.Cut(line, " - ")
		where, what := strings.Fields(before), strings.Fields(after)
		if len(where) < 5 || len(what) < 3 {
			continue
		}
		root, at := unescape(where[3]), l.path(unescape(where[4]))
		switch what[0] {
		case "cgroup2":
			g.v2 = append(g.v2, ancestors(at, root, own[""])...)
		case "cgroup":
			for controller := range strings.SplitSeq(what[2], ",") {
				if group, in := own[controller]; in {
					g.v1[controller] = append(g.v1[controller], ancestors(at, root, group)...)
				}
			}
		}
	}
	return g
}

// ancestors returns the directories of a group and its ancestors, in a hierarchy whose subtree below root is mounted at
// the directory at. If the group is outside that subtree, only the mount point is visible.
func ancestors(at, root, group string) (all []string) {
	rest, below := strings.CutPrefix(group, strings.TrimSuffix(root, "/"))
	if !below || rest != "" && rest[0] != '/' || slices.Contains(strings.Split(rest, "/"), "..") {
		rest = ""
	}
	for rest = filepath.Clean("/" + rest); rest != "/"; rest = filepath.Dir(rest) {
		all = append(all, filepath.Join(at, rest))
	}
	return append(all, at)
}

// unescape decodes a field of mountinfo, where white space is encoded as a backslash and three octal digits.
func unescape(s string) string {
	var b strings.Builder
	for {
		before, after, escaped := strings.Cut(s, `\`)
		b.WriteString(before)
		if !escaped {
			return b.String()
		}
		if len(after) >= 3 {
			if c, err := strconv.ParseUint(after[:3], 8, 8); err == nil {
				b.WriteByte(byte(c))
				s = after[3:]
				continue
			}
		}
		b.WriteByte('\\')
		s = after
	}
}

// cores returns the CPU limit of the groups in processors; 0 without a limit.
func (g groups) cores() (most float64) {
	for _, dir := range g.v2 { // "max 100000", or "50000 100000": quota and period in microseconds
		quota, period, _ := strings.Cut(readText(filepath.Join(dir, "cpu.max")), " ")
		most = minKnown(most, share(positive(quota), positive(period)))
	}
	for _, dir := range g.v1["cpu"] {
		quota, period := readNumber(
			filepath.Join(dir, "cpu.cfs_quota_us"),
		), readNumber(
			filepath.Join(dir, "cpu.cfs_period_us"),
		)
		most = minKnown(most, share(quota, period))
	}
	return most
}

func share(quota, period float64) float64 {
	if period == 0 {
		return 0
	}
	return quota / period
}

// memory returns the memory limit of the groups in bytes; 0 without a limit. memory.high counts as a limit, because a
// group above it is slowed down heavily.
func (g groups) memory() (most float64) {
	for _, dir := range g.v2 {
		most = minKnown(most, readNumber(filepath.Join(dir, "memory.max")))
		most = minKnown(most, readNumber(filepath.Join(dir, "memory.high")))
	}
	for _, dir := range g.v1["memory"] {
		most = minKnown(most, readNumber(filepath.Join(dir, "memory.limit_in_bytes"))) // no limit is 2^63 less a page
	}
	return most
}

// writeRate returns the write limit of the groups to any of the devices, in bytes per second; 0 without a limit.
func (g groups) writeRate(devices []string) (most float64) {
	for _, dir := range g.v2 {
		for line := range lines(filepath.Join(dir, "io.max")) { // "8:0 rbps=max wbps=1048576 riops=max wiops=max"
			f := strings.Fields(line)
			if len(f) == 0 || !slices.Contains(devices, f[0]) {
				continue
			}
			for _, one := range f[1:] {
				if limit, is := strings.CutPrefix(one, "wbps="); is {
					most = minKnown(most, positive(limit))
				}
			}
		}
	}
	for _, dir := range g.v1["blkio"] {
		for line := range lines(filepath.Join(dir, "blkio.throttle.write_bps_device")) { // "8:0 1048576"
			if f := strings.Fields(line); len(f) == 2 && slices.Contains(devices, f[0]) {
				most = minKnown(most, positive(f[1]))
			}
		}
	}
	return most
}

// devices returns the numbers of the device that holds the directory and of all devices below it: the disk of a
// partition, and the parts of a volume. A limit on any of them applies.
func (l *Limits) devices() (all []string) {
	const deepest = 64 // a bound for stacked volumes
	for next := []string{l.device}; len(next) > 0 && len(all) < deepest; next = next[1:] {
		device := next[0]
		dir, err := filepath.EvalSymlinks(l.path("sys/dev/block", device))
		if device == "" || slices.Contains(all, device) {
			continue
		}
		all = append(all, device)
		if err != nil { // the file system has no device
			continue
		}
		if readText(filepath.Join(dir, "partition")) != "" {
			next = append(next, readText(filepath.Join(filepath.Dir(dir), "dev")))
		}
		below, _ := filepath.Glob(filepath.Join(dir, "slaves", "*", "dev")) // the pattern is valid
		for _, dev := range below {
			next = append(next, readText(dev))
		}
	}
	return all
}
