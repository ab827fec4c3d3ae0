package stats

import (
	"sync"
	"time"
)

// A Point is a crawl's counters at one time, of which rates follow from two.
type Point struct {
	Time    time.Time `json:"time"`
	Pages   int64     `json:"pages"`
	Bytes   int64     `json:"bytes"`
	Failed  int64     `json:"failed"`
	Known   int64     `json:"known"`
	Waiting int64     `json:"waiting"`
	Active  int64     `json:"active"` // hosts that are asked for something
}

// Curves are how the counters went, oldest first.
type Curves struct {
	Hour []Point `json:"hour"` // the last hour
	All  []Point `json:"all"`  // the run from its beginning
}

const (
	curvePoints = 720             // of each curve at most
	curveStep   = 5 * time.Second // between two of the last hour, and at first of the whole
)

// A Recorder keeps points for curves, however long a crawl takes: of the last hour all, of the whole run fewer as it
// goes on. Its methods may be called by many goroutines at once.
type Recorder struct {
	mu   sync.Mutex // guards below
	hour []Point
	all  []Point
	step time.Duration // between two of all
	now  Point
}

// Add takes a point in, no earlier than the one before.
func (r *Recorder) Add(p Point) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = p
	if n := len(r.hour); n == 0 || p.Time.Sub(r.hour[n-1].Time) >= curveStep {
		if n == curvePoints {
			copy(r.hour, r.hour[1:])
			r.hour = r.hour[:n-1]
		}
		r.hour = append(r.hour, p)
	}
	r.step = max(r.step, curveStep)
	if n := len(r.all); n > 0 && p.Time.Sub(r.all[n-1].Time) < r.step {
		return
	}
	if r.all = append(r.all, p); len(r.all) == curvePoints { // every second one goes
		for i := range curvePoints / 2 {
			r.all[i] = r.all[2*i]
		}
		r.all, r.step = r.all[:curvePoints/2], 2*r.step
	}
}

// Curves are those of now.
func (r *Recorder) Curves() Curves {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Curves{Hour: r.withNow(r.hour), All: r.withNow(r.all)}
}

// withNow copies points, with the newest behind them.
func (r *Recorder) withNow(points []Point) []Point {
	all := append(make([]Point, 0, len(points)+1), points...)
	if n := len(all); n > 0 && r.now.Time.After(all[n-1].Time) {
		all = append(all, r.now)
	}
	return all
}
