// Package progress displays the progress of a crawl, as a live view on a terminal or as periodic log lines elsewhere.
package progress

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"kumo/internal/base/stats"
	"kumo/internal/engine/crawl"
	"kumo/internal/state/forecast"
	"kumo/internal/state/frontier"
	"kumo/internal/state/stall"
)

// A Status is a snapshot of a crawl.
type Status struct {
	Time     time.Time
	Totals   stats.Snapshot // its maps are not set
	Frontier frontier.Counts
	Known    int // known URLs in scope
	Seeds    Seeds
	Outage   crawl.Outage
	Forecast forecast.Forecast
	Stall    stall.Alarm
	Filters  []stats.FilterCounts
	Sinks    []stats.Sink
	Uploads  stats.Uploads // to the crawl's storage location, if it has one
}

// Seeds is the progress of reading a file of seeds.
type Seeds struct{ Taken, All int64 }

func (s Seeds) isLoading() bool { return s.Taken < s.All }

// longAddressWait is the wait for an address from which on it is displayed: then the crawl is slowed only by its own
// --ip-delay.
const longAddressWait = 10 * time.Second

// Limits are the limits of a crawl; 0 means none.
type Limits struct {
	Pages, Bytes int64
	Time         time.Duration
}

// A Meter computes rates from successive statuses.
type Meter struct {
	Limits  Limits
	first   Status
	history []Status // statuses of the last window, oldest first
}

const window = 10 * time.Second

// Rates are per second, over the last ten seconds.
type Rates struct {
	Pages, Bytes float64
	Elapsed      time.Duration
	Left         time.Duration // until a limit is reached, at these rates
	HasLeft      bool
}

// Update adds the next status and returns the rates.
func (m *Meter) Update(s Status) Rates {
	if m.history == nil {
		m.first = s
	}
	m.history = append(m.history, s)
	for len(m.history) > 2 && s.Time.Sub(m.history[0].Time) > window {
		m.history = m.history[1:]
	}
	old := m.history[0]
	r := Rates{Elapsed: s.Time.Sub(m.first.Time)}
	if secs := s.Time.Sub(old.Time).Seconds(); secs > 0 {
		r.Pages = float64(s.Totals.Pages-old.Totals.Pages) / secs
		r.Bytes = float64(s.Totals.Bytes-old.Totals.Bytes) / secs
	}
	m.setTimeLeft(&r, s)
	return r
}

// setTimeLeft sets the time until the first limit is reached.
func (m *Meter) setTimeLeft(r *Rates, s Status) {
	consider := func(d time.Duration) {
		if d = max(d, 0); !r.HasLeft || d < r.Left {
			r.Left, r.HasLeft = d, true
		}
	}
	if m.Limits.Time > 0 {
		consider(m.Limits.Time - r.Elapsed)
	}
	if m.Limits.Pages > 0 && r.Pages > 0 {
		consider(seconds(float64(m.Limits.Pages-s.Totals.Pages) / r.Pages))
	}
	if m.Limits.Bytes > 0 && r.Bytes > 0 {
		consider(seconds(float64(m.Limits.Bytes-s.Totals.Bytes) / r.Bytes))
	}
}

func seconds(s float64) time.Duration {
	return time.Duration(min(s, 1e9) * float64(time.Second))
}

const logInterval = 10 * time.Second

// Log writes a line every ten seconds until the context ends.
func Log(ctx context.Context, log *slog.Logger, limits Limits, status func() Status) {
	m := Meter{Limits: limits}
	m.Update(status())
	tick := time.NewTicker(logInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s := status()
		r := m.Update(s)
		attrs := []any{
			"pages", s.Totals.Pages, "pages_per_s", float64(int64(r.Pages*10+0.5)) / 10,
			"bytes", s.Totals.Bytes, "bytes_per_s", int64(r.Bytes),
			"hosts_active", s.Frontier.Active, "hosts_waiting", s.Frontier.Waiting, "hosts_backing_off", s.Frontier.Backing,
			"urls_waiting", s.Frontier.URLs, "urls_known", s.Known, "errors", s.Totals.Failed,
		}
		if s.Seeds.isLoading() {
			attrs = append(attrs, "seeds_taken_in", s.Seeds.Taken, "seeds", s.Seeds.All)
		}
		if c := s.Frontier.AddressQueue; c.Wait() >= longAddressWait {
			attrs = append(attrs, "hosts_at_one_address", c.Hosts, "address", c.Addr.String(), "ip_delay", c.Interval.String(),
				"last_turn_in", c.Wait().Round(time.Second).String())
		}
		if s.Outage.Offline {
			attrs = append(attrs, "cut_off_for", s.Time.Sub(s.Outage.Since).Round(time.Second).String())
		}
		if s.Forecast.Words != "" {
			attrs = append(attrs, "forecast", s.Forecast.Words)
		}
		if words := s.Uploads.Summary(); words != "" {
			attrs = append(attrs, "place", words)
		}
		if s.Stall.Kind != stall.None {
			attrs = append(attrs, "stalled_for", s.Stall.For.Round(time.Second).String(), "stalled_by", string(s.Stall.Kind))
		}
		for _, sink := range s.Sinks {
			attrs = append(attrs, "sink", sink.Sink, "records_sent", sink.Sent, "records_waiting", sink.Waiting)
			if sink.Why != "" {
				attrs = append(attrs, "sink_takes_none", sink.Why)
			}
		}
		if r.HasLeft {
			attrs = append(attrs, "left", r.Left.Round(time.Second).String())
		}
		log.Info("crawling", attrs...)
	}
}

func clock(d time.Duration) string {
	d = d.Round(time.Second)
	return fmt.Sprintf("%d:%02d:%02d", int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60)
}
