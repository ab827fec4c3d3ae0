package crawl

import (
	"maps"
	"sync"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/state/frontier"
)

// Vitals are what tells why an engine fetches nothing, if it does not.
type Vitals struct {
	Answered time.Time        // when a server answered last, but by a call to slow down; zero: none has, in this run
	Failures map[string]int64 // attempts since then that brought no answer, by kind
	Failure  string           // the last of them, in words

	Paused        bool
	DiskFull      bool
	DiskFree      uint64 // bytes, when it was looked last
	DiskMin       uint64 // bytes that it must have left
	OutboxFull    bool
	Checkpointing bool // a checkpoint, or a snapshot, is being made
}

// Vitals are those of now.
func (e *Engine) Vitals() Vitals {
	v := Vitals{Paused: e.holds.pause.shut(), OutboxFull: e.holds.outgoing.full.shut(), DiskFull: e.holds.disk.full.shut(),
		DiskMin: e.holds.disk.minFree}
	e.holds.disk.mu.Lock()
	v.DiskFree = e.holds.disk.lastFree
	e.holds.disk.mu.Unlock()
	if v.Checkpointing = !e.Checkpoints.busy.TryLock(); !v.Checkpointing {
		e.Checkpoints.busy.Unlock()
	}
	v.Answered, v.Failures, v.Failure = e.runner.visits.outcomes.attempts.since()
	return v
}

// attempts are what became of exchanges since the last answer.
type attempts struct {
	mu       sync.Mutex // guards all
	answered time.Time
	failures map[string]int64
	last     string
}

// record takes an exchange in.
func (a *attempts) record(now time.Time, f *visitOutcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case f.Failure != page.None:
		if a.failures == nil {
			a.failures = map[string]int64{}
		}
		a.failures[string(f.Failure)]++
		a.last = f.Detail
	case f.Outcome == frontier.Answered:
		a.answered, a.failures, a.last = now, nil, ""
	}
}

func (a *attempts) since() (answered time.Time, failures map[string]int64, last string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.answered, maps.Clone(a.failures), a.last
}
