// Package web serves the figures of a running crawl over HTTP: an overview page, Prometheus metrics and Go profiles.
package web

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"kumo/internal/base/stats"
	"kumo/internal/cluster/hostlease"
	"kumo/internal/engine/crawl"
	"kumo/internal/state/forecast"
	"kumo/internal/state/frontier"
	"kumo/internal/state/stall"
)

// A Source provides the displayed values.
type Source struct {
	Name     string // name of the crawl
	Totals   func() stats.Snapshot
	Answers  func() (statuses map[int]int64, failures map[string]int64)
	Frontier func() frontier.Counts
	Known    func() int
	Outage   func() crawl.Outage
	Forecast func() forecast.Forecast
	Stall    func() stall.Alarm
	Filters  func() []stats.FilterCounts // nil: no filters
	Uploads  func() stats.Uploads        // uploads to the crawl's storage location; nil: it has none
	States   func() stats.UploadedState  // uploads of a node's state; nil: the state is not uploaded
	// Placement returns how the node's hosts were assigned, or nil; nil: not a cluster with servers.
	Placement func() *stats.Placement
	Again     func() int64              // pages of dead nodes to fetch again; nil: not a cluster
	Sinks     func() []stats.Sink       // nil: no sinks
	Lease     func() Lease              // of a node; nil: not a cluster
	Disk      func() (free, min uint64) // bytes that are free, and that must stay free; nil: unknown
	Alive     Check                     // fails if the process is stuck and has to be restarted; nil: never
	Ready     Check                     // fails if it cannot do its work now; nil: never
}

// A Lease is a node's right to fetch.
type Lease struct {
	Left    time.Duration // until it ends; 0 if the node has none
	Expired int64         // times that it was not renewed in time
	Lost    int64         // times that the other nodes declared this one dead
}

// Several provides the values of a process with several crawls.
type Several struct {
	Name   string // of the node
	Crawls func() []Source
	Leases func() hostlease.Counters
	Alive  Check // fails if a crawl is stuck and the process has to be restarted; nil: never
	Ready  Check // fails if a crawl cannot do its work now; nil: never
}

// ServeSeveral serves requests on l until the context ends.
func ServeSeveral(ctx context.Context, l net.Listener, src Several) error {
	return serve(ctx, l, newHandler(registry(severalMetrics{src}), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintf(w, "kumo node %s; for Prometheus: /metrics; profiles: /debug/pprof/\n\n", src.Name)
		for _, c := range src.Crawls() {
			fmt.Fprintf(w, "%s: %d pages, %d URLs wait\n", c.Name, c.Totals().Pages, c.Frontier().URLs)
		}
	}, src.Alive, src.Ready))
}

// Serve serves requests on l until the context ends.
func Serve(ctx context.Context, l net.Listener, src Source) error {
	return serve(ctx, l, handler(src))
}

func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Registry returns a registry with the metrics of a source and of the process.
func Registry(src Source) *prometheus.Registry { return registry(metrics{src: src}) }

// RegistryWhile returns a registry that has the metrics of a source only while isOpen returns true, so that counters do
// not fall to 0 after the end.
func RegistryWhile(src Source, isOpen func() bool) *prometheus.Registry {
	return registry(metricsWhile{metrics{src: src}, isOpen})
}

func registry(all prometheus.Collector) *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), all)
	return reg
}

func handler(src Source) http.Handler {
	return newHandler(Registry(src), front(src), src.Alive, src.Ready)
}

func newHandler(reg *prometheus.Registry, front http.HandlerFunc, alive, ready Check) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", front)
	healthy := func() error { return nil }
	for path, p := range map[string]*prober{"/healthz": {check: alive, limit: AliveLimit},
		"/readyz": {check: ready, limit: ReadyLimit}} {
		if p.check == nil {
			p.check = healthy
		}
		mux.Handle("GET "+path, p)
	}
	mux.Handle("/metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	mux.HandleFunc("/debug/pprof/", pprof.Index) // without cmdline, because a command line can contain a password
	mux.HandleFunc("/debug/pprof/cmdline", http.NotFound)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// front serves the page at /: a summary with links.
func front(src Source) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		_ = frontPage.Execute(w, struct { // the client may have disconnected
			Name     string
			Totals   stats.Snapshot
			Bytes    string
			Frontier frontier.Counts
			Known    int
		}{src.Name, src.Totals(), stats.Bytes(src.Totals().Bytes), src.Frontier(), src.Known()})
	}
}

var frontPage = template.Must(template.New("front").Parse(`<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><title>kumo {{.Name}}</title>
<style>body{font:16px sans-serif;margin:2em;max-width:40em}td{padding:.1em 1.5em .1em 0}td:nth-child(2){text-align:right}</style>
<h1>kumo {{.Name}}</h1>
<table>
<tr><td>pages<td>{{.Totals.Pages}}<td>URLs answered ({{.Bytes}})
<tr><td>errors<td>{{.Totals.Failed}}<td>URLs without an answer
<tr><td>hosts active<td>{{.Frontier.Active}}<td>with an active request
<tr><td>hosts waiting<td>{{.Frontier.Waiting}}<td>for their delay or a free worker
<tr><td>hosts backing off<td>{{.Frontier.Backing}}<td>after failures or at their request
<tr><td>URLs waiting<td>{{.Frontier.URLs}}<td>in the queues of their hosts
<tr><td>URLs known<td>{{.Known}}<td>in scope, fetched or not
</table>
<p><a href="/metrics">/metrics</a>: these and more for Prometheus
<p><a href="/healthz">/healthz</a>, <a href="/readyz">/readyz</a>: whether the process works, and is ready
<p><a href="/debug/pprof/">/debug/pprof/</a>: profiles for <code>go tool pprof</code>
`))
