package machine

import (
	"slices"
	"time"
)

// A Usage is the resource usage of a process up to some time.
type Usage struct {
	Bytes int64         // received from servers, in total
	CPU   time.Duration // see CPUTime
	Busy  float64       // share of the request slots in use now, 0 to 1
}

// A BandwidthMeter estimates the bandwidth of the machine's internet connection from the traffic. It observes a [Usage]
// about every second and computes a rate every few seconds. A rate counts only if the connection may have been the
// limit: all request slots were in use, and the processors were not busy. If the three greatest of the last rates are
// nearly equal, they are taken as the bandwidth. If all servers are slow, the result is the same; then the estimate is
// what the process can get from them.
//
// The zero value is ready to use. A BandwidthMeter is not safe for concurrent use.
type BandwidthMeter struct {
	began     time.Time // start of the current window
	first     Usage
	slotsFree bool      // some request slots were free in the window
	rates     []float64 // megabits per second, newest last
	estimate  float64   // 0 until the connection was the limit
}

const (
	rateWindow    = 5 * time.Second
	maxRates      = 12  // number of rates to keep
	rateTolerance = 0.1 // maximum relative difference of the three greatest rates
	minBusy       = 0.9 // minimum share of request slots in use
	maxCPU        = 0.8 // maximum share of processor time in use
)

// Observe records the usage at a time, on a machine with the given number of processors; 0 if unknown.
func (l *BandwidthMeter) Observe(now time.Time, u Usage, cores float64) {
	took := now.Sub(l.began)
	if l.began.IsZero() || took < 0 || u.Bytes < l.first.Bytes { // counters were reset
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

// add adds a rate at which the connection may have been the limit.
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
	// update only on a significant change
	if most := greatest[2]; most < (1-rateTolerance)*l.estimate || most > (1+rateTolerance)*l.estimate {
		l.estimate = most
	}
}

// Mbps returns the estimated bandwidth in megabits per second; 0 until the connection was the limit.
func (l *BandwidthMeter) Mbps() float64 { return l.estimate }
