package meshnode

import (
	"context"
	"log/slog"
	"sync"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/mesh"
)

// A few goroutines pass dispatched links to the engine. Each batch waits until it is durable; concurrent batches share
// a commit.
const (
	maxIntakes        = 32   // concurrent batches
	maxPendingIntakes = 1024 // waiting ones; further batches are rejected, and sent again
)

// An intake passes dispatched links to the engine. It is safe for concurrent use.
type intake struct {
	engine *engineRef
	inbox  *inbox
	tasks  *tasks
	risks  *atRisk
	log    *slog.Logger

	mu      sync.Mutex // guards below
	waiting []mesh.Enqueue
	running int // goroutines
}

func (t *intake) add(a mesh.Enqueue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.engine.get() == nil || len(t.waiting) >= maxPendingIntakes:
		t.inbox.send(mesh.Enqueued{ID: a.ID, Refused: true})
	case t.running < maxIntakes:
		t.running++
		t.tasks.run("take links", func(ctx context.Context) error { t.run(ctx, a); return nil })
	default:
		t.waiting = append(t.waiting, a)
	}
}

func (t *intake) run(ctx context.Context, a mesh.Enqueue) {
	for {
		t.enqueue(ctx, a)
		t.mu.Lock()
		if len(t.waiting) == 0 {
			t.running--
			t.mu.Unlock()
			return
		}
		a = t.waiting[0]
		t.waiting = t.waiting[1:]
		t.mu.Unlock()
	}
}

func (t *intake) enqueue(ctx context.Context, a mesh.Enqueue) {
	data := []byte{member.LinksVersion}
	var first []int // the links of first visits
	for i, k := range a.Links {
		if k.Visit == 0 {
			data, first = member.AppendLink(data, k.Item), append(first, i)
		}
	}
	e := t.engine.get()
	if a.Timing != (mesh.Timing{}) {
		e.ImportDelay(a.Host, a.Timing.Delay, a.Timing.Wait)
	}
	done := make([]bool, len(a.Links))
	err := t.enqueueRevisits(ctx, e, a.Links, done)
	if err == nil && len(first) > 0 {
		var over []bool
		if over, err = e.TakeDispatched(ctx, data); err == nil {
			err = t.risks.recordDone(ctx, data, over)
		}
		for i, j := range first {
			done[j] = i < len(over) && over[i]
		}
	}
	if err != nil && ctx.Err() == nil {
		t.log.Debug("cannot accept links now", "host", a.Host, "err", err)
	}
	t.inbox.send(mesh.Enqueued{ID: a.ID, Done: done, Refused: err != nil})
}
