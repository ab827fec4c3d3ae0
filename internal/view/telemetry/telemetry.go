// Package telemetry exports traces of visits and the metrics of a crawl by OTLP over HTTP. The standard environment
// variables of OpenTelemetry configure it; without an endpoint it does nothing.
//
// A visit is traced after it has ended, from the times in its record. So the engine does not know of traces, and a
// visit that is not sampled costs one call.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/prometheus/client_golang/prometheus"

	"kumo/internal/base/advice"
	"kumo/internal/base/page"
	"kumo/internal/engine/crawl"
)

// Config configures an exporter.
type Config struct {
	Getenv  func(string) string
	Version string // of kumo
	Crawl   string // its name
	Node    string // "": not a cluster
	Log     *slog.Logger
}

// An Exporter exports traces and metrics. A nil Exporter exports nothing.
type Exporter struct {
	resource *resource.Resource
	spans    sdk.SpanProcessor // of all traces; nil: no traces
	tracer   trace.Tracer
	batches  batchTracer
	metrics  bool // an endpoint for metrics is configured
	meters   *metric.MeterProvider
}

// isExported reports whether the environment configures the export of a signal, "TRACES" or "METRICS".
func (c *Config) isExported(signal string) (bool, error) {
	env := func(name string) string { return strings.TrimSpace(c.Getenv(name)) }
	if strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	if env("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && env("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") == "" {
		return false, nil
	}
	switch exporter := env("OTEL_" + signal + "_EXPORTER"); exporter {
	case "", "otlp":
	case "none":
		return false, nil
	default:
		return false, advice.Usage("OTEL_%s_EXPORTER is %q: use otlp or none", signal, exporter)
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_" + signal + "_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if p := env(name); p != "" && p != "http/protobuf" {
			return false, advice.Usage("%s is %q: use http/protobuf", name, p)
		}
	}
	return true, nil
}

// Open returns an exporter; nil if no endpoint is configured. The caller closes it.
func Open(ctx context.Context, c Config) (*Exporter, error) {
	traces, err := c.isExported("TRACES")
	if err != nil {
		return nil, err
	}
	metrics, err := c.isExported("METRICS")
	if err != nil || !traces && !metrics {
		return nil, err
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { c.Log.Warn("export telemetry", "err", err) }))
	attrs := []attribute.KeyValue{attribute.String("service.name", "kumo"), attribute.String("service.version", c.Version),
		attribute.String("kumo.crawl", c.Crawl)}
	if c.Node != "" {
		attrs = append(attrs, attribute.String("service.instance.id", c.Node))
	}
	e := &Exporter{metrics: metrics}
	// Later options take precedence: the environment may set another name.
	e.resource, err = resource.New(ctx, resource.WithAttributes(attrs...), resource.WithTelemetrySDK(),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("read OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	if traces {
		to, err := otlptracehttp.New(ctx)
		if err != nil {
			return nil, fmt.Errorf("export traces: %w", err)
		}
		e.spans = sdk.NewBatchSpanProcessor(to)
		// OTEL_TRACES_SAMPLER samples
		e.tracer = sdk.NewTracerProvider(sdk.WithSpanProcessor(e.spans), sdk.WithResource(e.resource)).Tracer("kumo")
		e.batches.tracer = batchProvider(e.spans, e.resource, c.Getenv).Tracer("kumo")
	}
	return e, nil
}

// ExportMetrics exports the metrics of a registry periodically until Close.
func (e *Exporter) ExportMetrics(ctx context.Context, from prometheus.Gatherer) error {
	if e == nil || !e.metrics {
		return nil
	}
	to, err := otlpmetrichttp.New(ctx)
	if err != nil {
		return fmt.Errorf("export metrics: %w", err)
	}
	reader := metric.NewPeriodicReader(to, metric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(from))))
	e.meters = metric.NewMeterProvider(metric.WithReader(reader), metric.WithResource(e.resource))
	return nil
}

