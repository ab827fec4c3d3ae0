package web

import (
	"context"
	"io"
	"net"
	"net/http"
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
