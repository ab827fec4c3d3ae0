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

// Who thinks of blocking something asks any node how much of what waits that is. That node asks those whose reports it
// gathers, and its neighbours, of which some may just have fallen silent. Each counts for itself.

const (
	countTimeout = 4 * time.Second // that others have to count
	countRetry   = time.Second     // they are asked again
)

// A blockCounter counts here what rules would exclude of the queue, and asks other nodes for their counts. Any goroutine
// may use it.
type blockCounter struct {
	self     strategy.Node
	blocked  func(ctx context.Context, rules []string) ([]byte, error) // may be nil
	asker    *requester
	msgs     *messages
	tasks    *tasks
	log      *slog.Logger
	counting atomic.Bool // for another node
}

// CountBlocked has all nodes count what rules would leave out, as far as they are known and answer in time.
func (n *Node) CountBlocked(ctx context.Context, rules []string) (c control.Counts, err error) {
	asked := map[strategy.Node]bool{}
	err = n.inbox.call(ctx, func() <-chan struct{} { // before others are found not to answer
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
			count := n.blocked.ask(ctx, node, rules)
			mu.Lock()
			defer mu.Unlock()
			c.Nodes = append(c.Nodes, control.Count{Node: string(node), Count: count})
		})
	}
	asking.Wait()
	c.Unasked = max(t.Nodes+t.Missing-len(c.Nodes), 0)
	return c, nil
}

// request returns a node's count; nil if it has not answered before ctx ends.
func (c *blockCounter) ask(ctx context.Context, to strategy.Node, rules []string) []byte {
	if to == c.self {
		if c.blocked == nil {
			return nil
		}
		count, _ := c.blocked(ctx, rules) // where it fails there is no count
		return count
	}
	var w varint.Writer
	for _, r := range rules {
		w.String(r)
	}
	return c.asker.request(ctx, to, kindCountRequest, w, countRetry, isCount)
}

func isCount(answer []byte) bool { return len(answer) == 0 || json.Valid(answer) }

// replyKind answers another node, unless a count is running: it will ask again.
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
	c.tasks.run("count what rules would leave out", func(ctx context.Context) error {
		defer c.counting.Store(false)
		count, err := c.blocked(ctx, rules)
		if err != nil {
			c.log.Warn("what rules would leave out is not counted", "asked by", from, "err", err)
			count = nil
		}
		var w varint.Writer
		w.Uint(id)
		c.msgs.send(from, kindCountReply, append(w, count...))
		return nil
	})
}
