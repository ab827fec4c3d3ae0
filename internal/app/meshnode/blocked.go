package meshnode

import (
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

// To preview the effect of block rules, a user asks any node. That node asks its neighbors and the nodes whose reports
// it gathers; some of the neighbors may just have failed. Each node counts its own queue.

const (
	countTimeout = 4 * time.Second // for other nodes to count
	countRetry   = time.Second     // between repetitions of a request
)

// A blockCounter counts this node's pending URLs that rules would exclude, and asks other nodes for their counts. It is
// safe for concurrent use.
type blockCounter struct {
	self     strategy.Node
	blocked  func(ctx context.Context, rules []string) ([]byte, error) // may be nil
	asker    *requester
	msgs     *messages
	tasks    *tasks
	log      *slog.Logger
	counting atomic.Bool // for another node
}

// CountBlocked has all known nodes count the pending URLs that the rules would exclude, as far as they answer in time.
func (n *Node) CountBlocked(ctx context.Context, rules []string) (c control.Counts, err error) {
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
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	var mu sync.Mutex // guards c
	var asking sync.WaitGroup
	for node := range asked {
		asking.Go(func() {
			count := n.blocked.query(ctx, node, rules)
			mu.Lock()
			defer mu.Unlock()
			c.Nodes = append(c.Nodes, control.Count{Node: string(node), Count: count})
		})
	}
	asking.Wait()
	c.Unasked = max(t.Nodes+t.Missing-len(c.Nodes), 0)
	return c, nil
}

// query returns a node's count; nil if ctx ends before it answers.
func (c *blockCounter) query(ctx context.Context, to strategy.Node, rules []string) []byte {
	if to == c.self {
		if c.blocked == nil {
			return nil
		}
		count, _ := c.blocked(ctx, rules) // no count on failure
		return count
	}
	var w varint.Writer
	for _, r := range rules {
		w.String(r)
	}
	return c.asker.request(ctx, to, kindCountRequest, w, countRetry, isCount)
}

func isCount(answer []byte) bool { return len(answer) == 0 || json.Valid(answer) }

// answer answers another node. It ignores the request while another count is running; the node will repeat it.
func (c *blockCounter) answer(from strategy.Node, data []byte) {
	r := varint.Reader{Rest: data}
	id := r.Uint()
	var rules []string
	for len(r.Rest) > 0 && !r.Bad {
		rules = append(rules, r.String())
	}
	if !r.Complete() {
		c.msgs.warnUnreadable(from, errGarbled)
		return
	}
	if c.blocked == nil || !c.counting.CompareAndSwap(false, true) {
		return
	}
	c.tasks.run("count the URLs that block rules would exclude", func(ctx context.Context) error {
		defer c.counting.Store(false)
		count, err := c.blocked(ctx, rules)
		if err != nil {
			c.log.Warn("cannot count the URLs that block rules would exclude", "asked by", from, "err", err)
			count = nil
		}
		var w varint.Writer
		w.Uint(id)
		c.msgs.send(from, kindCountReply, append(w, count...))
		return nil
	})
}
