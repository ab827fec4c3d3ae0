// Package cputime measures the CPU time of a function, for tests.
//
// Unlike wall-clock time, CPU time does not depend on the other load of the machine.
package cputime

import (
	"runtime"
	"time"
)

// Of returns the CPU time that f uses in its own goroutine. On systems without thread CPU time it returns the elapsed
// time.
func Of(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := now()
	f()
	return now() - began
}
