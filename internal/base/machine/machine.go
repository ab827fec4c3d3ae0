// Package machine reports the resources that a process may use: processors, memory, network and disk.
//
// The figures respect the limits of the operating system and of the process's control groups. Two figures cannot be
// read and are measured: the bandwidth of the network, from the traffic so far ([Line]), and the write speed of the
// disk, from a small test write ([WriteSpeed]).
//
// On Linux all figures come from /proc and /sys. Reading them takes well under a millisecond, so it can be repeated:
// limits change while a process runs. On other systems only the number of processors and the amount of memory are
// known.
//
// An unknown figure is zero and no error, since missing figures are normal in containers and virtual machines.
package machine

import "runtime"

// Resources are what there is. Zero is unknown.
type Resources struct {
	Cores       float64 // processors that may be used; a fraction if less than one is allowed
	GHz         float64 // of these, the mean of what they are made for, not of what they run at just now
	MemoryGB    float64 // of 2^30 bytes
	NetworkMbps float64 // megabits a second
	DiskMbps    float64 // megabits a second, written
}

// Limits finds what this process may use.
type Limits struct {
	root   string // of the tree that has proc and sys
	device string // "MAJOR:MINOR", "": not known
}

// NewLimits makes a Limits for a process that writes below dir, which exists; "" if it writes nothing.
func NewLimits(dir string) *Limits { return &Limits{root: "/", device: deviceOf(dir)} }

// Read reads the limits as they are now. The disk's figure is a limit on writing that was set, not what the disk can
// do.
func (l *Limits) Read() Resources { return l.read() }

// processors is how many this process may be put on.
func processors() float64 { return float64(runtime.NumCPU()) }

const (
	gigabyte = 1 << 30
	megabit  = 1e6 / 8 // bytes
)
