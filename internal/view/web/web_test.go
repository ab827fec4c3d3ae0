package web

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/stats"
	"kumo/internal/engine/crawl"
	"kumo/internal/state/forecast"
	"kumo/internal/state/frontier"
	"kumo/internal/state/stall"
)

// everything returns a source with all metrics.
func everything() Source {
	return Source{
		Name:   "a <b> c",
		Totals: func() stats.Snapshot { return stats.Snapshot{Pages: 42, Bytes: 2_500_000} },
		Answers: func() (map[int]int64, map[string]int64) {
			return map[int]int64{200: 30, 204: 2, 404: 7, 999: 3}, map[string]int64{"dns": 4}
		},
		Frontier: func() frontier.Counts { return frontier.Counts{Active: 3} },
		Known:    func() int { return 7 },
		Outage:   func() crawl.Outage { return crawl.Outage{Offline: true, Times: 2} },
		Forecast: func() forecast.Forecast { return forecast.Forecast{AtLeast: 32_400, Growth: -1.5} },
		Stall:    func() stall.Alarm { return stall.Alarm{Kind: stall.Disk, For: 90 * time.Second} },
		Disk:     func() (free, least uint64) { return 7e9, 1e9 },
		Lease:    func() Lease { return Lease{12 * time.Second, 3, 1} },
		Uploads: func() stats.Uploads {
			return stats.Uploads{Files: 5, Bytes: 100, Waiting: 3, WaitSize: 70, Why: "connection refused"}
		},
		States: func() stats.UploadedState {
			return stats.UploadedState{Checkpoints: 2, CutBytes: 900, Kept: 400, MissingCount: 1}
		},
		Sinks: func() []stats.Sink {
			return []stats.Sink{{Sink: "kafka://k/t", Sent: 5, Bytes: 100, Waiting: 3, Behind: 1.5, Failures: 2, Retries: 1,
				Why: "no"}}
		},
		Filters: func() []stats.FilterCounts {
			one := stats.FilterCounts{Filter: "./p \"x\"", Late: 2,
				Points: map[string]*stats.FilterPoint{"link": {Asked: 5, Dropped: 2}}}
			return []stats.FilterCounts{one, one}
		},
	}
}

func TestServe(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- Serve(ctx, l, everything())
	}()
	for path, wants := range map[string][]string{
		"/metrics": {"kumo_pages_total 42", "kumo_hosts_active 3", "kumo_urls_known 7", "kumo_cut_off 1",
			"kumo_outages_total 2", "go_goroutines",
			"kumo_ends_in_at_least_seconds 32400", "kumo_queue_growth_per_second -1.5", `kumo_stalled_seconds{kind="disk"} 90`,
			`kumo_stalled_seconds{kind="dns"} 0`,
			"kumo_place_files 5", "kumo_place_files_waiting 3", "kumo_place_bytes_waiting 70", "kumo_place_failing 1",
			"kumo_place_checkpoints 2", "kumo_place_journal_cut_bytes 900", "kumo_place_journal_kept_bytes 400",
			"kumo_place_files_lacking 1",
			`kumo_responses_total{class="2xx"} 32`, `kumo_responses_total{class="4xx"} 7`, `kumo_responses_total{class="5xx"} 0`,
			`kumo_responses_total{class="other"} 3`, `kumo_errors_total{kind="dns"} 4`,
			`kumo_sink_records_total{sink="kafka://k/t"} 5`, `kumo_sink_records_waiting{sink="kafka://k/t"} 3`,
			`kumo_sink_behind_seconds{sink="kafka://k/t"} 1.5`, `kumo_sink_failing{sink="kafka://k/t"} 1`,
			`kumo_filter_answers_total{answer="yes",filter="./p \"x\"",point="link"} 3`,
			`kumo_filter_restarts_total{cause="timeout",filter="./p \"x\""} 2`},
		"/":             {"<title>kumo a &lt;b&gt; c</title>", "<td>42<td>", "2.5 MB", `href="/metrics"`},
		"/debug/pprof/": {"heap"},
	} {
		resp, err := http.Get("http://" + l.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(body), want) {
				t.Errorf("%s lacks %q", path, want)
			}
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// The metrics of a node show how hosts were assigned to it.
func TestPlacementMetrics(t *testing.T) {
	src := everything()
	var now *stats.Placement
	src.Placement = func() *stats.Placement { return now }
	get := func() string {
		w := httptest.NewRecorder()
		handler(src).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		return w.Body.String()
	}
	if text := get(); strings.Contains(text, "kumo_duplicate_fetches_total") {
		t.Error("a node that does not crawl yet counts duplicates")
	}
	now = &stats.Placement{Duplicates: 3}
	if text := get(); !strings.Contains(text, "\nkumo_duplicate_fetches_total 3\n") ||
		strings.Contains(text, "kumo_connect_timeout_seconds") {
		t.Errorf("without a control unit:\n%s", text)
	}
	now = &stats.Placement{Duplicates: 3, HostRequests: 7, ConnectTimeout: 1.5, MinConnectTimeout: 0.5,
		MaxConnectTimeout: 4}
	text := get()
	for _, line := range []string{"host_requests_total 7", "connect_timeout_seconds 1.5", "connect_timeout_min_seconds 0.5",
		"connect_timeout_max_seconds 4"} {
		if !strings.Contains(text, "\nkumo_"+line+"\n") {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
}

// A registry for an exporter has the metrics of a source only while it is open, and those of the process always.
func TestRegistryWhile(t *testing.T) {
	open := true
	reg := RegistryWhile(everything(), func() bool { return open })
	names := func() string {
		all, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var names strings.Builder
		for _, f := range all {
			names.WriteString(f.GetName() + "\n")
		}
		return names.String()
	}
	if text := names(); !strings.Contains(text, "kumo_pages_total\n") {
		t.Error(text)
	}
	open = false
	if text := names(); strings.Contains(text, "kumo_") || !strings.Contains(text, "go_goroutines\n") {
		t.Error(text)
	}
}
