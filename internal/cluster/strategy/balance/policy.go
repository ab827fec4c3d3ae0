package balance

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/balance/model"
	"kumo/internal/cluster/strategy/central"
	"kumo/internal/cluster/strategy/leader"
)

// New returns the strategy of a new node.
func New(cfg Config) *central.Strategy {
	cfg = cfg.withDefaults()
	return central.New(cfg.Config, func(l *central.Leader) central.Policy { return newPolicy(cfg, l) }, decodeQuota)
}

// A policy is the master's state besides the table. The log contains the samples; nodes report the rest to a new
// master.
type policy struct {
	*central.Leader
	cfg           Config
	samples       samples
	model         *model.Model // nil while another node leads
	hasNewSamples bool         // samples since the last training
	trainAt       time.Time
	initialized   bool // the user's samples were used, or are not needed

	workers map[strategy.Node]*worker
	pool    pool
	splitAt time.Time // time of the next check for nodes that need work
	sweepAt time.Time // time at which old hosts are next removed from the pool

	moves moves
}

var _ central.Policy = (*policy)(nil)

const (
	firstEpochs = 200
	moreEpochs  = 20
	trainEvery  = 5 * time.Second
	splitEvery  = 200 * time.Millisecond
	gatherPool  = 100 * time.Millisecond // new hosts arrive one by one, and are collected for a split
	gatherBatch = time.Second            // the same for the splitter Paper, which splits only once
	poolWait    = 30 * time.Second       // until a node repeats its request for a pooled host
	quotaEvery  = 2 * time.Second
)

func newPolicy(cfg Config, l *central.Leader) *policy {
	p := &policy{Leader: l, cfg: cfg}
	p.forget()
	return p
}

// Records returns the samples.
func (p *policy) Records() leader.State { return &p.samples }

// Elected starts a term.
func (p *policy) Elected() {
	p.forget()
	p.model = TrainModel(p.cfg, p.samples.all())
	p.samples.added = func(s model.Sample) {
		if p.model.Add(s) == nil {
			p.hasNewSamples = true
		}
	}
}

// Deposed drops state that is not in the log.
func (p *policy) Deposed() { p.forget() }

func (p *policy) forget() {
	p.workers, p.pool = map[strategy.Node]*worker{}, newPool()
	p.model, p.samples.added, p.initialized = nil, nil, false
	p.hasNewSamples, p.trainAt, p.splitAt, p.sweepAt = false, time.Time{}, time.Time{}, time.Time{}
	p.moves = newMoves()
}

// OwnerRequested pools a host, or assigns it at once.
func (p *policy) OwnerRequested(from strategy.Node, host string, links int) {
	if links == 0 && p.pool.hosts[host] == nil && p.cfg.Splitter.predicts() { // nothing to fetch, as far as known
		p.Grant(host, from)
		return
	}
	full := len(p.pool.hosts) >= p.cfg.MaxPool || p.pool.links+links > p.cfg.MaxLinks
	if p.pool.hosts[host] == nil && (full || !p.cfg.Splitter.predicts()) {
		p.pool.add(p.Now(), host, from, links)
		p.assign(p.pool.hosts[host], p.worker(p.earliestNode(host, max(1, links))))
		return
	}
	p.pool.add(p.Now(), host, from, links)
	p.ReplyWait(from, host, poolWait)
	if p.splitAt.IsZero() {
		p.splitAt = p.Now().Add(gatherPool)
		if p.cfg.Splitter == Paper {
			p.splitAt = p.Now().Add(gatherBatch)
		}
	}
}

// assign assigns a pooled host to a node.
func (p *policy) assign(h *pooled, w *worker) {
	p.pool.removeHost(h.host)
	p.Grant(h.host, w.node)
	w.delivery.sent = append(w.delivery.sent, grant{p.Now(), h.links})
	w.assigned += int64(h.links)
	p.notifyFinders(h, w.node)
}

func (p *policy) notifyFinders(h *pooled, owner strategy.Node) {
	for _, f := range h.finders {
		if f.node != owner {
			p.ReplyOwner(f.node, h.host, owner)
		}
	}
}

// HolderFound assigns a host to its holder.
func (p *policy) HolderFound(from strategy.Node, host string) {
	p.Grant(host, from)
	if h := p.pool.removeHost(host); h != nil {
		p.notifyFinders(h, from)
	}
}

// Probed answers a node's probe report. This strategy requests no probes.
func (p *policy) Probed(b central.ProbeReport) {
	r := p.Row(b.Host)
	switch owner, free := p.Owner(r); {
	case owner != "":
		p.ReplyByRow(b.From, b.Host, owner, r)
	case free && b.Holds:
		p.HolderFound(b.From, b.Host)
	default:
		p.ReplyWait(b.From, b.Host, p.cfg.DecisionWait)
	}
}

