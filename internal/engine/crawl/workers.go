package crawl

import "sync"

// workerPool is the workers, and where they are.
type workerPool struct {
	mu     sync.Mutex           // guards what follows
	idle   []*worker            // between visits; the last was used last
	visits map[*worker]visiting // under way; not kept where no host is another node's
	free   []linkBuffers        // not in use, at most maxFreeBuffers
}

// maxFreeBuffers bounds the buffers kept for reuse, to about as many as pages are read and committed at once.
const maxFreeBuffers = 32

// getBuffers gives free buffers to a batch that has none, if there are any.
func (p *workerPool) getBuffers(b *batch) {
	if cap(b.cands) > 0 || !b.empty() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.free) - 1; last >= 0 {
		b.linkBuffers = p.free[last]
		p.free[last] = linkBuffers{}
		p.free = p.free[:last]
	}
}

// putBuffers resets a worker's batch and frees its buffers for another. The caller holds mu.
func (p *workerPool) putBuffers(b *batch) {
	b.reset()
	if cap(b.cands) > 0 && len(p.free) < maxFreeBuffers {
		p.free = append(p.free, b.linkBuffers)
	}
	b.linkBuffers = linkBuffers{}
}

// visiting is a visit under way.
type visiting struct {
	host, asks string
	over       chan struct{}
}

// take takes a worker for a visit, the one that was used last: so only as many keep a batch as visits are under way at
// once.
func (p *workerPool) take(e *Engine) *worker {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	if last < 0 {
		return &worker{Engine: e}
	}
	w := p.idle[last]
	p.idle = p.idle[:last]
	return w
}

// rest takes a worker back whose visit is over.
func (p *workerPool) rest(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if v, visits := p.visits[w]; visits {
		close(v.over)
		delete(p.visits, w)
	}
	p.putBuffers(&w.batch)
	p.idle = append(p.idle, w)
}

// begin notes that a visit begins: before it is asked whose its host is, so that Drain knows of all that may have asked
// an earlier view.
func (p *workerPool) begin(w *worker, host, asks string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.visits == nil {
		p.visits = map[*worker]visiting{}
	}
	p.visits[w] = visiting{host, asks, make(chan struct{})}
}

// matching are the visits under way that match, each by what is closed when it is over.
func (p *workerPool) matching(match func(visiting) bool) (all []<-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range p.visits {
		if match(v) {
			all = append(all, v.over)
		}
	}
	return all
}
