package web

import (
	"github.com/prometheus/client_golang/prometheus"

	"kumo/internal/base/stats"
)

var (
	filterAnswers = prometheus.NewDesc("kumo_filter_answers_total", "What filters have answered, by filter, point (link, "+
		"request, record) and answer (yes, drop, change; none: the default was taken, and is counted with the others, too).",
		[]string{"filter", "point", "answer"}, nil)
	filterRestarts = prometheus.NewDesc("kumo_filter_restarts_total", "Processes of filters that were begun again, by "+
		"filter and cause (crash, timeout, nonsense).", []string{"filter", "cause"}, nil)
)

// filters collects what programs have answered.
type filters struct{ counts func() []stats.FilterCounts }

// Describe says which metrics there are.
func (*filters) Describe(descs chan<- *prometheus.Desc) {
	descs <- filterAnswers
	descs <- filterRestarts
}

// Collect gives their values.
func (f *filters) Collect(metrics chan<- prometheus.Metric) {
	seen := map[string]bool{}
	for _, c := range f.counts() {
		if seen[c.Filter] { // given twice
			continue
		}
		seen[c.Filter] = true
		count := func(desc *prometheus.Desc, n int64, labels ...string) {
			labels = append([]string{c.Filter}, labels...)
			metrics <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), labels...)
		}
		for name, p := range c.Points {
			count(filterAnswers, p.Asked-p.Dropped-p.Changed, name, "yes")
			count(filterAnswers, p.Dropped, name, "drop")
			count(filterAnswers, p.Changed, name, "change")
			count(filterAnswers, p.Unanswered, name, "none")
		}
		count(filterRestarts, c.Crashed, "crash")
		count(filterRestarts, c.Late, "timeout")
		count(filterRestarts, c.Nonsense, "nonsense")
	}
}
