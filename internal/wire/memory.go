package wire

import (
	"bufio"
	"fmt"
	"os"
)

const (
	leastMemory = 256 << 10 // of what a user asks for: less would be buffers only
	ordinary    = 64 << 20  // the least where nobody asks
	guess       = 4 << 30   // of a machine that does not say
	handCost    = 1 << 20   // of a page in hand, with its buffers
	base        = 64 << 20  // of the program itself
)

// memory is what queues and known URLs may take.
func (j *Job) memory() int64 {
	if j.Memory > 0 {
		return max(j.Memory, leastMemory)
	}
	return max(machineMemory()/3, ordinary)
}

// MemoryLimit is what the whole process should stay below: queues and known URLs, half as much again for the garbage of them, and
// what pages in hand take. The collector works harder when it comes near.
func (j *Job) MemoryLimit() int64 {
	return j.memory()*3/2 + int64(max(j.Frontier.Hosts, 64))*handCost + base
}

// machineMemory is what the machine has, as far as it can be known.
func machineMemory() int64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return guess
	}
	defer func() { _ = f.Close() }() // it is only read
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var kib int64
		if _, err := fmt.Sscanf(lines.Text(), "MemTotal: %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	return guess
}
