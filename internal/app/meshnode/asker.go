package meshnode

import (
	"context"
	"sync"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
)

// An asker has the questions that other nodes have yet to answer. Any goroutine may use it.
type asker struct {
	msgs *messages

	mu   sync.Mutex // guards below
	last uint64     // the number of the last question
	open map[uint64]question
}

type question struct {
	to     strategy.Node
	answer byte // kind of message
	valid  func(answer []byte) bool
	got    chan<- []byte
}

// answerOf is the kind of message that answers another.
var answerOf = map[byte]byte{kindKnow: kindKnown, kindCount: kindCounted}

func newAsker(msgs *messages) *asker { return &asker{msgs: msgs, open: map[uint64]question{}} }

// ask sends a question again and again until a valid answer comes or ctx ends; nil: none has come.
func (a *asker) ask(ctx context.Context, to strategy.Node, kind byte, body []byte, every time.Duration,
	valid func(answer []byte) bool) []byte {
	got := make(chan []byte, 1)
	a.mu.Lock()
	a.last++
	id := a.last
	a.open[id] = question{to, answerOf[kind], valid, got}
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.open, id)
	}()
	var w varint.Writer
	w.Uint(id)
	w = append(w, body...)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		a.msgs.send(to, kind, w)
		select {
		case x := <-got:
			return x
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (a *asker) heard(from strategy.Node, kind byte, data []byte) {
	r := varint.Reader{Rest: data}
	id := r.Uint()
	a.mu.Lock()
	defer a.mu.Unlock()
	q, is := a.open[id]
	if !is || r.Bad || q.to != from || q.answer != kind || !q.valid(r.Rest) {
		return
	}
	delete(a.open, id)
	q.got <- r.Rest
}
