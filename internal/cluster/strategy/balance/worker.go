package balance

import (
	"math"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/balance/model"
	"kumo/internal/cluster/strategy/balance/split"
)

// A worker is the leader's state of a node.
type worker struct {
	node       strategy.Node
	load       strategy.Load // last report
	reportedAt time.Time     // time of the last report; zero: none
	firstPages int64         // Pages in the first report

	assigned int64 // URLs
	delivery delivery
	// URLs of moving hosts that the node's reports do not include yet: to it, and from it
	incoming, outgoing int
	piece              *piece

	inFlight      float64 // rest of the fetches in progress, in pages
	fetched       float64 // pages, including the finished part of fetches in progress
	work, seconds float64 // decayed sums of pages and seconds while it had work
	pace          float64 // pages/s over the last seconds
	prediction    prediction
	uncorrected   bool // the prediction alone counts, as in the paper

	width       width
	accuracy    accuracy
	sentQuota   []byte // last quota sent
	quotaSentAt time.Time
}

// A prediction is a model's prediction of a node's time.
type prediction struct {
	time  split.Time
	basis model.Basis
	model *model.Model
}

// A delivery tracks the links that were sent to a node.
type delivery struct {
	sent []grant       // links that may not have arrived yet
	took time.Duration // average time until arrival; 0: unknown
}

// A width tracks whether more hosts would make a node faster.
type width struct {
	idle    int       // consecutive reports with idle workers and pending URLs
	widened time.Time // last time the node got more hosts for that reason
	before  float64   // its pace at that time
	bounded bool      // more hosts did not make it faster: its machine is the limit
	boundAt time.Time // start of bounded
}

// An accuracy is the quality of the predictions for a node's pieces.
type accuracy struct {
	finished  int     // pieces with a prediction
	meanError float64 // moving average of |true - predicted| / true
}

func (a *accuracy) add(failure float64) {
	if a.finished++; a.finished == 1 {
		a.meanError = failure
	} else {
		a.meanError += (failure - a.meanError) / 4
	}
}

// A grant is a number of links sent at a time.
type grant struct {
	at    time.Time
	links int
}

// A piece is the work of a node from one moment on. When it has fetched so many pages, their duration becomes a sample.
type piece struct {
	urls        int
	began       time.Time
	work        float64 // pages done by the node at the start
	predicted   float64 // seconds
	beats       int
	politeBeats int  // beats in which politeness was the limit
	fetching    int  // fetches in progress at the start
	hadRate     bool // the node's rate was known
}

const (
	window         = 10.0             // seconds; after this time a page's weight is 1/e
	windowPages    = 10               // the window of a slow node covers at least this many pages
	paceWindow     = 2.0              // seconds; like window, for pace
	trustPages     = 4.0              // weight of a prediction relative to the pace, in pages
	weakTrustPages = 0.5              // the same without data of the node itself
	maxDeviation   = 0.3              // log of the deviation that halves the weight, given many pages
	fewPages       = 10.0             // pages of little weight: they finish in bursts, and the first take longer
	lostAfter      = 6 * time.Second  // older links must have been known to the node
	firstLostAfter = 10 * time.Second // the same for the first links
	idleLostAfter  = 3 * time.Second  // the same if the node has no other work
	maxPiece       = 60.0             // seconds
	leastSample    = 2 * time.Second
	leastPages     = 4
	minSpeedup     = 1.2 // speedup from which more hosts have helped
	fullBusy       = 0.9
	idleBusy       = 0.75
	boundRetry     = 15 * time.Second // until a node limited by its machine is tried again
)

// left returns the number of URLs that a node has to fetch, including those in transit and in progress.
func (w *worker) left() int { return w.queued() + int(math.Ceil(w.inFlight)) }

// expected returns the number of pages that a node should have left at a time, since it has worked since its report. It
// includes the rest of the pages in progress.
func (w *worker) expected(now time.Time) float64 {
	left := float64(w.queued()) + w.inFlight
	if w.load.Paused || w.reportedAt.IsZero() {
		return left
	}
	return max(left-now.Sub(w.reportedAt).Seconds()/w.page(), float64(w.inTransit()))
}

// queued is left without the fetches in progress.
func (w *worker) queued() int {
	return max(0, int(min(w.load.Pending, 1<<40))-w.outgoing) + w.inTransit()
}

// inTransit returns the number of URLs in transit to the node.
func (w *worker) inTransit() int { return w.incoming + w.delivery.links() }

