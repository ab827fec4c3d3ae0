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

// A Live is a view that redraws itself on a terminal. It is written to as well, so that log lines appear above it.
type Live struct {
	out    io.Writer
	width  func() int
	title  string
	hint   string // how it can be ended
	status func() Status

	mu    sync.Mutex // guards all below
	meter Meter
	lines []string // the last things that happened
	drawn int      // lines on the screen
	body  string
}

// NewLive makes a view; width asks the terminal how wide it is.
func NewLive(out io.Writer, width func() int, title string, limits Limits) *Live {
	return &Live{out: out, width: width, title: title, hint: "Ctrl-C stops, the same command goes on",
		meter: Meter{Limits: limits}}
}

// Hint says how what is shown can be ended, where that is not as for a crawl of one node. It is called before Run.
func (l *Live) Hint(text string) { l.hint = text }

// Run redraws the view until the context ends, then leaves its last state on the screen.
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

// Listener remembers the last things that happened.
func (l *Live) Listener() crawl.Listener {
	return crawl.Listener{
		Visited: func(r *page.Record) { l.add(line(r)) },
		Slowed: func(host string, status int, ask, wait time.Duration) {
			if ask > wait {
				l.add(fmt.Sprintf("%d  %s asks to be left alone for %v, and is for %v (--max-backoff)", status, host, ask, wait))
				return
			}
			l.add(fmt.Sprintf("%d  %s asks to be left alone, and is for %v", status, host, wait.Round(time.Millisecond)))
		},
		Abandoned: func(host, why string) { l.add(fmt.Sprintf("gave up %s: %s", host, why)) },
		Offline:   func(_ time.Time, why string) { l.add("cut off from the web: " + why) },
		Online: func(after time.Duration, reached bool) {
			if reached {
				l.add(fmt.Sprintf("the web is reached again, after %v", after.Round(time.Second)))
				return
			}
			l.add(fmt.Sprintf("the few hosts that worked are not reached again: waited for %v", after.Round(time.Second)))
		},
		Unranked:  func(error) { l.add("URLs that are found from now on are not ranked: see --memory") },
		NoSockets: func(why string) { l.add("no socket left on this machine (ulimit -n): " + why) },
		Paused: func(free uint64) {
			l.add(fmt.Sprintf("paused: the disk has %s left; make room, or continue with a lower --min-free-disk",
				stats.Bytes(int64(free))))
		},
		Idle: func(next time.Time) {
			l.add("nothing waits; something is to be visited again at " + next.Local().Format(time.DateTime))
		},
		Resumed: func(free uint64) { l.add(fmt.Sprintf("the disk has %s of room again", stats.Bytes(int64(free)))) },
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
	_, _ = io.WriteString(l.out, l.erase()+l.body) // a view that cannot be shown is none
	l.drawn = strings.Count(l.body, "\n")
}

// erase goes back to the view's first line and clears from there.
func (l *Live) erase() string {
	if l.drawn == 0 {
		return ""
	}
	return fmt.Sprintf("\r\x1b[%dA\x1b[J", l.drawn) // the cursor may stand behind a ^C that the terminal wrote
}

// Write puts a log line above the view.
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
	row("  URLs   %d waiting, %d known", s.Frontier.URLs, s.Known)
	if c := s.Frontier.AddressQueue; c.Wait() >= longAddressWait {
		row(
			"  turns  %d hosts wait for theirs at %v, %v apart (--ip-delay); the last comes in %s",
			c.Hosts,
			c.Addr,
			c.Interval,
			clock(c.Wait()),
		)
	}
	if s.Seeds.isLoading() {
		row("  seeds  %d of %d taken in", s.Seeds.Taken, s.Seeds.All)
	}
	if o := s.Outage; o.Offline {
		row("  CUT OFF from the web for %s: waiting, and trying a few hosts now and then (%s)", clock(s.Time.Sub(o.Since)),
			o.Why)
	}
	for i := range s.Filters {
		f, again := &s.Filters[i], ""
		if n := f.Restarts(); n > 0 {
			again = fmt.Sprintf("; started again %s: %s", stats.Count(n, "times"), f.Trouble)
		}
		row("  filter %s: %s%s", f.Filter, f.Summary(), again)
	}
	for _, sink := range s.Sinks {
		row("  sink   %d records sent to %s, %d waiting", sink.Sent, sink.Sink, sink.Waiting)
		if sink.Why != "" {
			row("         IT TAKES NONE NOW: %s", sink.Why)
		}
	}
	if s.Forecast.Words != "" {
		row("  ends   %s", s.Forecast.Words)
	}
	if words := s.Uploads.Summary(); words != "" {
		row("  place  %s", words)
	}
	if a := s.Stall; a.Kind != stall.None {
		row("  STALLED: nothing was answered for %s: %s", stats.Span(a.For), a.Words)
		row("          %s", a.Do)
	}
	for _, text := range l.lines {
		row("  %s", text)
	}
	return b.String()
}

// clip cuts a line to the terminal's width and takes control characters and marks of direction out: URLs come from the
// network.
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
