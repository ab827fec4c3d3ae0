package frontier

import "sync"

// A readQueue contains the hosts whose blocks must be read, for their first items or for reranking. These hosts are
// held in memory. The frontier's lock guards it.
type readQueue struct {
	mu     *sync.Mutex // the frontier's lock
	pages  *pager
	bench  *workbench
	fronts []*host
	rerank []*host
}

// addFront queues the read of a host's first item.
func (r *readQueue) addFront(h *host) {
	h.residence.unread = true
	r.bench.hold(h)
	r.fronts = append(r.fronts, h)
}

// rerankIfNeeded queues the reranking of a host's blocks if enough moves have missed the items in memory. The caller
// must place the host afterwards.
func (r *readQueue) rerankIfNeeded(h *host) {
	if !h.queue.needsReranking() {
		return
	}
	ranks := h.queue.ranks
	ranks.reranking, ranks.missedMoves, ranks.rerankBefore = true, 0, r.pages.segments.end()
	h.residence.held++
	r.rerank = append(r.rerank, h)
	r.bench.leader.signal()
}

func (r *readQueue) isEmpty() bool { return len(r.fronts) == 0 && len(r.rerank) == 0 }

// readFronts reads the first items of the queued hosts.
func (r *readQueue) readFronts() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var h *host
	read := func() error {
		r.bench.saver.saveHost(h)
		return r.bench.queues.loadFirst(&h.queue)
	}
	for n := len(r.fronts); n > 0; n-- {
		h = r.fronts[0]
		err := r.pages.run(read)
		r.fronts[0], r.fronts = nil, r.fronts[1:]
		h.residence.unread = false
		r.bench.release(h)
		if err != nil {
			return err
		}
	}
	return nil
}

// rerankBlocksAtOnce is the number of blocks to rerank before other work on disk is done.
const rerankBlocksAtOnce = 256

// rerankBlocks reads blocks, which sets their items to the Ranker's ranks, and writes the items in their new order. It
// stops when blocked returns true.
func (r *readQueue) rerankBlocks(blocked func() bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n := 0; len(r.rerank) > 0 && n < rerankBlocksAtOnce && !blocked(); n++ {
		h, done := r.rerank[0], false
		err := r.pages.run(func() (err error) {
			r.bench.saver.saveHost(h)
			done, err = r.bench.queues.expandBefore(&h.queue, h.queue.ranks.rerankBefore)
			return err
		})
		if err != nil || done {
			r.rerank[0], r.rerank = nil, r.rerank[1:]
			h.queue.ranks.reranking = false
			r.bench.release(h)
		} else {
			r.bench.place(h)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
