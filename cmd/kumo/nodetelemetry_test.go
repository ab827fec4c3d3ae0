package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/protobuf/proto"

	"kumo/internal/cluster/bus/bustest"
)

// A meter is an OTLP server that keeps the numbers of pages of a crawl.
type meter struct {
	mu    sync.Mutex
	pages []float64
}

func (m *meter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var all metricspb.ExportMetricsServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &all)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, of := range all.ResourceMetrics {
		news := false
		for _, a := range of.Resource.Attributes {
			news = news || a.Key == "kumo.crawl" && a.Value.GetStringValue() == "news"
		}
		for _, scope := range of.ScopeMetrics {
			for _, one := range scope.Metrics {
				if news && one.Name == "kumo_pages_total" {
					m.pages = append(m.pages, one.GetSum().DataPoints[0].GetAsDouble())
				}
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// last returns the number of pages exported last; -1: none.
func (m *meter) last() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.pages) == 0 {
		return -1
	}
	return m.pages[len(m.pages)-1]
}

// The last values of a node's metrics are exported when its crawl is done, for one crawl and for all crawls.
func TestLastMetricsOfANode(t *testing.T) {
	const pages = 5
	kumo, site := kumoProgram(t), pagesSite(t, pages)
	for name, args := range map[string][]string{"one": {"--crawl", "news"}, "all": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, address := &meter{}, bustest.Addresses(t, 1)[0]
			server := httptest.NewServer(m)
			t.Cleanup(server.Close)
			p := newProcess(kumo, append([]string{"node", "--out", filepath.Join(t.TempDir(), "n"), "--min-free-disk", "0",
				"--listen", address}, args...)...)
			p.cmd.Env = append(os.Environ(), "OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL, "OTEL_TRACES_EXPORTER=none")
			p.start(t)
			startCrawl(t, kumo, address, site)
			waitUntil(t, "the last values are exported", func() bool { return m.last() == pages+1 })
			if name == "all" {
				_ = p.cmd.Process.Signal(os.Interrupt)
			}
			if err := <-p.over; err != nil {
				t.Errorf("%v\n%s", err, p.out.String())
			}
			if m.last() != pages+1 || strings.Contains(p.out.String(), "export telemetry") {
				t.Errorf("exported %v\n%s", m.pages, p.out.String())
			}
		})
	}
}
