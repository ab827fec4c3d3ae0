package forecast

import (
	"testing"
	"time"
)

// watched returns the forecast after some minutes with constant growth per second.
func watched(waiting, waitingBy, doneBy float64, minutes float64, longest ...Host) Forecast {
	var w Forecaster
	var f Forecast
	start := time.Unix(1_000_000, 0)
	for sec := 0.0; sec <= minutes*60; sec++ {
		f = w.Update(Sample{Time: start.Add(time.Duration(sec) * time.Second), Pending: max(0, int(waiting+waitingBy*sec)),
			Done: int64(doneBy * sec), SlowestHosts: longest})
	}
	return f
}

func TestForecast(t *testing.T) {
	slow := Host{Name: "example.com", URLs: 32_400, Delay: time.Second, Remaining: 9 * time.Hour}
	quick := Host{Name: "a.test", URLs: 3, Delay: time.Second, Remaining: 2 * time.Second}
	for name, c := range map[string]struct {
		got   Forecast
		trend Trend
		words string
	}{
		"at first": {watched(100, 0, 0, 0, quick), Unknown, "too early to say"},
		"at first, with a long queue": {watched(40_000, 0, 0, 0, slow), Unknown,
			"at least 9 h: example.com has 32,400 URLs at one a second"},
		"it grows": {watched(100, 12, 3, 3, quick), Grows, "unknown: the queue grows by 12 a second"},
		"it grows, and has a long queue": {watched(40_000, 12, 3, 3, slow), Grows,
			"unknown: the queue grows by 12 a second; at least 9 h: example.com has 32,400 URLs at one a second"},
		"it shrinks": {watched(10_000, -5, 5, 5, quick), Shrinks, "about 28 min: 8,500 URLs wait, 5 a second less"},
		"it shrinks, and the long queue is the end": {watched(40_000, -5, 5, 5, slow), Shrinks,
			"at least 9 h: example.com has 32,400 URLs at one a second"},
		"it shrinks slowly": {watched(40_000, -0.1, 5, 5, quick), Steady,
			"unknown: as many URLs are found as are done"},
		"it stands": {watched(100, 0, 0, 5, quick), Steady, "unknown: no URL was done recently"},
		"a host is left alone": {watched(2, 0, 0, 0, Host{Name: "a.test", URLs: 2, Delay: time.Second,
			Remaining: 10 * time.Minute}),
			Unknown, "at least 10 min: a.test has 2 URLs, and may not be visited for 10 min"},
		"the end": {watched(10, -1, 1, 1), Steady, "the queue is empty"},
	} {
		if c.got.Trend != c.trend || c.got.Words != c.words {
			t.Errorf("%s: %s, %q; want %s, %q", name, c.got.Trend, c.got.Words, c.trend, c.words)
		}
	}
}

// Old samples do not count.
func TestAForecastForgets(t *testing.T) {
	var w Forecaster
	start := time.Unix(1_000_000, 0)
	n, f := 0, Forecast{}
	for sec := range 20 * 60 {
		if n += 10; sec > 10*60 {
			n -= 20
		}
		f = w.Update(Sample{Time: start.Add(time.Duration(sec) * time.Second), Pending: n, Done: int64(30 * sec)})
	}
	if f.Trend != Shrinks || f.Growth > -9.9 || f.Rate < 29 {
		t.Errorf("%+v", f)
	}
	if len(w.samples) > int(window/sampleInterval)+1 {
		t.Errorf("%d samples are kept", len(w.samples))
	}
}

// A crawl that starts with one URL and finds many at once shrinks from then on.
func TestTheFirstMomentIsNoMeasure(t *testing.T) {
	var w Forecaster
	start := time.Unix(1_000_000, 0)
	for sec := range 45 {
		waiting := 45 - sec
		if sec == 0 {
			waiting = 1
		}
		f := w.Update(Sample{Time: start.Add(time.Duration(sec) * time.Second), Pending: waiting, Done: int64(sec)})
		if want := sec >= int(minSpan.Seconds()); (f.Trend == Shrinks) != want || want && (f.Growth != -1 || f.Rate != 1) {
			t.Errorf("after %d s, %d waiting: %+v", sec, waiting, f)
		}
	}
}

func TestPace(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "any pace", time.Second: "one a second",
		30 * time.Second:       "one every 30 s",
		250 * time.Millisecond: "4 a second", 1500 * time.Millisecond: "one every 1.5 s"} {
		if got := Pace(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
