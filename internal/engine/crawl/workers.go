package crawl

import (
	"maps"
	"net/http"
	"slices"
	"sync"

	"kumo/internal/base/page"
	"kumo/internal/content/fetch"
	"kumo/internal/content/login"
	"kumo/internal/engine/visit"
	"kumo/internal/state/frontier"
	"kumo/internal/state/ledger"
)

// workerPool has the workers, and tracks which hosts they are visiting.
type workerPool struct {
	make    func() *worker
	buffers *batchPool

	mu     sync.Mutex           // guards the fields below
	idle   []*worker            // between visits; used as a stack
	visits map[*worker]visiting // visits under way; only tracked if there is a router
}

// batchPool has buffers for the links of batches, and batches for callers other than workers.
type batchPool struct {
	mu   sync.Mutex    // guards the fields below
	idle []*batch      // used as a stack
	free []linkBuffers // not in use, at most maxFreeBuffers
}

// maxFreeBuffers bounds the buffers kept for reuse, to about as many as pages are read and committed at once.
const maxFreeBuffers = 32

// acquire returns an empty batch with buffers.
func (p *batchPool) acquire() *batch {
	p.mu.Lock()
	b := new(batch)
	if last := len(p.idle) - 1; last >= 0 {
		b, p.idle = p.idle[last], p.idle[:last]
	}
	p.mu.Unlock()
	p.getBuffers(b)
	return b
}

// put returns a batch to the pool.
func (p *batchPool) put(b *batch) {
	p.putBuffers(b)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, b)
}

// getBuffers gives free buffers, if there are any, to a batch that has none.
func (p *batchPool) getBuffers(b *batch) {
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

// putBuffers resets a batch and frees its buffers for another.
func (p *batchPool) putBuffers(b *batch) {
	b.reset()
	p.mu.Lock()
	defer p.mu.Unlock()
	if cap(b.cands) > 0 && len(p.free) < maxFreeBuffers {
		p.free = append(p.free, b.linkBuffers)
	}
	b.linkBuffers = linkBuffers{}
}

// visiting is a visit under way.
type visiting struct {
	host, politenessHost string
	over                 chan struct{}
	released             chan struct{} // closed to end the visit if its request has not begun
}

// concerns reports whether a visit is to a host, or made for its sake.
func (v *visiting) concerns(host string) bool { return v.host == host || v.politenessHost == host }

// acquire takes the worker that was used last: so only as many workers keep buffers as there are visits at once.
func (p *workerPool) acquire() *worker {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	if last < 0 {
		return p.make()
	}
	w := p.idle[last]
	p.idle = p.idle[:last]
	return w
}

// put returns a worker to the pool after a visit.
func (p *workerPool) put(w *worker) {
	p.buffers.putBuffers(&w.batch)
	p.mu.Lock()
	defer p.mu.Unlock()
	if v, visits := p.visits[w]; visits {
		close(v.over)
		delete(p.visits, w)
	}
	p.idle = append(p.idle, w)
}

// begin records that a visit begins. It is called before the router is asked about the visit's host, so that Drain
// waits for all visits that may have seen an earlier owner.
func (p *workerPool) begin(w *worker, host, asks string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.visits == nil {
		p.visits = map[*worker]visiting{}
	}
	v := visiting{host, asks, make(chan struct{}), make(chan struct{})}
	w.released, p.visits[w] = v.released, v
}

// release ends the visits to hosts whose requests have not begun.
func (p *workerPool) release(hosts []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w, v := range p.visits {
		if v.released != nil && slices.ContainsFunc(hosts, v.concerns) {
			close(v.released)
			v.released = nil
			p.visits[w] = v
		}
	}
}

// matching returns the matching visits under way, each as a channel that is closed when it is over.
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

// busy returns those of hosts that have a visit under way, each with a channel that is closed when the visit is over.
func (p *workerPool) busy(hosts []string) map[string]<-chan struct{} {
	busy := make(map[string]<-chan struct{}, len(hosts))
	for _, host := range hosts {
		busy[host] = nil
	}
	p.matching(func(v visiting) bool {
		for _, host := range []string{v.host, v.politenessHost} {
			if _, wanted := busy[host]; wanted {
				busy[host] = v.over
			}
		}
		return false
	})
	maps.DeleteFunc(busy, func(_ string, over <-chan struct{}) bool { return over == nil })
	return busy
}

// visits are the parts that all workers use.
type visits struct {
	cfg        *Config
	fetcher    visit.Fetcher
	header     func(trusted bool) http.Header
	hooks      Hooks
	listener   Listener
	frontier   *frontier.Frontier
	ledger     *ledger.Ledger
	known      *known
	feed       *seedFeed
	scopeSeeds *scopeSeeds
	admission  *admission
	batches    *batchWriter
	abandons   *abandoner
	gate       *robotsGate
	limits     *limits
	outcomes   *outcomes
	permits    *permits
	hops       *hops
	logins     *login.Sessions
	claims     *claims
	turns      Turns       // nil: no other crawl visits the hosts
	resources  Resources   // nil: the process has no other crawl
	renderings *renderings // nil: no page is rendered
	documents  *documents  // nil: no document is read
}

// reading has the parts that workers use to read answers.
type reading struct {
	pool    *readPool
	decoder *fetch.Decoder
	text    func(*page.Response, *page.Page) (*page.MainText, error)
	fields  func(*page.Response, *page.Page) ([]page.Fields, error)
}

func newWorker(v *visits, r *reading, traps *trapGuard, ranks *ranking, archive bool, buffers *batchPool) *worker {
	w := &worker{visits: v, answer: answer{pool: r.pool, decoder: r.decoder}, trap: trapVisit{guard: traps}}
	w.revisit = revisit{cfg: v.cfg, known: v.known, archive: archive, answer: &w.answer}
	w.reader = pageReader{text: r.text, fields: r.fields, answer: &w.answer, batch: &w.batch, revisit: &w.revisit,
		trap: &w.trap, cfg: v.cfg, hooks: v.hooks, known: v.known, ranks: ranks, admission: v.admission,
		abandons: v.abandons, buffers: buffers, renderings: v.renderings,
		documents: v.documents}
	return w
}
