package progress

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/state/forecast"
	"kumo/internal/state/frontier"
	"kumo/internal/state/stall"
)

func at(sec int, pages, bytes int64) Status {
	return Status{Time: time.Unix(int64(sec), 0), Totals: stats.Snapshot{Pages: pages, Bytes: bytes}}
}

func TestMeter(t *testing.T) {
	m := Meter{Limits: Limits{Pages: 1000, Time: time.Hour}}
	m.Update(at(0, 100, 0))
	r := m.Update(at(5, 150, 5000))
	if r.Pages != 10 || r.Bytes != 1000 || r.Elapsed != 5*time.Second {
		t.Errorf("got %+v", r)
	}
	if !r.HasLeft || r.Left != 85*time.Second {
		t.Errorf("left %v, want what the pages need: 85s", r.Left)
	}
	for s := 6; s <= 60; s++ {
		r = m.Update(at(s, 150, 5000))
	}
	if r.Pages != 0 || r.Left != time.Hour-time.Minute {
		t.Errorf("after a standstill: %+v", r)
	}
}

func TestLiveView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := NewLive(&out, func() int { return 40 }, "example.com", Limits{})
		tell := l.Listener()
		tell.Visited(&page.Record{URL: "http://example.com/\x1b[2J" + strings.Repeat("x", 100),
			Response: &page.Response{Status: 200}})
		tell.Visited(&page.Record{URL: "http://b/", Failure: page.DNS, Detail: "no such host"})
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		l.Run(ctx, func() Status {
			return Status{Time: time.Now(), Frontier: frontier.Counts{Active: 3}, Known: 7}
		})
		l.Write([]byte("a log line\n"))
		text := out.String()
		for _, want := range []string{"kumo example.com", "3 active", "7 known", "dns  http://b/", "a log line"} {
			if !strings.Contains(text, want) {
				t.Errorf("the view lacks %q:\n%s", want, text)
			}
		}
		if strings.Contains(text, "\x1b[2J") {
			t.Error("a URL can clear the screen")
		}
		for line := range strings.Lines(text) {
			if n := len([]rune(strings.TrimPrefix(strings.TrimRight(line, "\n"), "\r\x1b[6A\x1b[J"))); n > 40 {
				t.Errorf("a line of %d characters: %q", n, line)
			}
		}
	})
}

func TestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		pages := int64(0)
		Log(ctx, slog.New(slog.NewTextHandler(&out, nil)), Limits{}, func() Status {
			pages += 50
			return Status{Time: time.Now(), Totals: stats.Snapshot{Pages: pages}}
		})
		if n := strings.Count(out.String(), "msg=crawling"); n != 2 || !strings.Contains(out.String(), "pages_per_s=5 ") {
			t.Errorf("%d lines:\n%s", n, out.String())
		}
	})
}

// If many hosts share an address, the view shows what they wait for.
func TestACrowdedAddressIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for hosts, seen := range map[int]bool{200_000: true, 39: false, 0: false} {
			s := Status{Time: time.Now(), Frontier: frontier.Counts{
				AddressQueue: frontier.AddressQueue{Addr: netip.MustParseAddr("192.0.2.7"), Hosts: hosts, Interval: 250 * time.Millisecond}}}
			l := NewLive(io.Discard, func() int { return 200 }, "x", Limits{})
			const want = "turns  200000 hosts wait for an address, at 192.0.2.7, 250ms apart (--ip-delay); the last " +
				"is due in 13:53:20"
			if body := l.render(s, Rates{}); strings.Contains(body, want) != seen || strings.Contains(body, "turns") != seen {
				t.Errorf("the view of %d hosts:\n%s", hosts, body)
			}
			var out bytes.Buffer
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
			Log(ctx, slog.New(slog.NewTextHandler(&out, nil)), Limits{}, func() Status { return s })
			cancel()
			const attrs = "hosts_at_one_address=200000 address=192.0.2.7 ip_delay=250ms last_turn_in=13h53m20s"
			if strings.Contains(out.String(), attrs) != seen || strings.Contains(out.String(), "address") != seen {
				t.Errorf("the log of %d hosts:\n%s", hosts, out.String())
			}
		}
	})
}

// While a file of seeds is read, the view shows the progress.
func TestSeedsAreSeen(t *testing.T) {
	l := NewLive(io.Discard, func() int { return 80 }, "x", Limits{})
	if body := l.render(Status{Seeds: Seeds{Taken: 12, All: 1_000_000}}, Rates{}); !strings.Contains(body,
		"seeds  12 of 1000000 enqueued") {
		t.Errorf("the view:\n%s", body)
	}
	if body := l.render(Status{Seeds: Seeds{Taken: 9, All: 9}}, Rates{}); strings.Contains(body, "enqueued") {
		t.Errorf("when all are:\n%s", body)
	}
}

// The forecast, and a stall with advice, are in the view and in the log.
func TestForecastAndStallAreSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Status{Time: time.Now(), Forecast: forecast.Forecast{Words: "at least 9 h: example.com has 32,400 URLs at one " +
			"a second"},
			Stall: stall.Alarm{Kind: stall.Backoff, Words: "all 3 hosts are left alone", Do: "wait", For: 2 * time.Minute}}
		l := NewLive(io.Discard, func() int { return 200 }, "x", Limits{})
		body := l.render(s, Rates{})
		for _, want := range []string{"  ends   at least 9 h: example.com has 32,400 URLs at one a second\n",
			"  STALLED: no answers for 2 min: all 3 hosts are left alone\n          wait\n"} {
			if !strings.Contains(body, want) {
				t.Errorf("the view lacks %q:\n%s", want, body)
			}
		}
		if body = l.render(Status{}, Rates{}); strings.Contains(body, "ends") || strings.Contains(body, "STALLED") {
			t.Errorf("before anything is known:\n%s", body)
		}
		var out bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		Log(ctx, slog.New(slog.NewTextHandler(&out, nil)), Limits{}, func() Status { return s })
		if !strings.Contains(out.String(), `forecast="at least 9 h`) ||
			!strings.Contains(out.String(), "stalled_for=2m0s stalled_by=backoff") {
			t.Errorf("the log:\n%s", out.String())
		}
	})
}

// If uploads fail, the view shows the pending ones.
func TestAPlaceThatFailsIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Status{Time: time.Now(), Uploads: stats.Uploads{Place: "s3://b/p", Waiting: 3, WaitSize: 2_100_000_000,
			Why: "connection refused", Next: 30 * time.Second}}
		const want = "3 files (2.1 GB) wait: connection refused; next try in 30 s"
		l := NewLive(io.Discard, func() int { return 200 }, "x", Limits{})
		if body := l.render(s, Rates{}); !strings.Contains(body, "  place  "+want) {
			t.Errorf("the view:\n%s", body)
		}
		var out bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		Log(ctx, slog.New(slog.NewTextHandler(&out, nil)), Limits{}, func() Status { return s })
		if !strings.Contains(out.String(), `place="`+want+`"`) {
			t.Errorf("the log:\n%s", out.String())
		}
		s.Uploads = stats.Uploads{Place: "s3://b/p", Files: 7}
		if body := l.render(s, Rates{}); strings.Contains(body, "place") {
			t.Errorf("the view of a place where nothing waits:\n%s", body)
		}
	})
}
