package meshnode

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"kumo/internal/app/meshnode/control"
	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
)

// Who thinks of blocking something asks any node how much of what waits that is. That node asks those whose reports it
// gathers, and its neighbours, of which some may just have fallen silent. Each counts for itself.

const (
	countFor   = 4 * time.Second // that others have to count
	countAgain = time.Second     // they are asked again
)

// A counting is a question that another node has yet to answer.
type counting struct {
	to     strategy.Node
	answer chan<- []byte
}

// Blocked has all nodes count what rules would leave out, as far as they are known and answer in time.
func (n *Node) Blocked(ctx context.Context, rules []string) (c control.Counts, err error) {
	asked := map[strategy.Node]bool{}
	err = n.call(ctx, func() <-chan struct{} { // before others are found not to answer
		for _, near := range n.peer.Overlay().Neighbours(nil) {
			asked[strategy.Node(near.Node)] = true
		}
		return nil
	})
	if err != nil {
		return c, err
	}
	t, err := n.Gather(ctx)
	if err != nil {
		return c, err
	}
	sums := control.Sums{Reports: t.Reports}
	for _, r := range sums.All() {
		asked[strategy.Node(r.Node)] = true
	}
	ctx, cancel := context.WithTimeout(ctx, countFor)
	defer cancel()
	var mu sync.Mutex // guards c
	var asking sync.WaitGroup
	for node := range asked {
		asking.Go(func() {
			count := n.askCount(ctx, node, rules)
			mu.Lock()
			defer mu.Unlock()
			c.Nodes = append(c.Nodes, control.Count{Node: string(node), Count: count})
		})
	}
	asking.Wait()
	c.Unasked = max(t.Nodes+t.Missing-len(c.Nodes), 0)
	return c, nil
}

// askCount asks a node until it answers or ctx ends; nil: it has not.
func (n *Node) askCount(ctx context.Context, to strategy.Node, rules []string) []byte {
	if to == n.self {
		if n.cfg.Blocked == nil {
			return nil
		}
		count, _ := n.cfg.Blocked(ctx, rules) // where it fails there is no count
		return count
	}
	answer := make(chan []byte, 1)
	n.mu.Lock()
	n.asked++
	id := n.asked
	n.counting[id] = counting{to, answer}
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.counting, id)
	}()
	var w varint.Writer
	w.Uint(id)
	for _, r := range rules {
		w.String(r)
	}
	tick := time.NewTicker(countAgain)
	defer tick.Stop()
	for {
		n.send(to, kindCount, w)
		select {
		case a := <-answer:
			return a
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// heardCount takes the answer.
func (n *Node) heardCount(from strategy.Node, data []byte) {
	r := varint.Reader{Rest: data}
	id := r.Uint()
	n.mu.Lock()
	defer n.mu.Unlock()
	c, is := n.counting[id]
	if !is || r.Bad || c.to != from || len(r.Rest) > 0 && !json.Valid(r.Rest) {
		return
	}
	delete(n.counting, id)
	c.answer <- r.Rest
}

// askedCount answers another node, unless too many ask: they ask again.
func (n *Node) askedCount(from strategy.Node, data []byte) {
	r := varint.Reader{Rest: data}
	id := r.Uint()
	var rules []string
	for len(r.Rest) > 0 && !r.Bad {
		rules = append(rules, r.String())
	}
	if !r.Whole() {
		n.complain(from, errGarbled)
		return
	}
	if n.cfg.Blocked == nil || !n.counts.CompareAndSwap(false, true) {
		return
	}
	n.run("count what rules would leave out", func(ctx context.Context) error {
		defer n.counts.Store(false)
		count, err := n.cfg.Blocked(ctx, rules)
		if err != nil {
			n.log.Warn("what rules would leave out is not counted", "asked by", from, "err", err)
			count = nil
		}
		var w varint.Writer
		w.Uint(id)
		n.send(from, kindCounted, append(w, count...))
		return nil
	})
}
