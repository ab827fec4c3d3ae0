package meshnode

import (
	"context"
	"sync"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
)

// A requester manages requests to other nodes that are not answered yet. It is safe for concurrent use.
type requester struct {
	msgs *messages

	mu      sync.Mutex // guards below
	last    uint64     // number of the last request
	pending map[uint64]pendingRequest
}

type pendingRequest struct {
	to        strategy.Node
	replyKind byte // kind of the reply message
	valid     func(answer []byte) bool
	reply     chan<- []byte
}

// replyKind maps a kind of request to the kind of its reply.
var replyKind = map[byte]byte{kindKnownRequest: kindKnownReply, kindQueryRequest: kindQueryReply}

func newRequester(msgs *messages) *requester {
	return &requester{msgs: msgs, pending: map[uint64]pendingRequest{}}
}

// request sends a request repeatedly until a valid reply arrives; nil if ctx ends first.
func (a *requester) request(ctx context.Context, to strategy.Node, kind byte, body []byte, every time.Duration,
	valid func(answer []byte) bool) []byte {
	got := make(chan []byte, 1)
	a.mu.Lock()
	a.last++
	id := a.last
	a.pending[id] = pendingRequest{to, replyKind[kind], valid, got}
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.pending, id)
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

func (a *requester) handleReply(from strategy.Node, kind byte, data []byte) {
	r := varint.Reader{Rest: data}
	id := r.Uint()
	a.mu.Lock()
	defer a.mu.Unlock()
	q, is := a.pending[id]
	if !is || r.Bad || q.to != from || q.replyKind != kind || !q.valid(r.Rest) {
		return
	}
	delete(a.pending, id)
	q.reply <- r.Rest
}
