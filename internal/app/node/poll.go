package node

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
)

// A poll sends requests to members until all have answered. It repeats requests, because messages may be lost, and the
// first reply may arrive before the poll receives.
type poll struct {
	kind, answer byte // of messages
	every        time.Duration
	questions    map[uint64][]byte
	accept       func(id uint64, from strategy.Node, data []byte) bool // processes a reply; false: invalid; mu is held

	mu      sync.Mutex                        // guards below
	pending map[uint64]map[strategy.Node]bool // members that have not answered, by request
	ended   chan struct{}                     // closed when all have answered
}

func newPoll(kind, answer byte, every time.Duration) *poll {
	return &poll{kind: kind, answer: answer, every: every, questions: map[uint64][]byte{},
		pending: map[uint64]map[strategy.Node]bool{}, ended: make(chan struct{})}
}

// put adds a request to a non-empty list of members, before the poll runs.
func (p *poll) put(id uint64, question any, members []strategy.Member) (err error) {
	p.questions[id], err = json.Marshal(question)
	p.pending[id] = map[strategy.Node]bool{}
	for _, m := range members {
		p.pending[id][m.Node] = true
	}
	return err
}

// run sends the requests until all members have answered or ctx ends. It receives the bus's messages, which no other
// code may receive at the same time.
func (p *poll) run(ctx context.Context, b bus.Bus, crawl string) {
	if len(p.questions) == 0 {
		return
	}
	receiving, stop := context.WithCancel(ctx)
	var hearing sync.WaitGroup
	hearing.Go(func() {
		// On an error, members count as silent.
		_ = b.Receive(receiving, func(from strategy.Node, data []byte) {
			if kind, data, err := openEnvelope(data, crawl); err == nil && kind == p.answer {
				p.receive(from, data)
			}
		})
	})
	defer hearing.Wait()
	defer stop()
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	for {
		for id, question := range p.questions {
			for _, to := range p.silent(id) {
				_ = b.Send(to, envelope(crawl, p.kind, question)) // messages may be lost anyway
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-p.ended:
			return
		case <-tick.C:
		}
	}
}

// silent returns the members that have not answered a request.
func (p *poll) silent(id uint64) []strategy.Node {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.pending[id]))
}

func (p *poll) receive(from strategy.Node, data []byte) {
	var answer struct {
		ID uint64 `json:"id"`
	}
	if json.Unmarshal(data, &answer) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.pending[answer.ID]
	if !left[from] || !p.accept(answer.ID, from, data) {
		return
	}
	if delete(left, from); len(left) > 0 {
		return
	}
	if delete(p.pending, answer.ID); len(p.pending) == 0 {
		close(p.ended)
	}
}
