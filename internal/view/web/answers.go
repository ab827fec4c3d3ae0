package web

import (
	"github.com/prometheus/client_golang/prometheus"
)

var (
	responses = prometheus.NewDesc("kumo_responses_total", "URLs that were answered, by class of status (1xx to 5xx, "+
		"other).",
		[]string{"class"}, nil)
	errorKinds = prometheus.NewDesc("kumo_errors_total", "URLs that got no answer, by kind of failure (dns, connect, "+
		"tls, timeout, ...).",
		[]string{"kind"}, nil)
)

// classes are those of statuses; each is there from the beginning, so that rates can be taken.
var classes = []string{"other", "1xx", "2xx", "3xx", "4xx", "5xx"}

// answers collects what became of visits.
type answers struct {
	of func() (statuses map[int]int64, failures map[string]int64)
}

// Describe says which metrics there are.
func (*answers) Describe(descs chan<- *prometheus.Desc) {
	descs <- responses
	descs <- errorKinds
}

// Collect gives their values.
func (a *answers) Collect(metrics chan<- prometheus.Metric) {
	statuses, failures := a.of()
	var sums [6]int64
	for status, n := range statuses {
		class := status / 100
		if class < 1 || class > 5 {
			class = 0
		}
		sums[class] += n
	}
	for class, n := range sums {
		metrics <- prometheus.MustNewConstMetric(responses, prometheus.CounterValue, float64(n), classes[class])
	}
	for kind, n := range failures {
		metrics <- prometheus.MustNewConstMetric(errorKinds, prometheus.CounterValue, float64(n), kind)
	}
}
