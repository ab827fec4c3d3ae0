package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kumo/internal/app/inspect"
	"kumo/internal/base/stats"
)

// folder says how the crawl in dir goes, again and again with --watch, until it ends.
func (s *statusView) folder(cmd *cobra.Command, dir string) error {
	if other := foreignTo(cmd.Flags()); other != "" {
		return usagef("--%s is for a crawl of several nodes: leave it or --out out", other)
	}
	ctx := cmd.Context()
	for {
		running, err := s.look(ctx, dir)
		if err != nil || !running || !s.watch {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(max(s.every, 100*time.Millisecond)):
		}
	}
}

// foreignTo is a flag that was typed and says nothing of a crawl of one machine.
func foreignTo(f *pflag.FlagSet) (name string) {
	for _, n := range []string{"crawl", "join", "nats", "secret-file", "wait", "hosts"} {
		if fl := f.Lookup(n); fl.Changed && name == "" {
			name = n
		}
	}
	return name
}

// look shows the crawl once, and reports whether it runs.
func (s *statusView) look(ctx context.Context, dir string) (running bool, err error) {
	v, err := openLook(ctx, dir)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	x, err := v.Status(ctx)
	if err != nil {
		return false, err
	}
	if s.json {
		enc := json.NewEncoder(s.out)
		enc.SetEscapeHTML(false)
		return v.Running(), enc.Encode(x)
	}
	var b strings.Builder
	printStatus(&b, x, dir)
	return v.Running(), s.draw(b.String(), s.width())
}

// printStatus is a crawl for people.
func printStatus(w io.Writer, x *inspect.Status, dir string) {
	fmt.Fprintf(w, "%s: %s\n", x.Crawl, folderState(x))
	x.PrintCounts(w)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	if x.State == inspect.Running || x.State == inspect.Paused {
		row("now", "%s active, %d waiting, %d backing off", stats.Count(x.Active, "hosts"), x.Idle, x.Backing)
		if x.SeedsTaken < x.Seeds {
			row("seeds", "%d of %d taken in", x.SeedsTaken, x.Seeds)
		}
	}
	if x.CutOff > 0 {
		row("CUT OFF", "from the web for %s: waiting, and trying a few hosts now and then (%s)", secondsSpan(x.CutOff),
			x.CutOffWhy)
	}
	if x.Forecast != "" {
		row("ends", "%s", x.Forecast)
	}
	if u := x.Uploads; u != nil {
		row("place", "%s has %s (%s)", u.Place, stats.Count(u.Files, "files"), stats.Bytes(u.Bytes))
		if words := u.Words(); words != "" {
			row("", "%s", words)
		}
		if u.State != nil {
			row("state", "%s", u.State.Words(time.Now()))
		}
		if words := u.State.Lacking(); words != "" {
			row("", "%s", words)
		}
	}
	for i := range x.Sinks {
		s := &x.Sinks[i]
		row("sink", "%s sent to %s (%s)", stats.Count(s.Sent, "records"), s.Sink, stats.Bytes(s.Bytes))
		if words := s.Words(); words != "" {
			row("", "%s", words)
		}
	}
	if x.StalledBy != "" {
		row("STALLED", "nothing was answered for %s: %s", secondsSpan(x.Stalled), x.StallWhy)
		row("", "%s", x.StallDo)
	}
	if x.State == inspect.BrokenOff || x.State == inspect.Stopped && x.Waiting > 0 {
		row("go on", "kumo crawl -o %s", dir)
	}
}

// folderState says since when a crawl does what it does.
func folderState(x *inspect.Status) string {
	switch x.State {
	case inspect.Stopped:
		if x.Stopped.IsZero() {
			return x.Ended
		}
		return fmt.Sprintf("%s after %s, at %s", x.Ended, secondsSpan(x.Seconds), when(x.Stopped))
	case inspect.BrokenOff:
		return "broken off: its last run was killed, or had no room on the disk to report"
	}
	return fmt.Sprintf("%s, for %s", x.State, secondsSpan(x.Seconds))
}

func secondsSpan(s float64) string { return stats.Span(time.Duration(s * float64(time.Second))) }
