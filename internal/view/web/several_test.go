package web

import (
	"net/http/httptest"
	"strings"
	"testing"

	"kumo/internal/cluster/hostlease"
)

// The metrics of several crawls have a label with the crawl; those of the process have none.
func TestMetricsOfSeveralCrawls(t *testing.T) {
	a, b := everything(), everything()
	a.Name, b.Name = "a", "b"
	src := Several{Name: "node", Crawls: func() []Source { return []Source{a, b} },
		Leases: func() hostlease.Counters { return hostlease.Counters{Messages: 7} }}
	w := httptest.NewRecorder()
	newHandler(registry(severalMetrics{src}), front(a), nil, nil).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{`kumo_pages_total{crawl="a"}`, `kumo_pages_total{crawl="b"}`,
		`kumo_responses_total{class="2xx",crawl="b"}`, "kumo_lease_messages_total 7"} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("no %s in %s", want, w.Body.String())
		}
	}
}
