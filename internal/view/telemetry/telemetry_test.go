package telemetry

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spanpb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"kumo/internal/archive/sink"
	"kumo/internal/base/page"
	"kumo/internal/engine/crawl"
)

// A receiver is an OTLP server.
type receiver struct {
	mu      sync.Mutex
	spans   []*spanpb.Span
	service string
	metrics []string
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch q.URL.Path {
	case "/v1/traces":
		var all tracepb.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &all)
		}
		for _, of := range all.ResourceSpans {
			for _, a := range of.Resource.Attributes {
				if a.Key == "service.name" {
					r.service = a.Value.GetStringValue()
				}
			}
			for _, scope := range of.ScopeSpans {
				r.spans = append(r.spans, scope.Spans...)
			}
		}
	case "/v1/metrics":
		var all metricspb.ExportMetricsServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &all)
		}
		for _, of := range all.ResourceMetrics {
			for _, scope := range of.ScopeMetrics {
				for _, m := range scope.Metrics {
					r.metrics = append(r.metrics, m.Name)
				}
			}
		}
	default:
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func open(t *testing.T, env map[string]string) (*Exporter, error) {
	for key, value := range env { // the SDK reads some by itself
		t.Setenv(key, value)
	}
	return Open(t.Context(), Config{Getenv: func(key string) string { return env[key] }, Version: "1", Crawl: "news",
		Node: "a", Log: slog.New(slog.DiscardHandler)})
}

func record() *page.Record {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	after := func(ms int) time.Time { return at.Add(time.Duration(ms) * time.Millisecond) }
	return &page.Record{URL: "https://example.com/", Time: at, Took: 70 * time.Millisecond,
		Response: &page.Response{Status: 200, Start: at, DNS: 10 * time.Millisecond, Connect: 20 * time.Millisecond,
			Handshake: 5 * time.Millisecond, FirstByte: 50 * time.Millisecond, Total: 70 * time.Millisecond,
			Addr: netip.MustParseAddrPort("192.0.2.1:443")},
		Phases: page.Phases{Arrived: after(71), Parsed: after(75), Storing: after(76), Stored: after(80)}}
}

// A visit is exported with the spans of its phases, and the metrics of a registry with their names.
func TestExport(t *testing.T) {
	r := &receiver{}
	server := httptest.NewServer(r)
	defer server.Close()
	e, err := open(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": server.URL})
	if err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewRegistry()
	pages := prometheus.NewCounter(prometheus.CounterOpts{Name: "kumo_pages_total"})
	pages.Inc()
	reg.MustRegister(pages)
	if err := e.ExportMetrics(t.Context(), reg); err != nil {
		t.Fatal(err)
	}
	e.Listener(crawl.Listener{}).Visited(record())
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	took := map[string]time.Duration{}
	for _, s := range r.spans {
		took[s.Name] = time.Duration(s.EndTimeUnixNano - s.StartTimeUnixNano)
	}
	for name, ms := range map[string]int64{"visit": 80, "dns": 10, "connect": 20, "tls": 5, "first byte": 15,
		"body": 20, "parse": 4, "store": 4} {
		if took[name] != time.Duration(ms)*time.Millisecond {
			t.Errorf("%s takes %v, want %v ms", name, took[name], ms)
		}
	}
	if len(took) != 8 || r.service != "kumo" || !slices.Contains(r.metrics, "kumo_pages_total") {
		t.Errorf("%v of %q; metrics %q", took, r.service, r.metrics)
	}
}

// at returns the record of the nth visit, as it is sent to a sink.
func at(n int) (*page.Record, sink.Record) {
	rec := record()
	rec.URL = fmt.Sprintf("%s%d", rec.URL, n)
	rec.Time = rec.Time.Add(time.Duration(n) * 7 * time.Millisecond)
	line := sink.Record{URL: rec.URL, Time: rec.Time}
	line.Fit()
	return rec, line
}

// An attempt to send a batch has a span of its own, with links to the sampled visits of the batch.
func TestSink(t *testing.T) {
	r := &receiver{}
	server := httptest.NewServer(r)
	defer server.Close()
	e, err := open(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": server.URL, "OTEL_METRICS_EXPORTER": "none",
		"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.5",
		"OTEL_BSP_MAX_QUEUE_SIZE": "10000"}) // the SDK drops what exceeds its queue
	if err != nil {
		t.Fatal(err)
	}
	sent := e.TraceSending()
	listener := e.Listener(crawl.Listener{})
	begin := time.Date(2026, 1, 2, 3, 5, 0, 0, time.UTC)
	send := func(to string, batch []sink.Record, err error) {
		sent(&sink.Attempt{Sink: to, Batch: batch, Begin: begin, End: begin.Add(30 * time.Millisecond), Err: err})
	}
	var batch []sink.Record
	for n := range sink.BatchRecords {
		rec, line := at(n)
		listener.Retried(rec, 0) // has no record
		listener.Visited(rec)
		batch = append(batch, line)
	}
	send("kafka://host/topic", batch, errors.New("no route"))
	send("postgres://host/base", batch, nil)
	_, unknown := at(sink.BatchRecords)
	send("postgres://host/base", []sink.Record{unknown}, nil) // of an earlier run: no span
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	visits, of := map[string]string{}, map[string]string{}
	for _, s := range r.spans {
		for _, a := range s.Attributes {
			of[string(s.SpanId)+a.Key] = a.Value.GetStringValue() + a.Value.String()
		}
		if s.Name == "visit" && strings.Contains(of[string(s.SpanId)+"kumo.retried"], "false") {
			visits[string(s.TraceId)] = string(s.SpanId)
		}
	}
	var spans []*spanpb.Span
	for _, s := range r.spans {
		if s.Name == "sink" {
			spans = append(spans, s)
		}
	}
	if len(spans) != 2 || len(visits) < 150 || len(visits) > 350 { // 250 ± 9 standard deviations
		t.Fatalf("%d spans of batches, %d of visits", len(spans), len(visits))
	}
	for i, want := range []struct {
		kind         spanpb.Span_SpanKind
		code         spanpb.Status_StatusCode
		system, size string
		name         string
	}{
		{spanpb.Span_SPAN_KIND_PRODUCER, spanpb.Status_STATUS_CODE_ERROR, "messaging.system",
			"messaging.batch.message_count", "kafka"},
		{spanpb.Span_SPAN_KIND_CLIENT, spanpb.Status_STATUS_CODE_UNSET, "db.system.name", "db.operation.batch.size",
			"postgresql"},
	} {
		s := spans[i]
		linked := map[string]string{}
		for _, l := range s.Links {
			linked[string(l.TraceId)] = string(l.SpanId)
		}
		if !maps.Equal(linked, visits) || len(s.Links) != len(visits) || s.DroppedLinksCount > 0 || len(s.ParentSpanId) > 0 {
			t.Errorf("%d links (%d dropped) to %d visits; parent %x", len(s.Links), s.DroppedLinksCount, len(visits),
				s.ParentSpanId)
		}
		id := string(s.SpanId)
		if s.Kind != want.kind || s.GetStatus().GetCode() != want.code || s.EndTimeUnixNano-s.StartTimeUnixNano != 30e6 ||
			!strings.HasPrefix(of[id+want.system], want.name) || !strings.Contains(of[id+want.size], "500") {
			t.Errorf("%s: %v, want %+v", want.name, s, want)
		}
	}
}

