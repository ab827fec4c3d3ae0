package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
)

// Files and sampling rates of profiles.
const (
	cpuProfile   = "cpu.pprof"
	blockingRate = 10_000 // one sample per this many nanoseconds of blocking
	contention   = 100    // one sample per this many contention events
)

// atEnd lists the profiles written at the end of the run.
var atEnd = []string{"heap", "allocs", "goroutine", "block", "mutex"}

// startProfile starts to profile the process. It writes to a folder, which it creates if necessary. The returned
// function ends the profile.
func startProfile(dir string) (stop func() error, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, usagef("--profile: %v", err)
	}
	f, err := os.Create(filepath.Join(dir, cpuProfile))
	if err != nil {
		return nil, usagef("--profile: %v", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("--profile: %w", err), f.Close())
	}
	runtime.SetBlockProfileRate(blockingRate)
	runtime.SetMutexProfileFraction(contention)
	return func() error {
		pprof.StopCPUProfile()
		runtime.SetBlockProfileRate(0)
		runtime.SetMutexProfileFraction(0)
		err := f.Close()
		runtime.GC() // so that the heap profile is current
		for _, name := range atEnd {
			err = errors.Join(err, writeProfile(dir, name))
		}
		return err
	}, nil
}

func writeProfile(dir, name string) error {
	f, err := os.Create(filepath.Join(dir, name+".pprof"))
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup(name).WriteTo(f, 0), f.Close())
}
