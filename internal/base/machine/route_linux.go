package machine

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// interfaceSpeed is the speed of the interface by which the default route goes, in megabits a second, as the system has
// it; 0 if it is not known. Only real cards know theirs: virtual ones say nothing, or something that is not true.
func (l *Limits) interfaceSpeed() float64 {
	name := l.defaultInterface()
	if name == "" {
		return 0
	}
	dir := l.path("sys/class/net", name)
	driver, _ := os.Readlink(filepath.Join(dir, "device/driver")) // of who has no device it is ""
	switch filepath.Base(driver) {
	case "vmxnet3", "hv_netvsc": // which say what their host has
		return 0
	}
	if !isFile(filepath.Join(dir, "device")) && !isFile(filepath.Join(dir, "bonding")) {
		return 0
	}
	if speed := readNumber(filepath.Join(dir, "speed")); speed < math.MaxInt32 { // -1, as some have it
		return speed
	}
	return 0
}

func isFile(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// defaultInterface is that of the default route with the least metric, of IPv4's if there are some.
func (l *Limits) defaultInterface() (name string) {
	best := uint64(math.MaxUint64)
	take := func(destination, mask, metric, flags, of string, base int) {
		m, err := strconv.ParseUint(metric, base, 32)
		f, bad := strconv.ParseUint(flags, 16, 32)
		const up, reject = 1, 0x200
		if strings.Trim(destination, "0") == "" && strings.Trim(mask, "0") == "" && err == nil && bad == nil &&
			f&up != 0 && f&reject == 0 && m < best {
			best, name = m, of
		}
	}
	for line := range lines(l.path("proc/self/net/route")) {
		if f := strings.Fields(line); len(f) >= 8 {
			take(f[1], f[7], f[6], f[3], f[0], 10)
		}
	}
	if name != "" {
		return name
	}
	for line := range lines(l.path("proc/self/net/ipv6_route")) {
		if f := strings.Fields(line); len(f) >= 10 {
			take(f[0], f[1], f[5], f[8], f[9], 16)
		}
	}
	return name
}
