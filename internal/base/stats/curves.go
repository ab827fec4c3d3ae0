package stats

import (
	"sync"
	"time"
)

// A Point is a sample of a crawl's counters. Two samples yield rates.
type Point struct {
	Time    time.Time `json:"time"`
	Pages   int64     `json:"pages"`
	Bytes   int64     `json:"bytes"`
	Failed  int64     `json:"failed"`
	Known   int64     `json:"known"`
	Waiting int64     `json:"waiting"`
	Active  int64     `json:"active"` // hosts with a request in progress
}

// Curves are the samples over time, oldest first.
type Curves struct {
	Hour []Point `json:"hour"` // the last hour
	All  []Point `json:"all"`  // the whole run
}

const (
	curvePoints = 720             // maximum length of a curve
	curveStep   = 5 * time.Second // interval of the hour's samples, and initially of the whole run's
)

// A Recorder samples the counters of a crawl of any length. It keeps all samples of the last hour, and thins out those
// of the whole run. It is safe for concurrent use.
type Recorder struct {
	mu   sync.Mutex // guards the fields below
	hour []Point
	all  []Point
	step time.Duration // interval of the samples in all
	now  Point
}

// Add adds a sample, which must not be older than the previous one.
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
	if r.all = append(r.all, p); len(r.all) == curvePoints { // remove every second sample
		for i := range curvePoints / 2 {
			r.all[i] = r.all[2*i]
		}
		r.all, r.step = r.all[:curvePoints/2], 2*r.step
	}
}

// Curves returns the current curves.
func (r *Recorder) Curves() Curves {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Curves{Hour: r.withNow(r.hour), All: r.withNow(r.all)}
}

// withNow copies samples and appends the latest.
func (r *Recorder) withNow(points []Point) []Point {
	all := append(make([]Point, 0, len(points)+1), points...)
	if n := len(all); n > 0 && r.now.Time.After(all[n-1].Time) {
		all = append(all, r.now)
	}
	return all
}
