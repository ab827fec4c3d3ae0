package machine

import (
	"syscall"
	"time"
)

// CPUTime returns the CPU time that this process has used.
func CPUTime() time.Duration {
	var created, ended, kernel, user syscall.Filetime
	self, err := syscall.GetCurrentProcess()
	if err == nil {
		err = syscall.GetProcessTimes(self, &created, &ended, &kernel, &user)
	}
	if err != nil {
		return 0
	}
	// in units of 100 ns
	ticks := func(t syscall.Filetime) int64 { return int64(t.HighDateTime)<<32 | int64(t.LowDateTime) }
	return time.Duration(100 * (ticks(kernel) + ticks(user)))
}
