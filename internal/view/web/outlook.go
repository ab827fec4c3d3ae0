package web

import (
	"github.com/prometheus/client_golang/prometheus"

	"kumo/internal/state/forecast"
	"kumo/internal/state/stall"
)

var (
	atLeast = prometheus.NewDesc("kumo_ends_in_at_least_seconds", "Until what waits now is done, by the slowest host; 0 "+
		"if nothing is known.", nil, nil)
	growth = prometheus.NewDesc("kumo_queue_growth_per_second", "URLs a second that wait more, negative: less, over the "+
		"last minutes.", nil, nil)
	stalled = prometheus.NewDesc("kumo_stalled_seconds", "For how long nothing was answered though URLs wait, with the "+
		"kind of reason; 0 if that is not so.", []string{"kind"}, nil)
)

// outlook collects what is to be expected, and why nothing is fetched.
type outlook struct {
	forecast func() forecast.Forecast
	stall    func() stall.Alarm
}

// Describe says which metrics there are.
func (*outlook) Describe(descs chan<- *prometheus.Desc) {
	descs <- atLeast
	descs <- growth
	descs <- stalled
}

// Collect gives their values. Each kind of stall is always there, so that one can be told to be over.
func (o *outlook) Collect(metrics chan<- prometheus.Metric) {
	f, a := o.forecast(), o.stall()
	metrics <- prometheus.MustNewConstMetric(atLeast, prometheus.GaugeValue, f.AtLeast)
	metrics <- prometheus.MustNewConstMetric(growth, prometheus.GaugeValue, f.Growth)
	for _, kind := range stall.Kinds {
		seconds := 0.0
		if a.Kind == kind {
			seconds = a.For.Seconds()
		}
		metrics <- prometheus.MustNewConstMetric(stalled, prometheus.GaugeValue, seconds, string(kind))
	}
}
