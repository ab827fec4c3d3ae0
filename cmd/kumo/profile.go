package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
)

// The files of a profile, and how often what they count is looked at.
const (
	cpuProfile   = "cpu.pprof"
	blockingRate = 10_000 // nanoseconds of blocking for a sample
	contention   = 100    // events of contention for a sample
)

// atEnd are the profiles that are written when the run has ended.
var atEnd = []string{"heap", "allocs", "goroutine", "block", "mutex"}

// startProfile begins to profile the process into a folder, which it makes when there is none. What it returns ends the
// profile.
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
		runtime.GC() // so that heap is of now
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
