// Package cputime measures work for tests: by the processor's time and not the clock's, so that it does not matter what
// else the machine has to do.
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
