package telemetry

import (
	"context"
	"hash/maphash"
	"net/url"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"kumo/internal/archive/sink"
	"kumo/internal/base/page"
)

// maxPending limits how many traced visits are remembered for the spans of their batches: about 4 MB. A sink that is
// farther behind gets spans without links to earlier visits.
const maxPending = 1 << 16

// A batchTracer traces batches of records that are sent to sinks. A batch is sent after its visits have ended, and has
// records of many of them. So its span is the root of a trace, with a link to each traced visit, as OpenTelemetry's
// conventions for messaging have it. A batch without traced visits is not traced: sampling visits also samples batches.
type batchTracer struct {
	tracer trace.Tracer

	mu      sync.Mutex
	visits  map[uint64]spanID // traced visits by their key; nil: there is no sink
	pending []uint64          // their keys, as a ring
	oldest  int               // in pending, once it is full
}

// A spanID identifies a span of this process.
type spanID struct {
	trace trace.TraceID
	span  trace.SpanID
}

// batchProvider returns a provider that samples all spans, and allows a link for each record of a batch.
func batchProvider(to sdk.SpanProcessor, of *resource.Resource, getenv func(string) string) *sdk.TracerProvider {
	limits := sdk.NewSpanLimits()
	if getenv("OTEL_SPAN_LINK_COUNT_LIMIT") == "" {
		limits.LinkCountLimit = sink.BatchRecords
	}
	return sdk.NewTracerProvider(sdk.WithSpanProcessor(to), sdk.WithResource(of), sdk.WithSampler(sdk.AlwaysSample()),
		sdk.WithRawSpanLimits(limits))
}

// TraceSending returns a function that traces an attempt to send a batch of records; nil if nothing is traced. It must
// be called before the visits whose records are sent.
func (e *Exporter) TraceSending() func(*sink.Attempt) {
	if e == nil || e.spans == nil {
		return nil
	}
	e.batches.start()
	return e.batches.trace
}

func (b *batchTracer) start() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.visits == nil {
		b.visits = map[uint64]spanID{}
	}
}

var seed = maphash.MakeSeed()

// visitKey identifies a visit by its URL and its time, which records have in whole seconds.
func visitKey(url string, at time.Time) uint64 {
	return maphash.String(seed, url) ^ maphash.Comparable(seed, at.Unix())
}

// add remembers a traced visit.
func (b *batchTracer) add(rec *page.Record, of trace.SpanContext) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.visits == nil || rec.Response == nil {
		return
	}
	key := visitKey(rec.URL, rec.Time)
	if len(b.pending) < maxPending {
		b.pending = append(b.pending, key)
	} else {
		delete(b.visits, b.pending[b.oldest])
		b.pending[b.oldest] = key
		b.oldest = (b.oldest + 1) % maxPending
	}
	b.visits[key] = spanID{of.TraceID(), of.SpanID()}
}

// links returns links to the traced visits of a batch. They remain: another sink may receive the same records.
func (b *batchTracer) links(batch []sink.Record) (all []trace.Link) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range batch {
		if to, is := b.visits[visitKey(batch[i].URL, batch[i].Time)]; is {
			all = append(all, trace.Link{SpanContext: trace.NewSpanContext(trace.SpanContextConfig{TraceID: to.trace,
				SpanID: to.span, TraceFlags: trace.FlagsSampled})})
		}
	}
	return all
}

// trace exports the span of an attempt.
func (b *batchTracer) trace(a *sink.Attempt) {
	links := b.links(a.Batch)
	if len(links) == 0 {
		return
	}
	of, kind := batchAttributes(a)
	_, span := b.tracer.Start(context.Background(), "sink", trace.WithTimestamp(a.Begin), trace.WithSpanKind(kind),
		trace.WithLinks(links...), trace.WithAttributes(of...))
	if a.Err != nil {
		span.SetStatus(codes.Error, a.Err.Error())
	}
	span.End(trace.WithTimestamp(a.End))
}

// batchAttributes returns the attributes that the conventions for messaging systems and databases define, and the kind
// of the span.
func batchAttributes(a *sink.Attempt) ([]attribute.KeyValue, trace.SpanKind) {
	system := ""
	if u, err := url.Parse(a.Sink); err == nil {
		system = systems[u.Scheme]
	}
	all := []attribute.KeyValue{attribute.String("kumo.sink", a.Sink)}
	if system == "kafka" {
		return append(all, attribute.String("messaging.system", system), attribute.String("messaging.operation.type", "send"),
			attribute.Int("messaging.batch.message_count", len(a.Batch))), trace.SpanKindProducer
	}
	return append(all, attribute.String("db.system.name", system), attribute.Int("db.operation.batch.size",
		len(a.Batch))), trace.SpanKindClient
}

// systems are the names of the conventions by scheme of a sink's URL.
var systems = map[string]string{
	"postgres": "postgresql", "postgresql": "postgresql",
	"hbase": "hbase", "hbase+https": "hbase",
	"kafka": "kafka", "kafka+tls": "kafka",
	"opensearch": "opensearch", "opensearch+https": "opensearch",
	"elasticsearch": "elasticsearch", "elasticsearch+https": "elasticsearch",
}