// LoadReported handles a node's load report.
func (p *policy) LoadReported(e strategy.Load) {
	w := p.worker(e.Node)
	if len(p.moves.requested) == 0 && p.moves.settled(p.Now()) {
		w.incoming, w.outgoing = 0, 0
	}
	if s, ok := w.update(p.Now(), e); ok && s.Check() == nil {
		p.record(s)
	}
	if p.splitAt.IsZero() && len(p.pool.hosts) > 0 {
		p.splitAt = p.Now()
	}
}

// record writes samples to the log.
func (p *policy) record(all ...model.Sample) {
	var w varint.Writer
	for _, s := range all {
		k := numberedSample{max(p.samples.next, 1), s}
		w = w[:0]
		k.append(&w)
		p.samples.next = k.number + 1
		p.Record(w)
	}
}

// worker returns the state of a node.
func (p *policy) worker(n strategy.Node) *worker {
	w := p.workers[n]
	if w == nil {
		w = &worker{node: n, uncorrected: p.cfg.Splitter == Paper}
		p.workers[n] = w
	}
	w.setModel(p.model)
	return w
}

// activeWorkers returns the nodes that report their load or may start to; all nodes if none does.
func (p *policy) activeWorkers() (present []*worker) {
	patience := 10 * p.cfg.Beat
	fresh := p.Now().Sub(p.ElectedAt()) < patience
	for _, n := range p.Members() {
		if w := p.worker(n); p.Now().Sub(w.reportedAt) < patience || w.reportedAt.IsZero() && fresh {
			present = append(present, w)
		}
	}
	if len(present) == 0 {
		for _, n := range p.Members() {
			present = append(present, p.worker(n))
		}
	}
	return present
}

// Advance runs the pending work.
func (p *policy) Advance() {
	for n := range p.workers {
		if !p.Alive(n) {
			delete(p.workers, n)
			p.pool.forget(n)
		}
	}
	p.learn()
	if !p.splitAt.IsZero() && !p.splitAt.After(p.Now()) {
		p.split()
		p.splitAt = time.Time{}
		if len(p.pool.hosts) > 0 {
			p.splitAt = p.Now().Add(splitEvery)
		}
	}
	if !p.sweepAt.After(p.Now()) {
		p.pool.expire(p.Now().Add(-4 * poolWait))
		p.sweepAt = p.Now().Add(poolWait)
	}
	for _, n := range p.Members() {
		if w := p.workers[n]; w != nil {
			w.setModel(p.model)
			w.startPiece(p.Now())
			p.sendQuota(w)
		}
	}
	if p.cfg.Splitter == Exact {
		p.rebalance()
	}
}

// learn adds the user's samples once, and trains the model if there are new samples.
func (p *policy) learn() {
	if given := p.UserData(); !p.initialized && len(given) > 0 {
		if p.initialized = true; p.samples.next == 0 {
			p.record(decodeSamples(given)...)
		}
	}
	if p.hasNewSamples && !p.trainAt.After(p.Now()) {
		p.hasNewSamples, p.trainAt = false, p.Now().Add(trainEvery)
		epochs := moreEpochs
		if p.model.Report().Trained == 0 {
			epochs = firstEpochs
		}
		p.model.Train(epochs)
		for _, w := range p.workers {
			w.prediction.model = nil
		}
	}
}

// sendQuota sends a node its quota if that has changed.
func (p *policy) sendQuota(w *worker) {
	if w.reportedAt.IsZero() || p.Now().Sub(w.quotaSentAt) < quotaEvery {
		return
	}
	q := strategy.Quota{Given: w.assigned, Done: w.done(&w.load), Left: int64(w.left()), Error: -1}
	if w.accuracy.finished > 0 {
		q.Error = w.accuracy.meanError
	}
	q.Predicted = time.Duration(min(w.time()(w.left()), maxSeconds) * float64(time.Second))
	if told := appendQuota(&q, w.prediction.basis); !bytes.Equal(told, w.sentQuota) {
		w.sentQuota, w.quotaSentAt = told, p.Now()
		p.SendStatus(w.node, told)
	}
}

// NextDue returns the time of the next pending work; zero: none.
func (p *policy) NextDue() (at time.Time) {
	at = central.Earliest(p.splitAt, p.moves.checkAt)
	if p.hasNewSamples {
		at = central.Earliest(at, p.trainAt)
	}
	if len(p.pool.hosts) > 0 {
		at = central.Earliest(at, p.sweepAt)
	}
	return at
}

// String describes the work in progress.
func (p *policy) String() string {
	var nodes []string
	for _, w := range p.workers {
		nodes = append(nodes, fmt.Sprintf("%s: left %d, done %d, lasts %.1fs by %v", w.node, w.left(), w.done(&w.load),
			w.time()(w.left()), w.prediction.basis))
	}
	slices.Sort(nodes)
	return fmt.Sprintf("pooled %d hosts, %d links; moving %d; %q", len(p.pool.hosts), p.pool.links, len(p.moves.inTransit),
		nodes)
}
