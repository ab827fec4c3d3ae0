package testmain

import "golang.org/x/sys/unix"

// inMemory reports whether a folder is in memory and has room.
func inMemory(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && s.Type == unix.TMPFS_MAGIC && s.Bavail*uint64(s.Bsize) >= leastMemory
}
