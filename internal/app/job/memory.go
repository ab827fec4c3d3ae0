package job

import (
	"kumo/internal/base/machine"
	"kumo/internal/engine/crawl"
)

const (
	minMemory     = 256 << 10 // smallest budget; less would only suffice for buffers
	defaultMemory = 64 << 20  // smallest default budget
	assumedMemory = 4 << 30   // assumed if the machine's memory is unknown

	minShares = 48 << 20 // for pages in flight, whatever the budget

	baseMemory = 150 << 20 // beyond --memory: the process itself, minShares, and their garbage
	// The part of baseMemory that the garbage collector does not see, or overshoots when pages arrive faster than it
	// works.
	uncollected  = 96 << 20
	exchangeCost = 64 << 10 // per exchange beyond the first baseHosts, with its buffers and those of TLS
	baseHosts    = 256
)

// MemoryBudget returns the user's memory budget in bytes. Half is for known URLs, a quarter for queues, an eighth for
// digests (see KnownMemory), and an eighth for pages in flight.
func (j *Job) MemoryBudget() int64 {
	if j.Memory > 0 {
		return max(j.Memory, minMemory)
	}
	return max(machineMemory()/3, defaultMemory)
}

// Shares returns the memory for pages in flight: responses and data derived from them.
func (j *Job) Shares() crawl.Shares { return crawl.Shares(j.MemoryBudget()/8 + minShares) }

// MemoryLimit returns the soft limit for the garbage collector: five quarters of the budget, to allow for garbage, and
// the process's own memory.
func (j *Job) MemoryLimit() int64 {
	return j.MemoryBudget()*5/4 + baseMemory - uncollected + int64(max(0, j.Frontier.Hosts-baseHosts))*exchangeCost
}

// machineMemory returns the memory available to this process, considering the limits that are set, if known.
func machineMemory() int64 {
	if gb := machine.NewLimits("").Read().MemoryGB; gb > 0 {
		return int64(gb * (1 << 30))
	}
	return assumedMemory
}

// CookieMemory returns the memory for cookies set by servers, a part of that for pages in flight.
func (j *Job) CookieMemory() int64 { return min(int64(j.Shares())/8, 16<<20) }
