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

// A user's client sends queries to all members. Each answers for its part of the crawl.

type queryRequest struct {
	ID    uint64          `json:"id"`
	Query json.RawMessage `json:"query"`
}

// A queryReply is a node's answer; null if it failed.
type queryReply struct {
	ID     uint64          `json:"id"`
	Answer json.RawMessage `json:"answer"`
}

// handleQuery answers a request. It ignores the request while another is being answered; the client will repeat it. It
// retains data.
func (n *Node) handleQuery(from strategy.Node, data []byte) {
	var q queryRequest
	if n.cfg.Query == nil || json.Unmarshal(data, &q) != nil || !n.answering.CompareAndSwap(false, true) {
		return
	}
	n.tasks.Go(func(ctx context.Context) {
		defer n.answering.Store(false)
		answer, err := n.cfg.Query(ctx, q.Query)
		if err != nil {
			n.log.Warn("answer a user's query", "from", from, "err", err)
			answer = nil
		}
		if reply, err := json.Marshal(queryReply{q.ID, answer}); err == nil {
			n.send(from, kindQueryReply, reply)
		}
	})
}

// Answers are the members' answers, as returned by Config.Query; nil for those that have not answered.
type Answers map[strategy.Node][]byte

// queryRetry is the interval between repetitions of a request.
const queryRetry = time.Second

// QueryAll sends a query to all members, until all have answered or ctx ends. It receives the bus's messages as
// CountKnown does.
func (c Control) QueryAll(ctx context.Context, b bus.Bus, crawl string, query json.RawMessage) (Answers, error) {
	table, err := c.Table(ctx)
	if err != nil || len(table.Members) == 0 {
		return nil, err
	}
	answers := Answers{}
	for _, m := range table.Members {
		answers[m.Node] = nil
	}
	p := newPoll(kindQueryRequest, kindQueryReply, queryRetry)
	p.accept = func(_ uint64, from strategy.Node, data []byte) bool {
		var a queryReply
		if json.Unmarshal(data, &a) != nil {
			return false
		}
		if !bytes.Equal(a.Answer, []byte("null")) {
			answers[from] = a.Answer
		}
		return true
	}
	q := queryRequest{rand.Uint64(), query}
	if err := p.put(q.ID, q, table.Members); err != nil {
		return nil, err
	}
	p.run(ctx, b, crawl)
	return answers, nil
}
