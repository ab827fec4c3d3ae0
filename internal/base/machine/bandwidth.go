package machine

import (
	"slices"
	"time"
)

// A Usage is what a process has done by some time.
type Usage struct {
	Bytes int64         // read from servers
	CPU   time.Duration // see CPUTime
	Busy  float64       // share of its places for requests that are taken now, 0 to 1
}

// A Line measures the line to the web by what is read over it. It is told of a [Usage] now and then, every second or
// so, and looks at the rate over some seconds. A rate says something of the line only if the line may have been the
// limit: all places for requests were taken, and the processors were not. And it is the limit only if more could not be
// had: the three greatest of such rates, of the last minute of them, are nearly the same. Servers that all are slow
// look alike: then it is what the process gets from them.
//
// The zero value is ready. It is used by one goroutine at a time.
type BandwidthMeter struct {
	began     time.Time // of what is looked at now
	first     Usage
	slotsFree bool      // places were free meanwhile
	rates     []float64 // megabits a second, the newest last
	estimate  float64   // what has been found
}

const (
	rateWindow    = 5 * time.Second
	maxRates      = 12  // that are kept
	rateTolerance = 0.1 // by which share the greatest rates may differ
	minBusy       = 0.9 // of its places, for the line to be the limit
	maxCPU        = 0.8 // of the processors' time, at the most
)

// Observe takes in what was done by now, with so many processors.
func (l *BandwidthMeter) Observe(now time.Time, u Usage, cores float64) {
	took := now.Sub(l.began)
	if l.began.IsZero() || took < 0 || u.Bytes < l.first.Bytes { // counters have begun anew
		l.began, l.first, l.slotsFree = now, u, u.Busy < minBusy
		return
	}
	l.slotsFree = l.slotsFree || u.Busy < minBusy
	if took < rateWindow {
		return
	}
	used := (u.CPU - l.first.CPU).Seconds() / took.Seconds()
	if !l.slotsFree && (cores == 0 || used < maxCPU*cores) {
		l.add(float64(u.Bytes-l.first.Bytes) / megabit / took.Seconds())
	}
	l.began, l.first, l.slotsFree = now, u, u.Busy < minBusy
}

// add takes in a rate at which the line may have been the limit.
func (l *BandwidthMeter) add(rate float64) {
	if len(l.rates) == maxRates {
		l.rates = slices.Delete(l.rates, 0, 1)
	}
	l.rates = append(l.rates, rate)
	if len(l.rates) < 3 {
		return
	}
	greatest := slices.Sorted(slices.Values(l.rates))[len(l.rates)-3:]
	if greatest[0] <= 0 || greatest[0] < (1-rateTolerance)*greatest[2] {
		return
	}
	if most := greatest[2]; most < (1-rateTolerance)*l.estimate || most > (1+rateTolerance)*l.estimate { // what is news
		l.estimate = most
	}
}

// Mbps is what the line has, in megabits a second; 0 as long as it has not been the limit.
func (l *BandwidthMeter) Mbps() float64 { return l.estimate }
