package node

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"sync"
	"time"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
)

// Who thinks of blocking something asks all members how much of what waits with them that is. Each counts for itself.

// A countQuestion asks what rules would leave out.
type countQuestion struct {
	ID    uint64   `json:"id"`
	Rules []string `json:"rules"`
}

// A countAnswer is what a node has counted; null where it could not.
type countAnswer struct {
	ID    uint64          `json:"id"`
	Count json.RawMessage `json:"count"`
}

// askedCount answers a question, unless one is being answered: who asks does so again. data is this call's own.
func (n *Node) askedCount(from strategy.Node, data []byte) {
	var q countQuestion
	if n.cfg.Blocked == nil || json.Unmarshal(data, &q) != nil || !n.counting.CompareAndSwap(false, true) {
		return
	}
	n.tasks.Go(func(ctx context.Context) {
		defer n.counting.Store(false)
		count, err := n.cfg.Blocked(ctx, q.Rules)
		if err != nil {
			n.log.Warn("what rules would leave out is not counted", "asked by", from, "err", err)
			count = nil
		}
		if answer, err := json.Marshal(countAnswer{q.ID, count}); err == nil {
			n.send(from, kindCounted, answer)
		}
	})
}

// Counts are what members have counted, in JSON, as their Config's Blocked has it; nil of those who have not answered.
type Counts map[strategy.Node][]byte

// countAgain is when those are asked again who have not answered.
const countAgain = time.Second

// AskBlocked asks all members what rules would leave out of what waits, until all have answered or ctx ends. It
// receives the bus's messages as AskKnown does.
func (c Control) AskBlocked(ctx context.Context, b bus.Bus, crawl string, rules []string) (Counts, error) {
	e, err := c.Registry.Get(ctx, quorum.TableKey)
	if err != nil || e.Value == nil {
		return nil, err
	}
	table, err := quorum.ParseTable(e.Value)
	if err != nil || len(table.Members) == 0 {
		return nil, err
	}
	q := countQuestion{rand.Uint64(), rules}
	question, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	t := &tally{counts: Counts{}, left: map[strategy.Node]bool{}, ended: make(chan struct{})}
	for _, m := range table.Members {
		t.counts[m.Node], t.left[m.Node] = nil, true
	}
	receiving, stop := context.WithCancel(ctx)
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		// who is not heard has not answered
		_ = b.Receive(receiving, func(from strategy.Node, data []byte) {
			if kind, data, err := open(data, crawl); err == nil && kind == kindCounted {
				t.hear(q.ID, from, data)
			}
		})
	}()
	t.ask(ctx, func(to strategy.Node) {
		_ = b.Send(to, envelope(crawl, kindCount, question)) // may be lost, as any message
	})
	stop()
	<-heard
	return t.counts, nil
}

type tally struct {
	mu     sync.Mutex // guards below
	counts Counts
	left   map[strategy.Node]bool // who has yet to answer
	ended  chan struct{}          // closed when all have
}

func (t *tally) ask(ctx context.Context, send func(to strategy.Node)) {
	tick := time.NewTicker(countAgain)
	defer tick.Stop()
	for {
		for _, to := range t.silent() {
			send(to)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.ended:
			return
		case <-tick.C:
		}
	}
}

func (t *tally) silent() (all []strategy.Node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for n := range t.left {
		all = append(all, n)
	}
	return all
}

func (t *tally) hear(id uint64, from strategy.Node, data []byte) {
	var a countAnswer
	if json.Unmarshal(data, &a) != nil || a.ID != id {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.left[from] {
		return
	}
	if !bytes.Equal(a.Count, []byte("null")) {
		t.counts[from] = a.Count
	}
	if delete(t.left, from); len(t.left) == 0 {
		close(t.ended)
	}
}
