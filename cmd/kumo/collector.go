package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"kumo/internal/base/wait"
)

// How much garbage there may be, in percent of what lives: Go's default lets a small crawl take twice what it needs,
// where a collection costs next to nothing, as most of what lives is buffers. In a large one it is worth its room, of
// which --memory has granted much.
const (
	leastGarbage = 30
	mostGarbage  = 100
	smallHeap    = 128 << 20 // what lives, with the least garbage
	largeHeap    = 512 << 20 // with the most
	tuneEvery    = 2 * time.Second
)

func garbageFor(live uint64) int {
	share := (float64(live) - smallHeap) / (largeHeap - smallHeap)
	return leastGarbage + int(min(max(share, 0), 1)*(mostGarbage-leastGarbage))
}

// limitMemory has the collector keep the process below a limit, unless the user has set one.
func limitMemory(bytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(bytes)
	}
}

// tuneCollector has the collector follow what lives, unless the user has set it.
func tuneCollector(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	now := 0
	for range wait.Ticks(ctx, tuneEvery) {
		metrics.Read(live)
		if percent := garbageFor(live[0].Value.Uint64()); percent != now {
			now = percent
			debug.SetGCPercent(percent)
		}
	}
}
