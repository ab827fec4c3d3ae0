package machine

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// groups are the folders of the control groups that the process is in, its own and all above it, as far as they can be
// seen: a process in a container sees its container's as the first. A limit on any of them holds for the process.
type groups struct {
	v2 []string
	v1 map[string][]string // by controller
}

func (l *Limits) groups() groups {
	own := map[string]string{} // the process's group in a hierarchy, by controller; "" is version 2
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

// ancestors are the folders of a group and of those above it, where a hierarchy is mounted at a folder from root on. A
// group that lies elsewhere is not to be seen: of it the mounted root is all that is known.
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

// unescape is a field of mountinfo, which has blanks and the like as three octal digits behind a backslash.
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

// cores is how many processors' time the groups may use; 0: as much as there is.
func (g groups) cores() (most float64) {
	for _, dir := range g.v2 { // "max 100000", or microseconds in so many
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

// memory is how many bytes the groups may have; 0: as many as there are. Beyond memory.high, too, a group makes no
// progress to speak of.
func (g groups) memory() (most float64) {
	for _, dir := range g.v2 {
		most = minKnown(most, readNumber(filepath.Join(dir, "memory.max")))
		most = minKnown(most, readNumber(filepath.Join(dir, "memory.high")))
	}
	for _, dir := range g.v1["memory"] {
		most = minKnown(most, readNumber(filepath.Join(dir, "memory.limit_in_bytes"))) // 2^63 less a page: no limit
	}
	return most
}

// writeRate is how many bytes a second the groups may write to any of some devices; 0: as many as these can.
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

// devices are the device on which the folder lies, and those below it: the disk of a partition, and those that a volume
// is made of. A limit on any of them holds.
func (l *Limits) devices() (all []string) {
	const deepest = 64 // of volumes on volumes
	for next := []string{l.device}; len(next) > 0 && len(all) < deepest; next = next[1:] {
		device := next[0]
		dir, err := filepath.EvalSymlinks(l.path("sys/dev/block", device))
		if device == "" || slices.Contains(all, device) {
			continue
		}
		all = append(all, device)
		if err != nil { // of a file system without a device
			continue
		}
		if readText(filepath.Join(dir, "partition")) != "" {
			next = append(next, readText(filepath.Join(filepath.Dir(dir), "dev")))
		}
		below, _ := filepath.Glob(filepath.Join(dir, "slaves", "*", "dev")) // the pattern is a good one
		for _, dev := range below {
			next = append(next, readText(dev))
		}
	}
	return all
}