// Visits beyond the limit are forgotten, the oldest first.
func TestPendingVisitsAreBounded(t *testing.T) {
	b := &batchTracer{}
	rec := func(n int) (*page.Record, []sink.Record) {
		line := sink.Record{URL: "http://a.test/", Time: time.Unix(int64(n), 0)}
		return &page.Record{URL: line.URL, Time: line.Time, Response: &page.Response{}}, []sink.Record{line}
	}
	first, line := rec(0)
	if b.add(first, trace.SpanContext{}); len(b.links(line)) > 0 {
		t.Error("visits are remembered without a sink")
	}
	b.start()
	for n := range maxPending + 10 {
		visit, _ := rec(n)
		b.add(visit, trace.SpanContext{})
	}
	_, gone := rec(9)
	_, kept := rec(10)
	if len(b.visits) != maxPending || len(b.links(gone)) > 0 || len(b.links(kept)) != 1 {
		t.Errorf("%d visits; %v, %v", len(b.visits), b.links(gone), b.links(kept))
	}
}

// The standard variables sample visits, and switch signals off.
func TestEnvironment(t *testing.T) {
	r := &receiver{}
	server := httptest.NewServer(r)
	defer server.Close()
	e, err := open(t, map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": server.URL + "/v1/traces",
		"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25"})
	if err != nil {
		t.Fatal(err)
	}
	visited := e.Listener(crawl.Listener{}).Visited
	for range 200 {
		visited(record())
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	visits := 0
	for _, s := range r.spans {
		if s.Name == "visit" {
			visits++
		}
	}
	if visits < 15 || visits > 90 || len(r.metrics) > 0 { // 50 ± 6.5 standard deviations
		t.Errorf("%d of 200 visits, metrics %q", visits, r.metrics)
	}
	for _, off := range []map[string]string{{}, {"OTEL_EXPORTER_OTLP_ENDPOINT": server.URL, "OTEL_SDK_DISABLED": "true"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": server.URL, "OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}} {
		if e, err := open(t, off); e != nil || err != nil || e.Close() != nil || e.ExportMetrics(t.Context(), nil) != nil {
			t.Errorf("%v: %v, %v", off, e, err)
		}
	}
	_, err = open(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": server.URL, "OTEL_SDK_DISABLED": "false",
		"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_TRACES_EXPORTER": "otlp"})
	if err == nil || !strings.Contains(err.Error(), `OTEL_EXPORTER_OTLP_PROTOCOL is "grpc": use http/protobuf`) {
		t.Error(err)
	}
}

// A visit costs one call if it is not sampled, and up to eight spans if it is.
func BenchmarkVisit(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer server.Close()
	for _, part := range []string{"0", "0.01", "1"} {
		b.Run("sampled="+part, func(b *testing.B) {
			b.Setenv("OTEL_TRACES_SAMPLER", "traceidratio")
			b.Setenv("OTEL_TRACES_SAMPLER_ARG", part)
			b.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
			e, err := Open(b.Context(), Config{Getenv: os.Getenv, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				b.Fatal(err)
			}
			visited, rec := e.Listener(crawl.Listener{}).Visited, record()
			b.ReportAllocs()
			for b.Loop() {
				visited(rec)
			}
			if err := e.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
