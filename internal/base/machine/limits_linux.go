package machine

import (
	"bufio"
	"cmp"
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// deviceOf returns the number of the device that holds a directory, as "MAJOR:MINOR".
func deviceOf(dir string) string {
	var stat unix.Stat_t
	if dir == "" || unix.Stat(dir, &stat) != nil {
		return ""
	}
	return fmt.Sprintf("%d:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev))
}

func (l *Limits) read() Resources {
	g := l.groups()
	return Resources{
		Cores:       minKnown(l.affinity(), g.cores()),
		GHz:         l.gigahertz(),
		MemoryGB:    minKnown(l.memory(), g.memory()) / gigabyte,
		NetworkMbps: l.interfaceSpeed(),
		DiskMbps:    g.writeRate(l.devices()) / megabit,
	}
}

// minKnown returns the smaller of two figures, ignoring unknown ones (0).
func minKnown(a, b float64) float64 {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

func (l *Limits) path(elem ...string) string { return filepath.Join(l.root, filepath.Join(elem...)) }

// readText returns the content of a small file, or "" if it cannot be read.
func readText(name string) string {
	data, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// readNumber returns the number in a file. It returns 0 if there is none, or if it is not positive, as where there is
// no limit.
func readNumber(name string) float64 { return positive(readText(name)) }

func positive(s string) float64 {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n > 0) || math.IsInf(n, 0) {
		return 0
	}
	return n
}

// lines yields the lines of a file.
func lines(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		file, err := os.Open(name)
		if err != nil {
			return
		}
		defer file.Close()
		for all := bufio.NewScanner(file); all.Scan() && yield(all.Text()); {
		}
	}
}

// field returns the value of the first line "KEY: value".
func field(name, key string) string {
	for line := range lines(name) {
		if k, v, _ := strings.Cut(line, ":"); strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// affinity returns the number of processors in the affinity mask of the process, which lie within its cpuset.
func (l *Limits) affinity() float64 {
	list := field(l.path("proc/self/status"), "Cpus_allowed_list")
	return cmp.Or(float64(len(parseCPUs(list))), processors())
}

// parseCPUs parses a list like "0-3,7".
func parseCPUs(list string) (all []int) {
	for _, part := range strings.Split(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(strings.TrimSpace(from))
		last := first
		if isRange && err == nil {
			last, err = strconv.Atoi(strings.TrimSpace(to))
		}
		if err != nil || first < 0 || last-first >= 1<<16 {
			return nil
		}
		for n := first; n <= last; n++ {
			all = append(all, n)
		}
	}
	return all
}

func (l *Limits) memory() float64 {
	kib := strings.TrimSuffix(field(l.path("proc/meminfo"), "MemTotal"), " kB")
	return positive(kib) * 1024
}

// gigahertz returns the mean clock speed of the allowed processors.
func (l *Limits) gigahertz() float64 {
	var sum, n float64
	for _, cpu := range parseCPUs(field(l.path("proc/self/status"), "Cpus_allowed_list")) {
		dir := l.path("sys/devices/system/cpu", "cpu"+strconv.Itoa(cpu), "cpufreq")
		kHz := cmp.Or(readNumber(filepath.Join(dir, "base_frequency")), readNumber(filepath.Join(dir, "cpuinfo_max_freq")))
		if kHz = minKnown(kHz, readNumber(filepath.Join(dir, "scaling_max_freq"))); kHz > 0 {
			sum, n = sum+kHz/1e6, n+1
		}
	}
	if n > 0 {
		return roundTenth(sum / n)
	}
	return roundTenth(l.cpuinfo())
}

// cpuinfo returns the clock speed from /proc/cpuinfo: from the name of the model, or else the current speed, which is
// constant in a virtual machine.
func (l *Limits) cpuinfo() float64 {
	name := l.path("proc/cpuinfo")
	if _, speed, said := strings.Cut(field(name, "model name"), "@"); said {
		if GHz := positive(strings.TrimSuffix(strings.TrimSpace(speed), "GHz")); GHz > 0 {
			return GHz
		}
	}
	var sum, n float64
	for line := range lines(name) {
		if k, v, _ := strings.Cut(line, ":"); strings.TrimSpace(k) == "cpu MHz" {
			sum, n = sum+positive(strings.TrimSpace(v))/1e3, n+1
		}
	}
	return sum / max(n, 1)
}

// roundTenth rounds to one decimal, to hide fluctuations.
func roundTenth(f float64) float64 { return math.Round(f*10) / 10 }
