package meshnode

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/app/meshnode/control"
	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
)

// A user's query goes to any node. That node sends it to its neighbors and the nodes whose reports it gathers; some of
// the neighbors may just have failed. Each node answers for its part of the crawl.

const (
	queryTimeout = 4 * time.Second // for other nodes to answer
	queryRetry   = time.Second     // between repetitions of a request
)

// A queryServer answers queries about this node's part of the crawl, and sends queries to other nodes. It is safe for
// concurrent use.
type queryServer struct {
	self      strategy.Node
	answerOwn func(ctx context.Context, query json.RawMessage) ([]byte, error) // may be nil
	asker     *requester
	msgs      *messages
	tasks     *tasks
	log       *slog.Logger
	answering atomic.Bool // for another node
}

// QueryAll sends a query to all known nodes and returns the answers that arrive in time.
func (n *Node) QueryAll(ctx context.Context, query json.RawMessage) (c control.Answers, err error) {
	asked := map[strategy.Node]bool{}
	err = n.inbox.call(ctx, func() <-chan struct{} { // before some are found to be dead
		for _, near := range n.loop.peer.Overlay().Neighbors(nil) {
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
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	var mu sync.Mutex // guards c
	var asking sync.WaitGroup
	for node := range asked {
		asking.Go(func() {
			answer := n.userQueries.send(ctx, node, query)
			mu.Lock()
			defer mu.Unlock()
			c.Nodes = append(c.Nodes, control.Answer{Node: string(node), Answer: answer})
		})
	}
	asking.Wait()
	c.Unasked = max(t.Nodes+t.Missing-len(c.Nodes), 0)
	return c, nil
}

// send returns a node's answer; nil if ctx ends before it answers.
func (c *queryServer) send(ctx context.Context, to strategy.Node, query json.RawMessage) []byte {
	if to == c.self {
		if c.answerOwn == nil {
			return nil
		}
		answer, _ := c.answerOwn(ctx, query) // no answer on failure
		return answer
	}
	return c.asker.request(ctx, to, kindQueryRequest, query, queryRetry, isAnswer)
}

func isAnswer(answer []byte) bool { return len(answer) == 0 || json.Valid(answer) }

// answer answers another node. It ignores the request while another is being answered; the node will repeat it.
func (c *queryServer) answer(from strategy.Node, data []byte) {
	r := varint.Reader{Rest: data}
	id := r.Uint()
	if r.Bad || !json.Valid(r.Rest) {
		c.msgs.warnUnreadable(from, errGarbled)
		return
	}
	query := bytes.Clone(r.Rest)
	if c.answerOwn == nil || !c.answering.CompareAndSwap(false, true) {
		return
	}
	c.tasks.run("answer a user's query", func(ctx context.Context) error {
		defer c.answering.Store(false)
		answer, err := c.answerOwn(ctx, query)
		if err != nil {
			c.log.Warn("answer a user's query", "from", from, "err", err)
			answer = nil
		}
		var w varint.Writer
		w.Uint(id)
		c.msgs.send(from, kindQueryReply, append(w, answer...))
		return nil
	})
}
