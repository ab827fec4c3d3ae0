package balance

import (
	"math"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/balance/model"
	"kumo/internal/cluster/strategy/balance/split"
)

// A worker is a node as the leader sees it.
type worker struct {
	node       strategy.Node
	load       strategy.Load // the last
	reportedAt time.Time     // when; zero: it has told nothing yet
	firstPages int64         // pages when it was heard of first

	assigned int64 // URLs
	delivery delivery
	// URLs of hosts that move, as far as what the node tells does not count them yet: to it, and from it
	incoming, outgoing int
	piece              *piece

	inFlight      float64 // what is left of the pages under way, in pages
	fetched       float64 // pages fetched, with what is done of those under way
	work, seconds float64 // pages, lately, while it had something to do: what is old counts less
	pace          float64 // pages a second, very lately
	prediction    prediction

	width       width
	accuracy    accuracy
	sentQuota   []byte // of its quota
	quotaSentAt time.Time
}

// A prediction is the time that a model predicts for a node.
type prediction struct {
	time  split.Time
	basis model.Basis
	model *model.Model
}

// A delivery tracks the links that were sent to a node.
type delivery struct {
	sent []grant       // that may not have arrived yet
	took time.Duration // recent time until arrival; 0: unknown
}

// A width tracks whether more hosts would make a node faster.
type width struct {
	idle    int       // beats in a row in which workers were idle though URLs waited
	widened time.Time // when the node was given more hosts because of that
	before  float64   // its pace then
	bounded bool      // more hosts do not make it faster: its machine is the limit
	boundAt time.Time // since when
}

// An accuracy says how good the predictions for a node's pieces were.
type accuracy struct {
	finished  int     // pieces of which something was predicted
	meanError float64 // mean of |true - predicted| / true of them, the newest counting most
}

func (a *accuracy) add(failure float64) {
	if a.finished++; a.finished == 1 {
		a.meanError = failure
	} else {
		a.meanError += (failure - a.meanError) / 4
	}
}

// A grant is links that were given at a time.
type grant struct {
	at    time.Time
	links int
}

// A piece is what a node has to do from one moment on: when it has fetched so many pages, that is known how long it
// took.
type piece struct {
	urls        int
	began       time.Time
	work        float64 // of the node, then
	predicted   float64 // seconds
	beats       int
	politeBeats int  // of these, in which politeness was the limit
	fetching    int  // when it began
	hadRate     bool // something was, of how fast the node is
}

const (
	window         = 10.0             // seconds: what is older by that counts 1/e of what is new
	windowPages    = 10               // or, of a slow node, the time of so many pages
	paceWindow     = 2.0              // the same for the pace of now
	trustPages     = 4.0              // pages for which a prediction counts beside the pace
	weakTrustPages = 0.5              // the same where it rests on nothing of the node's own
	maxDeviation   = 0.3              // logarithm of how far off it is where it counts half, once many pages say so
	fewPages       = 10.0             // pages that say little: they come in heaps, and the first ones take longer
	lostAfter      = 6 * time.Second  // what has not come after so long does not: it is known there
	firstLostAfter = 10 * time.Second // the same of what is sent first
	idleLostAfter  = 3 * time.Second  // the same where the node has nothing else to do
	maxPiece       = 60.0             // seconds
	leastSample    = 2 * time.Second
	leastPages     = 4
	minSpeedup     = 1.2 // times as fast is a node at least that is helped by more hosts
	fullBusy       = 0.9
	idleBusy       = 0.75
	boundRetry     = 15 * time.Second // until a node whose machine was the limit is tried again
)

// left is how many URLs a node has to fetch, with those that are on their way to it, and what is left of those under
// way.
func (w *worker) left() int { return w.queued() + int(math.Ceil(w.inFlight)) }

// queued is left without what is under way.
func (w *worker) queued() int {
	return max(0, int(min(w.load.Pending, 1<<40))-w.outgoing) + w.inTransit()
}

// inTransit is how many URLs are on their way to the node.
func (w *worker) inTransit() int { return w.incoming + w.delivery.links() }