// update handles a load report. If a piece is finished and suitable, it returns a sample.
func (w *worker) update(now time.Time, e strategy.Load) (s model.Sample, ok bool) {
	was, since := w.load, now.Sub(w.reportedAt)
	if since <= 0 && !w.reportedAt.IsZero() {
		return s, false
	}
	anew := w.reportedAt.IsZero() || e.Pages < was.Pages
	w.load, w.reportedAt = e, now
	if was.Machine != e.Machine {
		w.prediction.model = nil
	}
	if anew { // the first report of a process
		w.delivery.arrive(now, int(e.Enqueued), &e)
		w.firstPages, w.piece, w.inFlight = e.Pages-w.done(&was), nil, float64(e.Fetching)/2
		w.fetched = float64(e.Pages) + w.inFlight
		return s, false
	}
	w.delivery.arrive(now, int(e.Enqueued-was.Enqueued), &e)
	w.updateInFlight(since.Seconds(), int(e.Pages-was.Pages)+e.Fetching-was.Fetching)
	fetched := float64(e.Pages) + float64(e.Fetching) - w.inFlight
	pages := fetched - w.fetched
	w.fetched = fetched
	if was.Paused || e.Paused { // the pause does not reflect the node's speed
		w.piece, w.width.idle = nil, 0
		return s, false
	}
	w.pace += (pages/since.Seconds() - w.pace) * (1 - math.Exp(-since.Seconds()/paceWindow))
	last := window // the pace of a slow node takes longer to measure
	if w.work >= 1 {
		last = min(max(last, windowPages*w.seconds/w.work), maxPiece)
	}
	fade := math.Exp(-since.Seconds() / last)
	// for nodes with little work, too; else they would always get little
	w.work, w.seconds = w.work*fade, w.seconds*fade
	// a node without work in between is at least as fast as its pages indicate
	if was.Pending > 0 && e.Pending > 0 || e.Busy >= fullBusy || pages*w.predicted() > since.Seconds() {
		w.work, w.seconds = max(0, w.work+pages), w.seconds+since.Seconds()
	}
	w.width.update(now, &w.load, w.pace)
	if w.piece != nil {
		s, ok = w.finishPiece(now)
	}
	return s, ok
}

// done returns the number of pages that the node has fetched since its first report.
func (w *worker) done(e *strategy.Load) int64 { return e.Pages - w.firstPages }

// updateInFlight estimates the rest of the fetches in progress after an interval in which begun fetches started. It is
// at least a quarter of them.
func (w *worker) updateInFlight(seconds float64, begun int) {
	w.inFlight += float64(max(begun, 0)) - seconds/w.page()
	all := float64(w.load.Fetching)
	w.inFlight = min(max(w.inFlight, all/4), all)
}

func (d *delivery) links() (n int) {
	for _, g := range d.sent {
		n += g.links
	}
	return n
}

// arrive removes links that the node has queued from those that were sent, the oldest first. load is the node's current
// load.
func (d *delivery) arrive(now time.Time, links int, load *strategy.Load) {
	for len(d.sent) > 0 {
		g := &d.sent[0]
		switch {
		case g.links <= links:
			d.addTime(now.Sub(g.at))
		case now.Sub(g.at) < d.patience(links, load):
			g.links -= links
			return
		}
		links = max(0, links-g.links)
		d.sent = d.sent[1:]
	}
}

// patience returns how long to wait for links that were sent; it is shorter if the node has no other work.
func (d *delivery) patience(come int, load *strategy.Load) time.Duration {
	switch idle := come == 0 && load.Pending == 0 && load.Fetching == 0; {
	case d.took == 0:
		return firstLostAfter
	case idle:
		return max(idleLostAfter, min(2*d.took, lostAfter))
	}
	return max(lostAfter, min(4*d.took, firstLostAfter))
}

// addTime adds the time that a grant took to arrive.
func (d *delivery) addTime(t time.Duration) {
	if t = min(t, lostAfter); d.took == 0 {
		d.took = t
	} else {
		d.took += (t - d.took) / 4
	}
}

// pagesDone returns the pages that a node has done; a fetch in progress counts as half.
func pagesDone(e *strategy.Load) float64 { return float64(e.Pages) + float64(e.Fetching)/2 }

// update updates the count of idle beats, and checks whether more hosts have made the node faster.
func (w *width) update(now time.Time, load *strategy.Load, pace float64) {
	switch {
	case load.Busy >= fullBusy:
		w.idle, w.bounded = 0, false
		return
	case load.Busy >= idleBusy, load.Pending == 0:
		w.idle = 0
		return
	}
	w.idle++
	if after := now.Sub(w.widened); !w.widened.IsZero() && after >= 3*time.Second {
		w.bounded, w.boundAt = pace < minSpeedup*w.before, now
		w.widened = time.Time{}
	}
}

