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
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		metrics{src})
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
