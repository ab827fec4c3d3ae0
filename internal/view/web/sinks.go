package web

import (
	"github.com/prometheus/client_golang/prometheus"

	"kumo/internal/base/stats"
)

var (
	sinkSent     = sinkDesc("records_total", "Records that a sink has taken in this run.")
	sinkBytes    = sinkDesc("bytes_total", "Bytes of these records, about.")
	sinkFailures = sinkDesc("failures_total", "Tries of reaching a sink, or of handing it records, that failed.")
	sinkRetries  = sinkDesc("retries_total", "Tries after such.")
	sinkWaiting  = sinkDesc("records_waiting", "Records that wait for a sink in the crawl's files.")
	sinkBehind   = sinkDesc("behind_seconds", "Time since the visit of the first record that waits for a sink.")
	sinkFailing  = sinkDesc("failing", "1 while a sink takes no records, and is tried again.")
)

func sinkDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("kumo_sink_"+name, help, []string{"sink"}, nil)
}

// sinks collects how far each sink is.
type sinks struct{ status func() []stats.Sink }

// Describe says which metrics there are.
func (*sinks) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{sinkSent, sinkBytes, sinkFailures, sinkRetries, sinkWaiting, sinkBehind,
		sinkFailing} {
		descs <- d
	}
}

// Collect gives their values.
func (s *sinks) Collect(metrics chan<- prometheus.Metric) {
	for _, one := range s.status() {
		put := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64) {
			metrics <- prometheus.MustNewConstMetric(desc, kind, value, one.Sink)
		}
		put(sinkSent, prometheus.CounterValue, float64(one.Sent))
		put(sinkBytes, prometheus.CounterValue, float64(one.Bytes))
		put(sinkFailures, prometheus.CounterValue, float64(one.Failures))
		put(sinkRetries, prometheus.CounterValue, float64(one.Retries))
		put(sinkWaiting, prometheus.GaugeValue, float64(one.Waiting))
		put(sinkBehind, prometheus.GaugeValue, one.Behind)
		failing := 0.0
		if one.Why != "" {
			failing = 1
		}
		put(sinkFailing, prometheus.GaugeValue, failing)
	}
}
