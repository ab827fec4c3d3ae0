package job

import (
	"kumo/internal/base/machine"
	"kumo/internal/engine/crawl"
)

const (
	minMemory     = 256 << 10 // of what a user asks for: less would be buffers only
	defaultMemory = 64 << 20  // the least where nobody asks
	assumedMemory = 4 << 30   // of a machine that does not say

	minShares = 48 << 20 // for pages under way, whatever the user asks for

	baseMemory = 150 << 20 // that the process may have beside --memory: itself, minShares, and the garbage of these
	// of that, what the collector does not see, and what it overshoots where pages come faster than it works
	uncollected  = 96 << 20
	exchangeCost = 64 << 10 // of an exchange under way, with its buffers and those of TLS, beyond the first baseHosts
	baseHosts    = 256
)

// MemoryBudget is what the user grants, in bytes. Seven eighths go to what the crawl knows: half to known URLs, a
// quarter to queues, an eighth to digests; see KnownMemory. The last is for pages under way.
func (j *Job) MemoryBudget() int64 {
	if j.Memory > 0 {
		return max(j.Memory, minMemory)
	}
	return max(machineMemory()/3, defaultMemory)
}

// Shares is what pages under way may take: answers that come, and what is made of them.
func (j *Job) Shares() crawl.Shares { return crawl.Shares(j.MemoryBudget()/8 + minShares) }

// MemoryLimit is what the collector keeps the process below, by working harder when it comes near: a quarter more than
// the user grants, for garbage, and what the program takes itself.
func (j *Job) MemoryLimit() int64 {
	return j.MemoryBudget()*5/4 + baseMemory - uncollected + int64(max(0, j.Frontier.Hosts-baseHosts))*exchangeCost
}

// machineMemory is what this process may have, by the machine and by the limits that are set, as far as it can be
// known.
func machineMemory() int64 {
	if gb := machine.NewLimits("").Read().MemoryGB; gb > 0 {
		return int64(gb * (1 << 30))
	}
	return assumedMemory
}

// CookieMemory is what cookies that servers set may take, of what is for pages under way.
func (j *Job) CookieMemory() int64 { return min(int64(j.Shares())/8, 16<<20) }
