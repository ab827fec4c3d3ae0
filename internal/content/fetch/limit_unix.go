//go:build unix

package fetch

import "syscall"

// openFiles returns the soft limit. Package os raises it to the hard limit at program start.
func openFiles() int {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return 0
	}
	return int(min(uint64(r.Cur), 1<<20)) //nolint:unconvert // its type differs between systems
}