// needsHosts reports whether a node has too few hosts: its workers are idle, and more hosts may make it faster.
func (w *width) needsHosts(now time.Time) bool {
	return w.idle >= 2 && w.widened.IsZero() && (!w.bounded || now.Sub(w.boundAt) >= boundRetry)
}

// isPolitenessBound reports whether politeness is the limit: workers are idle, while most hosts with pending URLs have
// no fetch in progress.
func (w *worker) isPolitenessBound() bool {
	return w.load.Busy < idleBusy && w.load.Pending > 0 && 2*w.load.Fetching < w.load.Hosts
}

// widen records that the node gets more hosts.
func (w *worker) widen(now time.Time) { w.width.widened, w.width.before = now, w.pace }

// finishPiece checks whether the piece is finished, and returns a sample if it is suitable.
func (w *worker) finishPiece(now time.Time) (s model.Sample, ok bool) {
	p := w.piece
	p.beats++
	if w.isPolitenessBound() {
		p.politeBeats++
	}
	pages, took := int(math.Round(pagesDone(&w.load)-p.work)), now.Sub(p.began)
	dry := w.left() == 0
	if pages < p.urls && !dry {
		return s, false
	}
	w.piece = nil
	least := max(leastPages, 2*w.load.Fetching, 2*p.fetching) // else the fetches in progress would distort the result
	if pages < least || took < leastSample || dry && p.beats < 5 {
		return s, false
	}
	real := took.Seconds()
	err := math.Abs(real-p.predicted*float64(pages)/float64(p.urls)) / real
	if p.hadRate {
		w.accuracy.add(err)
	}
	if p.politeBeats*5 > p.beats {
		return s, false // politeness was the limit
	}
	return model.Sample{Node: w.node.Name(), Machine: model.Machine(w.load.Machine), URLs: pages, Seconds: real}, true
}

// hasRate reports whether there is any data about the node's speed.
func (w *worker) hasRate() bool { return w.prediction.basis > model.Nothing || w.work >= trustPages }

// hasOwnRate reports whether the node's own speed was measured, in this crawl or before.
func (w *worker) hasOwnRate() bool { return w.prediction.basis >= model.Pace || w.work >= trustPages }

// startPiece starts a piece if the node has work and no piece is in progress.
func (w *worker) startPiece(now time.Time) {
	left := w.left()
	if w.piece != nil || left == 0 || w.reportedAt.IsZero() {
		return
	}
	f := w.time()
	if all := f(left); all > maxPiece {
		left = max(1, int(float64(left)*maxPiece/all))
	}
	w.piece = &piece{urls: left, began: now, work: pagesDone(&w.load), fetching: w.load.Fetching,
		predicted: f(left), hadRate: w.hasRate()}
}

// setModel updates the prediction from a new model.
func (w *worker) setModel(m *model.Model) {
	if w.prediction.model != m {
		f, basis := m.Time(w.node.Name(), model.Machine(w.load.Machine))
		w.prediction.time, w.prediction.basis, w.prediction.model = f, basis, m
	}
}

// time returns the node's time for n URLs: the prediction, corrected by its recent pace.
func (w *worker) time() split.Time {
	f, by := w.prediction.time, w.slower()
	return func(n int) float64 { return by * f(n) }
}

// slower returns the ratio of the node's recent time per page to the predicted time. The greater the difference, the
// less the prediction counts, since the machine must have changed.
func (w *worker) slower() float64 {
	if w.uncorrected {
		return 1
	}
	page := w.predicted()
	weight := trustPages
	if w.prediction.basis < model.Pace { // based on other machines, or on nothing
		weight = weakTrustPages
	}
	if w.seconds > 0 {
		off := math.Log((w.seconds+page)/((w.work+1)*page)) / maxDeviation
		seen := max(w.work, w.seconds/page)
		seen /= seen + fewPages
		weight /= 1 + off*off*seen*seen
	}
	return (w.seconds + weight*page) / ((w.work + weight) * page)
}

// predicted returns the predicted seconds per page; page returns them at the recent pace.
func (w *worker) predicted() float64 {
	n := max(w.left(), 10)
	return w.prediction.time(n) / float64(n)
}

func (w *worker) page() float64 { return w.predicted() * w.slower() }

// unitsWithin returns how many of urls URLs a node does in a time, in seconds.
func unitsWithin(f split.Time, urls int, in float64) int {
	low, high := 0, urls
	for low < high { // f is increasing
		if mid := (low + high + 1) / 2; f(mid) <= in {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}
