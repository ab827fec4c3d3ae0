package testmain

import (
	"time"
	"unsafe"
)

// JumpClock is a time whose wall clock is d ahead of its monotonic one, or behind it, as after somebody has set the clock,
// or after a machine was suspended for d, whole seconds. It relies on how package time lays a Time out: nanoseconds in
// the low 30 bits of its first word, seconds above them.
func JumpClock(t time.Time, d time.Duration) time.Time {
	leapt := t
	*(*uint64)(unsafe.Pointer(&leapt)) += uint64(d/time.Second) << 30
	if leapt.Sub(t) != 0 || leapt.Round(0).Sub(t.Round(0)) != d.Truncate(time.Second) {
		panic("testmain: package time lays a Time out otherwise, or the time has no monotonic clock")
	}
	return leapt
}
