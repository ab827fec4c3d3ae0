package testmain

import (
	"time"
	"unsafe"
)

// JumpClock returns t with its wall clock moved by d relative to its monotonic clock, as after somebody has set the
// clock or after a machine was suspended. d is in whole seconds. It relies on the layout of time.Time: nanoseconds in
// the low 30 bits of its first word, seconds above them.
func JumpClock(t time.Time, d time.Duration) time.Time {
	leapt := t
	*(*uint64)(unsafe.Pointer(&leapt)) += uint64(d/time.Second) << 30
	if leapt.Sub(t) != 0 || leapt.Round(0).Sub(t.Round(0)) != d.Truncate(time.Second) {
		panic("testmain: the layout of time.Time has changed, or the time has no monotonic clock")
	}
	return leapt
}
