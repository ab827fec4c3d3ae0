package text

import (
	"fmt"
	"io"
	"time"

	"kumo/internal/app/inspect"
	"kumo/internal/base/stats"
)

// Status prints the status of the crawl in dir.
func Status(w io.Writer, x *inspect.Status, dir string) {
	fmt.Fprintf(w, "%s: %s\n", x.Crawl, folderState(x))
	x.PrintCounts(w)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	some := func(name, words string) {
		if words != "" {
			row(name, "%s", words)
		}
	}
	if x.State == inspect.Running || x.State == inspect.Paused {
		row("now", "%s active, %d waiting, %d backing off", stats.Count(x.Active, "hosts"), x.Idle, x.Backing)
		if x.SeedsTaken < x.Seeds {
			row("seeds", "%d of %d enqueued", x.SeedsTaken, x.Seeds)
		}
	}
	if x.CutOff > 0 {
		row("OFFLINE", "for %s: waiting, and trying a few hosts now and then (%s)", secondsSpan(x.CutOff),
			x.CutOffWhy)
	}
	some("ends", x.Forecast)
	if u := x.Uploads; u != nil {
		row("place", "%s has %s (%s)", u.Place, stats.Count(u.Files, "files"), stats.Bytes(u.Bytes))
		some("", u.Summary())
		if u.State != nil {
			row("state", "%s", u.State.Summary(time.Now()))
		}
		some("", u.State.MissingHint())
	}
	for i := range x.Sinks {
		s := &x.Sinks[i]
		row("sink", "%s sent to %s (%s)", stats.Count(s.Sent, "records"), s.Sink, stats.Bytes(s.Bytes))
		some("", s.Summary())
	}
	if x.StalledBy != "" {
		row("STALLED", "no answers for %s: %s", secondsSpan(x.Stalled), x.StallWhy)
		row("", "%s", x.StallDo)
	}
	if x.State == inspect.BrokenOff || x.State == inspect.Stopped && x.Waiting > 0 {
		row("resume", "kumo crawl -o %s", dir)
	}
}

// folderState returns the state of a crawl with its duration.
func folderState(x *inspect.Status) string {
	switch x.State {
	case inspect.Stopped:
		if x.Stopped.IsZero() {
			return x.Ended
		}
		return fmt.Sprintf("%s after %s, at %s", x.Ended, secondsSpan(x.Seconds), Time(x.Stopped))
	case inspect.BrokenOff:
		return "broken off: its last run was killed, or could not write its report for lack of disk space"
	}
	return fmt.Sprintf("%s, for %s", x.State, secondsSpan(x.Seconds))
}

func secondsSpan(s float64) string { return stats.Span(time.Duration(s * float64(time.Second))) }
