package crawl

import (
	"maps"
	"sync"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/state/frontier"
)

// Vitals help to find out why an engine fetches nothing.
type Vitals struct {
	Answered time.Time        // last answer that did not ask to slow down; zero: none in this run
	Failures map[string]int64 // by kind: attempts since then without an answer
	Failure  string           // error text of the last of them

	Paused        bool
	DiskFull      bool
	DiskFree      uint64 // free bytes at the last check
	DiskMin       uint64 // bytes that must stay free
	OutboxFull    bool
	ShareUsed     bool // this node has used its share of the page limit of all nodes
	Checkpointing bool // a checkpoint or a snapshot is being made

	CommitSilence time.Duration // since the last commit to the journal, which may have been empty
}

// Vitals returns the current values.
func (e *Engine) Vitals() Vitals {
	v := Vitals{Paused: e.holds.pause.shut(), OutboxFull: e.holds.outgoing.full.shut(), DiskFull: e.holds.disk.full.shut(),
		DiskMin: e.holds.disk.minFree, ShareUsed: e.limits.shareUsed.shut(), CommitSilence: e.ledger.Silence()}
	e.holds.disk.mu.Lock()
	v.DiskFree = e.holds.disk.lastFree
	e.holds.disk.mu.Unlock()
	if v.Checkpointing = !e.Checkpoints.busy.TryLock(); !v.Checkpointing {
		e.Checkpoints.busy.Unlock()
	}
	v.Answered, v.Failures, v.Failure = e.runner.visits.outcomes.attempts.since()
	return v
}

// attempts counts failed exchanges since the last answer.
type attempts struct {
	mu       sync.Mutex // guards all fields
	answered time.Time
	failures map[string]int64
	last     string
}

// record counts an exchange.
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
