// Package web serves the figures of a running crawl over HTTP: an overview page, Prometheus metrics and Go profiles.
package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"kumo/internal/base/stats"
	"kumo/internal/engine/crawl"
	"kumo/internal/state/forecast"
	"kumo/internal/state/frontier"
	"kumo/internal/state/stall"
)

// A Source is what is shown.
type Source struct {
	Name     string // the crawl's
	Totals   func() stats.Snapshot
	Answers  func() (statuses map[int]int64, failures map[string]int64)
	Frontier func() frontier.Counts
	Known    func() int
	Outage   func() crawl.Outage
	Forecast func() forecast.Forecast
	Stall    func() stall.Alarm
	Filters  func() []stats.FilterCounts // nil: there are none
	Uploads  func() stats.Uploads        // to the crawl's place; nil: it has none
	States   func() stats.UploadedState  // of a node's state there; nil: it does not go there
	Again    func() int64                // pages of dead nodes that are fetched again; nil: there are no nodes
	Sinks    func() []stats.Sink         // nil: there are none
}

// Serve answers at l until the context ends.
func Serve(ctx context.Context, l net.Listener, src Source) error {
	srv := &http.Server{Handler: handler(src), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func handler(src Source) http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	register(reg, src)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", front(src))
	mux.Handle("/metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	mux.HandleFunc("/debug/pprof/", pprof.Index) // without cmdline: a command line can hold a password
	mux.HandleFunc("/debug/pprof/cmdline", http.NotFound)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

func register(reg *prometheus.Registry, src Source) {
	counter := func(name, help string, value func(stats.Snapshot) int64) {
		reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "kumo", Name: name, Help: help},
			func() float64 { return float64(value(src.Totals())) }))
	}
	counter("pages_total", "URLs that were answered.", func(s stats.Snapshot) int64 { return s.Pages })
	counter("bytes_total", "Bytes received over the wire.", func(s stats.Snapshot) int64 { return s.Bytes })
	counter("failures_total", "URLs that got no answer.", func(s stats.Snapshot) int64 { return s.Failed })
	counter("retries_total", "Visits that were made again.", func(s stats.Snapshot) int64 { return s.Retries })
	counter("duplicates_total", "Pages with a payload seen before.", func(s stats.Snapshot) int64 { return s.Duplicates })
	counter("recrawls_total", "Answers of URLs that were visited before.",
		func(s stats.Snapshot) int64 { return s.Recrawls })
	counter("skipped_total", "URLs left out by a rule.", func(s stats.Snapshot) int64 { return s.Skipped })
	counter("links_total", "Links found.", func(s stats.Snapshot) int64 { return s.Links })

	reg.MustRegister(&answers{src.Answers})

	line := func(name, help string, value func(crawl.Outage) float64) {
		reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "kumo", Name: name, Help: help},
			func() float64 { return value(src.Outage()) }))
	}
	line("outages_total", "Times that none of the hosts that had worked could be reached.",
		func(o crawl.Outage) float64 { return float64(o.Times) })
	line("outage_seconds_total", "Time for which that was so.", func(o crawl.Outage) float64 { return o.Total.Seconds() })
	line("out_of_sockets_total", "Attempts to connect for which this machine had no file descriptor, port or buffer.",
		func(o crawl.Outage) float64 { return float64(o.Scarce) })
	gauge := func(name, help string, value func() int) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "kumo", Name: name, Help: help},
			func() float64 { return float64(value()) }))
	}
	gauge("urls_known", "URLs met within reach.", src.Known)
	gauge("urls_waiting", "URLs in the frontier.", func() int { return src.Frontier().URLs })
	gauge("cut_off", "1 while the crawl is cut off from the web, and waits.", func() int {
		if src.Outage().CutOff {
			return 1
		}
		return 0
	})
	gauge("hosts_active", "Hosts with a request under way.", func() int { return src.Frontier().Active })
	gauge("hosts_waiting", "Hosts whose time has not come.", func() int { return src.Frontier().Waiting })
	if src.Filters != nil {
		reg.MustRegister(&filters{src.Filters})
	}
	if src.Forecast != nil {
		reg.MustRegister(&outlook{src.Forecast, src.Stall})
	}
	if src.Sinks != nil {
		reg.MustRegister(&sinks{src.Sinks})
	}
	if src.Uploads != nil {
		gauge("place_files_waiting", "Closed record files that are not in the place yet.",
			func() int { return int(src.Uploads().Waiting) })
		gauge("place_bytes_waiting", "Bytes of these files.", func() int { return int(src.Uploads().WaitSize) })
		gauge("place_files", "Files that are in the place.", func() int { return int(src.Uploads().Files) })
		gauge("place_bytes", "Bytes of these files.", func() int { return int(src.Uploads().Bytes) })
		gauge("place_failing", "1 while the place fails, and is tried again.", func() int {
			if src.Uploads().Why != "" {
				return 1
			}
			return 0
		})
	}
	if src.States != nil {
		gauge("place_checkpoints", "Checkpoints of the state that this process has brought to the place.",
			func() int { return src.States().Checkpoints })
		gauge("place_journal_cut_bytes", "Bytes of the journal that the servers have let go of for them.",
			func() int { return int(src.States().CutBytes) })
		gauge("place_journal_kept_bytes", "Bytes of the journal that the servers keep.", func() int {
			return int(src.States().Kept)
		})
		gauge("place_files_lacking", "Record files that are neither in the folder nor in the place.",
			func() int { return int(src.States().LackAll) })
	}
	if src.Again != nil {
		gauge("pages_fetched_again", "Pages of dead nodes whose records were lost, as this process has found.",
			func() int { return int(src.Again()) })
	}
	gauge("hosts_backing_off", "Hosts left alone after failures or at their wish.",
		func() int { return src.Frontier().Backing })
}
