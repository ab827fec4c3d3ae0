// Package machine says what a process has to crawl with: processors, memory, network and disk, as the system and the
// control groups that the process is in let it use them. What cannot be known by reading is measured: the line to the
// web from what was read over it ([Line]), the disk by writing a little ([WriteSpeed]).
//
// On Linux all is read from /proc and /sys, in well under a millisecond, so that it may be read again now and then:
// limits change while a process runs. Other systems say how many processors and how much memory there are.
//
// Unknown is zero, and no error: it is normal in containers and virtual machines.
package machine

import "runtime"

// Figures are what there is. Zero is unknown.
type Figures struct {
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
func (l *Limits) Read() Figures { return l.read() }

// processors is how many this process may be put on.
func processors() float64 { return float64(runtime.NumCPU()) }

const (
	gigabyte = 1 << 30
	megabit  = 1e6 / 8 // bytes
)
