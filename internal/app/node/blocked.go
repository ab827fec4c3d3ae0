package node

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"time"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
)

// To preview the effect of block rules, a user's client asks all members. Each counts its own queue.

type countRequest struct {
	ID    uint64   `json:"id"`
	Rules []string `json:"rules"`
}

// A countReply is a node's count; null if it failed.
type countReply struct {
	ID    uint64          `json:"id"`
	Count json.RawMessage `json:"count"`
}

// handleCount answers a request. It ignores the request while another count is running; the client will repeat it. It
// retains data.
func (n *Node) handleCount(from strategy.Node, data []byte) {
	var q countRequest
	if n.cfg.Blocked == nil || json.Unmarshal(data, &q) != nil || !n.counting.CompareAndSwap(false, true) {
		return
	}
	n.tasks.Go(func(ctx context.Context) {
		defer n.counting.Store(false)
		count, err := n.cfg.Blocked(ctx, q.Rules)
		if err != nil {
			n.log.Warn("cannot count the URLs that block rules would exclude", "asked by", from, "err", err)
			count = nil
		}
		if answer, err := json.Marshal(countReply{q.ID, count}); err == nil {
			n.send(from, kindCountReply, answer)
		}
	})
}

// Counts are the members' counts in JSON, as returned by Config.Blocked; nil for those that have not answered.
type Counts map[strategy.Node][]byte

// countRetry is the interval between repetitions of a request.
const countRetry = time.Second

// CountBlocked asks all members how many pending URLs the rules would exclude, until all have answered or ctx ends. It
// receives the bus's messages as CountKnown does.
func (c Control) CountBlocked(ctx context.Context, b bus.Bus, crawl string, rules []string) (Counts, error) {
	table, err := c.Table(ctx)
	if err != nil || len(table.Members) == 0 {
		return nil, err
	}
	counts := Counts{}
	for _, m := range table.Members {
		counts[m.Node] = nil
	}
	p := newPoll(kindCountRequest, kindCountReply, countRetry)
	p.accept = func(_ uint64, from strategy.Node, data []byte) bool {
		var a countReply
		if json.Unmarshal(data, &a) != nil {
			return false
		}
		if !bytes.Equal(a.Count, []byte("null")) {
			counts[from] = a.Count
		}
		return true
	}
	q := countRequest{rand.Uint64(), rules}
	if err := p.put(q.ID, q, table.Members); err != nil {
		return nil, err
	}
	p.run(ctx, b, crawl)
	return counts, nil
}