// update takes in what the node tells, and returns a sample if a piece is done from which something can be learnt.
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
	if anew { // another process, or the first word of it
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
	if was.Paused || e.Paused { // that time says nothing of the node
		w.piece, w.width.idle = nil, 0
		return s, false
	}
	w.pace += (pages/since.Seconds() - w.pace) * (1 - math.Exp(-since.Seconds()/paceWindow))
	last := window // a slow node's pace takes longer to tell
	if w.work >= 1 {
		last = min(max(last, windowPages*w.seconds/w.work), maxPiece)
	}
	fade := math.Exp(-since.Seconds() / last)
	w.work, w.seconds = w.work*fade, w.seconds*fade // also of a node with little to do, or it would get as little for ever
	// model one that had nothing to do for a while it is known that it is at least as fast
	if was.Pending > 0 && e.Pending > 0 || e.Busy >= fullBusy || pages*w.predicted() > since.Seconds() {
		w.work, w.seconds = max(0, w.work+pages), w.seconds+since.Seconds()
	}
	w.width.update(now, &w.load, w.pace)
	if w.piece != nil {
		s, ok = w.finishPiece(now)
	}
	return s, ok
}

// done is how many pages the node has fetched by what it told, since it was heard of first.
func (w *worker) done(e *strategy.Load) int64 { return e.Pages - w.firstPages }

// updateInFlight says what is left of the pages under way, some time later, when so many have been begun: a quarter of them at
// least, as some are in the midst of it.
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

// patience is how long what was sent is waited for: not for long where the node has nothing else to do.
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

// pagesDone is what a node has done, in pages: of what is under way the half, in the mean.
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

// narrow reports whether a node has too few hosts: its workers are idle, and more hosts may make it faster.
func (w *width) needsHosts(now time.Time) bool {
	return w.idle >= 2 && w.widened.IsZero() && (!w.bounded || now.Sub(w.boundAt) >= boundRetry)
}

// isPolitenessBound reports whether politeness is the limit: workers are idle, while most of the hosts where URLs wait rest.
func (w *worker) isPolitenessBound() bool {
	return w.load.Busy < idleBusy && w.load.Pending > 0 && 2*w.load.Fetching < w.load.Hosts
}

// widen records that the node gets more hosts.
func (w *worker) widen(now time.Time) { w.width.widened, w.width.before = now, w.pace }

// finishPiece looks whether the piece is done.
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
	least := max(leastPages, 2*w.load.Fetching, 2*p.fetching) // else what was under way makes too much of a difference
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

// known reports whether something is known of how fast the node is.
func (w *worker) hasRate() bool { return w.prediction.basis > model.Nothing || w.work >= trustPages }

// hasOwnRate reports whether the node has shown how fast it is, in this crawl or before.
func (w *worker) hasOwnRate() bool { return w.prediction.basis >= model.Pace || w.work >= trustPages }

// startPiece begins a piece, if the node has something to do and none is under way.
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

// setModel has the worker predicted by what a model knows now.
func (w *worker) setModel(m *model.Model) {
	if w.prediction.model != m {
		f, basis := m.Time(w.node.Name(), model.Machine(w.load.Machine))
		w.prediction.time, w.prediction.basis, w.prediction.model = f, basis, m
	}
}

// time is how long the node takes for n URLs: as predicted, and by its pace of late.
func (w *worker) time() split.Time {
	f, by := w.prediction.time, w.slower()
	return func(n int) float64 { return by * f(n) }
}

// slower is how many times as long as predicted the node takes of late. The farther that is from what was predicted,
// the less a prediction counts: the machine is not what it was.
func (w *worker) slower() float64 {
	page := w.predicted()
	weight := trustPages
	if w.prediction.basis < model.Pace { // of other machines, or of none
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

// predicted is how long a page takes as predicted, and page as it does of late, in seconds.
func (w *worker) predicted() float64 {
	n := max(w.left(), 10)
	return w.prediction.time(n) / float64(n)
}

func (w *worker) page() float64 { return w.predicted() * w.slower() }

// unitsWithin is how many of some URLs a node does in a time, in seconds.
func unitsWithin(f split.Time, urls int, in float64) int {
	low, high := 0, urls
	for low < high { // f rises
		if mid := (low + high + 1) / 2; f(mid) <= in {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}
