// Package cputime measures the CPU time of a function, for tests.
//
// Unlike wall-clock time, CPU time does not depend on the other load of the machine.
package cputime

import (
	"runtime"
	"time"
)

// Of is for how long f keeps a processor busy, without what other goroutines do for it. Where the system does not say
// it, it is how long f takes.
func Of(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := now()
	f()
	return now() - began
}
