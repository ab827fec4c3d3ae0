package machine

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// interfaceSpeed returns the speed of the default route's network interface in megabits per second, as the system
// reports it; 0 if unknown. Only physical interfaces report a reliable speed.
func (l *Limits) interfaceSpeed() float64 {
	name := l.defaultInterface()
	if name == "" {
		return 0
	}
	dir := l.path("sys/class/net", name)
	driver, _ := os.Readlink(filepath.Join(dir, "device/driver")) // "" without a device
	switch filepath.Base(driver) {
	case "vmxnet3", "hv_netvsc": // they report the speed of the virtual machine's host
		return 0
	}
	if !isFile(filepath.Join(dir, "device")) && !isFile(filepath.Join(dir, "bonding")) {
		return 0
	}
	if speed := readNumber(filepath.Join(dir, "speed")); speed < math.MaxInt32 { // some report -1 if unknown
		return speed
	}
	return 0
}

func isFile(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// defaultInterface returns the interface of the default route with the lowest metric. IPv4 routes take precedence over
// IPv6 routes.
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
