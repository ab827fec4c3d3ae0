// Package machine reports the resources that a process may use: processors, memory, network and disk.
//
// The figures respect the limits of the operating system and of the process's control groups. Two figures cannot be
// read and are measured: the bandwidth of the network, from the traffic so far ([BandwidthMeter]), and the write speed
// of the disk, from a small test write ([WriteSpeed]).
//
// On Linux all figures come from /proc and /sys. Reading them takes well under a millisecond, so it can be repeated:
// limits change while a process runs. On other systems only the number of processors and the amount of memory are
// known.
//
// An unknown figure is zero and no error, since missing figures are normal in containers and virtual machines.
package machine

import "runtime"

// Resources are the resources of a process. Zero means unknown.
type Resources struct {
	Cores       float64 // usable processors; a fraction if limited to less than one
	GHz         float64 // mean nominal clock speed of these, not the current one
	MemoryGB    float64 // in units of 2^30 bytes
	NetworkMbps float64 // megabits per second
	DiskMbps    float64 // megabits per second, for writing
}

// Limits reads the resource limits of this process.
type Limits struct {
	root   string // of the tree that contains proc and sys
	device string // "MAJOR:MINOR"; "" if unknown
}

// NewLimits returns the Limits of a process that writes below dir, which must exist; "" if it does not write files.
func NewLimits(dir string) *Limits { return &Limits{root: "/", device: deviceOf(dir)} }

// Read reads the current limits. DiskMbps is a configured limit on writing, not the capability of the disk.
func (l *Limits) Read() Resources { return l.read() }

// processors returns the number of processors available to this process.
func processors() float64 { return float64(runtime.NumCPU()) }

const (
	gigabyte = 1 << 30
	megabit  = 1e6 / 8 // bytes
)
