package progress

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"kumo/internal/base/field"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/engine/crawl"
	"kumo/internal/state/stall"
)

const (
	refresh   = 250 * time.Millisecond
	lastLines = 6
)

// A Live is a view that redraws itself on a terminal. Log lines written to it appear above the view.
type Live struct {
	out    io.Writer
	width  func() int
	title  string
	hint   string // how to stop the crawl
	status func() Status

	mu    sync.Mutex // guards the fields below
	meter Meter
	lines []string // last events
	drawn int      // number of lines on the screen
	body  string
}

// NewLive creates a view; width returns the width of the terminal.
func NewLive(out io.Writer, width func() int, title string, limits Limits) *Live {
	return &Live{out: out, width: width, title: title, hint: "Ctrl-C stops, the same command resumes",
		meter: Meter{Limits: limits}}
}

// Hint sets how to stop the crawl, if it is not a crawl of one node. It must be called before Run.
func (l *Live) Hint(text string) { l.hint = text }

// Run redraws the view until the context ends. It leaves the last state on the screen.
func (l *Live) Run(ctx context.Context, status func() Status) {
	l.status = status
	tick := time.NewTicker(refresh)
	defer tick.Stop()
	for {
		l.draw()
		select {
		case <-ctx.Done():
			l.draw()
			return
		case <-tick.C:
		}
	}
}

// Listener returns a listener that shows the last events.
func (l *Live) Listener() crawl.Listener {
	return crawl.Listener{
		Visited: func(r *page.Record) { l.add(line(r)) },
		Slowed: func(host string, status int, ask, wait time.Duration) {
			if ask > wait {
				l.add(fmt.Sprintf("%d  %s requests a back-off of %v, limited to %v (--max-backoff)", status, host, ask,
					wait))
				return
			}
			l.add(fmt.Sprintf("%d  %s requests a back-off of %v", status, host, wait.Round(time.Millisecond)))
		},
		Abandoned: func(host, why string) { l.add(fmt.Sprintf("abandoned %s: %s", host, why)) },
		Offline:   func(_ time.Time, why string) { l.add("offline: " + why) },
		Online: func(after time.Duration, reached bool) {
			if reached {
				l.add(fmt.Sprintf("online again, after %v", after.Round(time.Second)))
				return
			}
			l.add(fmt.Sprintf("the few working hosts are still unreachable: waited for %v", after.Round(time.Second)))
		},
		Unranked:  func(error) { l.add("URLs found from now on are not ranked: see --memory") },
		NoSockets: func(why string) { l.add("no sockets left on this machine (ulimit -n): " + why) },
		Paused: func(free uint64) {
			l.add(fmt.Sprintf("paused: the disk has %s left; free space, or continue with a lower --min-free-disk",
				stats.Bytes(int64(free))))
		},
		Idle: func(next time.Time) {
			l.add("the queue is empty; the next recrawl is due at " + next.Local().Format(time.DateTime))
		},
		Resumed: func(free uint64) { l.add(fmt.Sprintf("the disk has %s free again", stats.Bytes(int64(free)))) },
	}
}

func line(r *page.Record) string {
	if r.Failure != page.None {
		return fmt.Sprintf("%s  %s: %s", r.Failure, r.URL, r.Detail)
	}
	return fmt.Sprintf("%d  %s  %s", r.Response.Status, r.URL, stats.Bytes(r.Response.RawLen()))
}

func (l *Live) add(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) == lastLines {
		l.lines = append(l.lines[:0], l.lines[1:]...)
	}
	l.lines = append(l.lines, s)
}

func (l *Live) draw() {
	s := l.status()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.body = l.render(s, l.meter.Update(s))
	_, _ = io.WriteString(l.out, l.erase()+l.body) // if the terminal fails, there is no view
	l.drawn = strings.Count(l.body, "\n")
}

// erase moves the cursor to the view's first line and clears from there.
func (l *Live) erase() string {
	if l.drawn == 0 {
		return ""
	}
	return fmt.Sprintf("\r\x1b[%dA\x1b[J", l.drawn) // the cursor may be behind a ^C that the terminal printed
}

// Write writes a log line above the view.
func (l *Live) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := io.WriteString(l.out, l.erase()+string(p)+l.body)
	return len(p), err
}

func (l *Live) render(s Status, r Rates) string {
	var b strings.Builder
	width := l.width()
	row := func(format string, args ...any) {
		b.WriteString(clip(fmt.Sprintf(format, args...), width))
		b.WriteByte('\n')
	}
	left := ""
	if r.HasLeft {
		left = ", " + clock(r.Left) + " left"
	}
	row("kumo %s  %s%s  (%s)", l.title, clock(r.Elapsed), left, l.hint)
	row("  pages  %d  (%.1f/s)   %s  (%s/s)   errors %d", s.Totals.Pages, r.Pages, stats.Bytes(s.Totals.Bytes),
		stats.Bytes(int64(r.Bytes)), s.Totals.Failed)
	row("  hosts  %d active, %d waiting, %d backing off", s.Frontier.Active, s.Frontier.Waiting, s.Frontier.Backing)
	row("  URLs   %d pending, %d known", s.Frontier.URLs, s.Known)
	if c := s.Frontier.AddressQueue; c.Wait() >= longAddressWait {
		row("  turns  %d hosts wait for an address, at %v, %v apart (--ip-delay); the last is due in %s", c.Hosts,
			c.Addr, c.Interval, clock(c.Wait()))
	}
	if s.Seeds.isLoading() {
		row("  seeds  %d of %d enqueued", s.Seeds.Taken, s.Seeds.All)
	}
	if o := s.Outage; o.Offline {
		row("  OFFLINE for %s: waiting, and trying a few hosts now and then (%s)", clock(s.Time.Sub(o.Since)),
			o.Why)
	}
	for i := range s.Filters {
		f, again := &s.Filters[i], ""
		if n := f.Restarts(); n > 0 {
			again = fmt.Sprintf("; restarted %s: %s", stats.Count(n, "times"), f.Trouble)
		}
		row("  filter %s: %s%s", f.Filter, f.Summary(), again)
	}
	for _, sink := range s.Sinks {
		row("  sink   %d records sent to %s, %d pending", sink.Sent, sink.Sink, sink.Waiting)
		if sink.Why != "" {
			row("         NOT ACCEPTING RECORDS: %s", sink.Why)
		}
	}
	if s.Forecast.Words != "" {
		row("  ends   %s", s.Forecast.Words)
	}
	if words := s.Uploads.Summary(); words != "" {
		row("  place  %s", words)
	}
	if a := s.Stall; a.Kind != stall.None {
		row("  STALLED: no answers for %s: %s", stats.Span(a.For), a.Words)
		row("          %s", a.Do)
	}
	for _, text := range l.lines {
		row("  %s", text)
	}
	return b.String()
}

// clip cuts a line to the terminal's width, and removes control characters and direction marks, because URLs come from
// the network.
func clip(s string, width int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || field.IsBidiControl(r) {
			return '?'
		}
		return r
	}, s)
	if width <= 1 || utf8.RuneCountInString(s) < width {
		return s
	}
	return string([]rune(s)[:width-2]) + "…"
}
