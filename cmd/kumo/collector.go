package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"kumo/internal/base/wait"
)

// The garbage collector's target, in percent of live memory. Go's default makes a small crawl use twice the memory that
// it needs, although a collection is cheap, because most live memory is buffers. In a large crawl, collections are
// expensive, and --memory allows more garbage.
const (
	leastGarbage = 30
	mostGarbage  = 100
	smallHeap    = 128 << 20 // live bytes for the smallest target
	largeHeap    = 512 << 20 // live bytes for the largest target
	tuneEvery    = 2 * time.Second
)

func garbageFor(live uint64) int {
	share := (float64(live) - smallHeap) / (largeHeap - smallHeap)
	return leastGarbage + int(min(max(share, 0), 1)*(mostGarbage-leastGarbage))
}

// limitMemory sets the memory limit of the Go runtime, unless the user has set one.
func limitMemory(bytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(bytes)
	}
}

// tuneCollector adapts the garbage collector's target to the live memory until ctx ends, unless the user has set it.
func tuneCollector(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	now := leastGarbage // at the start: the peak of a short crawl may come before the first tick
	debug.SetGCPercent(now)
	for range wait.Ticks(ctx, tuneEvery) {
		metrics.Read(live)
		if percent := garbageFor(live[0].Value.Uint64()); percent != now {
			now = percent
			debug.SetGCPercent(percent)
		}
	}
}
