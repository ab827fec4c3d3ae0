package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"kumo/internal/sink"
	"kumo/internal/sink/stdout"
	"kumo/internal/stats"
	"kumo/internal/wire/sinks"
)

// A formOrSink is a choice of forms that takes the URL of a sink, too.
type formOrSink struct{ choice }

// Set is pflag.Value's.
func (f formOrSink) Set(s string) error {
	if sinks.Is(s) {
		*f.value = s
		return nil
	}
	return f.choice.Set(s)
}

// send is kumo export --to SINK.
func (o *exportOptions) send(ctx context.Context, crawl string, out io.Writer) error {
	x := sinks.Export{Crawl: crawl, Sink: o.form, Condition: o.where, Temp: o.temp, Out: out}
	clear, said := func() {}, ""
	if draws(os.Stderr) && !o.quiet {
		x.Progress, clear = exportProgress(os.Stderr)
	}
	x.Waiting = func(err error, _ time.Duration) {
		if text := err.Error(); !o.quiet && text != said {
			said = text
			clear()
			fmt.Fprintf(os.Stderr, "waiting for the sink: %v\n", err)
		}
	}
	if o.form == sinks.Stdout {
		signal.Ignore(syscall.SIGPIPE) // to be told by the write
	}
	begin := time.Now()
	r, err := sinks.Run(ctx, x)
	clear()
	if errors.Is(err, stdout.ErrClosed) {
		return nil // who reads has enough
	}
	if err != nil || o.quiet || o.form == sinks.Stdout {
		return err
	}
	if r.After != "" {
		fmt.Fprintf(out, "went on behind %s\n", r.After)
	}
	fmt.Fprintf(out, "%s sent to %s in %.1f s\n", stats.Count(r.Sent, "records"), sink.Redact(o.form),
		time.Since(begin).Seconds())
	printLeftOut(out, r.Report)
	return nil
}
