//go:build unix

package fetch

import "syscall"

// files is how many files this process may have open.
func files() int {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return fewFiles
	}
	return int(min(uint64(r.Cur), 1<<20)) //nolint:unconvert // its type differs between systems
}
