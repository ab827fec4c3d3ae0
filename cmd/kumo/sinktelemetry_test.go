package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spanpb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"kumo/internal/cluster/bus/bustest"
)

// A tracer is an OTLP server that keeps the spans of visits and of batches.
type tracer struct {
	mu      sync.Mutex
	visits  map[string]bool // IDs of spans
	batches []*spanpb.Span
}

func (tr *tracer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var all tracepb.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &all)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for _, of := range all.ResourceSpans {
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				switch s.Name {
				case "visit":
					tr.visits[string(s.SpanId)] = true
				case "sink":
					tr.batches = append(tr.batches, s)
				}
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// The batches of records that a crawl and a node send have spans with links to all visits whose records they have.
func TestSpansOfASink(t *testing.T) {
	const pages = 30
	kumo, site := kumoProgram(t), pagesSite(t, pages)
	for name, run := range map[string]func(t *testing.T, sink string, env []string){
		"crawl": func(t *testing.T, sink string, env []string) {
			cmd := exec.Command(kumo, "crawl", "--delay", "0", "--min-free-disk", "0", "--sink", sink, "-o",
				filepath.Join(t.TempDir(), "c"), site)
			cmd.Env = env
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		},
		"node": func(t *testing.T, sink string, env []string) {
			address := bustest.Addresses(t, 1)[0]
			p := newProcess(kumo, "node", "--out", filepath.Join(t.TempDir(), "n"), "--min-free-disk", "0", "--listen", address,
				"--crawl", "news")
			p.cmd.Env = env
			p.start(t)
			startCrawl(t, kumo, address, site, "--sink", sink)
			if err := <-p.over; err != nil {
				t.Fatalf("%v\n%s", err, p.out.String())
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := &tracer{visits: map[string]bool{}}
			server := httptest.NewServer(tr)
			t.Cleanup(server.Close)
			x := newIndex(t)
			run(t, x.url(), append(os.Environ(), "OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL, "OTEL_METRICS_EXPORTER=none"))
			linked := map[string]bool{}
			for _, s := range tr.batches {
				for _, l := range s.Links {
					if !tr.visits[string(l.SpanId)] || linked[string(l.SpanId)] {
						t.Errorf("the link %x is to no visit, or not the first to it", l.SpanId)
					}
					linked[string(l.SpanId)] = true
				}
				for _, a := range s.Attributes {
					if a.Key == "kumo.sink" && !strings.HasPrefix(a.Value.GetStringValue(), "opensearch://") {
						t.Error(a)
					}
				}
			}
			if len(linked) != pages+1 || x.has() != pages+1 {
				t.Errorf("%d batches with links to %d of %d visits; %d documents", len(tr.batches), len(linked), pages+1, x.has())
			}
		})
	}
}
