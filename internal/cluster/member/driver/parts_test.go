package driver

import (
	"context"
	"encoding/binary"
	"log/slog"
	"sync"
	"testing"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// A linkRuntime counts answers to batches of links.
type linkRuntime struct {
	Runtime
	all     sync.WaitGroup
	mu      sync.Mutex // guards answers
	answers map[uint64]int
}

func (r *linkRuntime) Go(f func(context.Context)) { r.all.Go(func() { f(context.Background()) }) }

func (r *linkRuntime) Send(_ strategy.Node, _ Kind, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if number, _, err := member.ReadAnswer(data); err == nil {
		r.answers[number]++
	}
}

// A linkEngine accepts links when it is released.
type linkEngine struct {
	Engine
	release chan struct{}
}

func (e linkEngine) TakeLinks(context.Context, []byte) ([]int, error) {
	<-e.release
	return nil, nil
}

// TestABatchIsTakenOnceAtATime receives batches repeatedly: the engine imports each once at a time, and few at once,
// and they are answered once the engine has them.
func TestABatchIsTakenOnceAtATime(t *testing.T) {
	r, release := &linkRuntime{answers: map[uint64]int{}}, make(chan struct{})
	l := &links{cfg: &Config{Runtime: r, Engine: linkEngine{release: release}, Log: slog.New(slog.DiscardHandler)}}
	for range 3 {
		for number := range uint64(2 * maxImporting) {
			l.receive("b~1", binary.AppendUvarint(nil, number), false)
		}
	}
	if l.received.Load() != maxImporting || l.idle() || len(r.answers) > 0 {
		t.Errorf("%d batches are passed on, idle %v, answers %v", l.received.Load(), l.idle(), r.answers)
	}
	close(release)
	r.all.Wait()
	if len(r.answers) != maxImporting || !l.idle() {
		t.Errorf("%d batches are answered, idle %v", len(r.answers), l.idle())
	}
	for number, n := range r.answers {
		if n != 1 {
			t.Errorf("batch %d is answered %d times", number, n)
		}
	}
	l.receive("b~1", binary.AppendUvarint(nil, 1), false)
	if r.all.Wait(); r.answers[1] != 2 {
		t.Error("a batch whose answer was lost is not answered again")
	}
}
