package filter

import (
	"errors"
	"sync"

	"kumo/internal/stats"
)

// A tally is what has become of questions and processes.
type tally struct {
	mu     sync.Mutex
	counts stats.FilterCounts
}

func (t *tally) point(name string) *stats.FilterPoint {
	p := t.counts.Points[name]
	if p == nil {
		p = &stats.FilterPoint{}
		t.counts.Points[name] = p
	}
	return p
}

func (t *tally) asked(point string, a *Answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.point(point)
	p.Asked++
	if a.Drop != "" {
		p.Dropped++
	} else if a.Changes() {
		p.Changed++
	}
}

func (t *tally) defaulted(point string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.point(point).Unanswered++
}

func (t *tally) trouble(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case errors.Is(err, errLate):
		t.counts.Late++
	case errors.Is(err, errNonsense):
		t.counts.Nonsense++
	default:
		t.counts.Crashed++
	}
	t.counts.Trouble = Plain(err.Error(), MaxReason)
}

// Counts are those of this run, and of those that GoOn was told.
func (t *tally) Counts() stats.FilterCounts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts.Clone()
}

// GoOn counts on from what an earlier run has counted.
func (t *tally) GoOn(was stats.FilterCounts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts.Add(was)
}