// closeTimeout limits the last export.
const closeTimeout = 5 * time.Second

// Flush exports the present metrics, within a few seconds.
func (e *Exporter) Flush() error {
	if e == nil || e.meters == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := e.meters.ForceFlush(ctx); err != nil {
		return fmt.Errorf("export telemetry: %w", err)
	}
	return nil
}

// Close exports the rest, within a few seconds. It may be called again.
func (e *Exporter) Close() (err error) {
	if e == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if e.meters != nil {
		err = e.meters.Shutdown(ctx)
	}
	if e.spans != nil {
		err = errors.Join(err, e.spans.Shutdown(ctx)) // spans that end later are dropped
	}
	e.meters = nil
	if err != nil {
		return fmt.Errorf("export telemetry: %w", err)
	}
	return nil
}

// Listener returns a listener that traces visits, in addition to l.
func (e *Exporter) Listener(l crawl.Listener) crawl.Listener {
	if e == nil || e.spans == nil {
		return l
	}
	return crawl.Tee(l, crawl.Listener{
		Visited: func(rec *page.Record) { e.visited(rec, false) },
		Retried: func(rec *page.Record, _ time.Duration) { e.visited(rec, true) },
	})
}

// visited exports the spans of a visit, if it is sampled.
func (e *Exporter) visited(rec *page.Record, retried bool) {
	ctx, span := e.tracer.Start(context.Background(), "visit", trace.WithTimestamp(rec.Time),
		trace.WithSpanKind(trace.SpanKindClient))
	end := rec.Time.Add(rec.Took)
	if p := &rec.Phases; p.Stored.After(end) {
		end = p.Stored
	}
	if span.IsRecording() {
		span.SetAttributes(attribute.String("url.full", rec.URL), attribute.Int("kumo.depth", rec.Depth),
			attribute.Int("kumo.tries", rec.Tries), attribute.Bool("kumo.retried", retried))
		if rec.Failure != page.None {
			span.SetAttributes(attribute.String("error.type", string(rec.Failure)))
			span.SetStatus(codes.Error, rec.Detail)
		}
		if rec.Response != nil {
			e.exchange(ctx, span, rec.Response)
		}
		e.phase(ctx, "parse", rec.Phases.Arrived, rec.Phases.Parsed)
		e.phase(ctx, "store", rec.Phases.Storing, rec.Phases.Stored)
		if !retried {
			e.batches.add(rec, span.SpanContext())
		}
	}
	span.End(trace.WithTimestamp(end))
}

// exchange adds the phases of a request.
func (e *Exporter) exchange(ctx context.Context, span trace.Span, r *page.Response) {
	span.SetAttributes(attribute.Int("http.response.status_code", r.Status),
		attribute.Int64("http.response.size", r.RawLen()), attribute.String("network.protocol", r.Proto))
	if r.Addr.IsValid() {
		span.SetAttributes(attribute.String("network.peer.address", r.ServerIP().String()),
			attribute.Int("network.peer.port", int(r.Addr.Port())))
	}
	at := r.Start
	for _, p := range []struct {
		name string
		took time.Duration
	}{{"dns", r.DNS}, {"connect", r.Connect}, {"tls", r.Handshake}} {
		if p.took > 0 {
			e.phase(ctx, p.name, at, at.Add(p.took))
		}
		at = at.Add(p.took)
	}
	if first := r.Start.Add(r.FirstByte); r.FirstByte > 0 {
		e.phase(ctx, "first byte", at, first)
		e.phase(ctx, "body", first, r.Start.Add(r.Total))
	}
}

// phase exports a span of a visit; none if it did not take place.
func (e *Exporter) phase(ctx context.Context, name string, from, to time.Time) {
	if from.IsZero() || to.Before(from) {
		return
	}
	_, span := e.tracer.Start(ctx, name, trace.WithTimestamp(from))
	span.End(trace.WithTimestamp(to))
}
