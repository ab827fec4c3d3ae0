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

	"github.com/spf13/cobra"

	"kumo/internal/app/setting"
	"kumo/internal/app/wire/sinks"
	"kumo/internal/app/wire/uploads"
	"kumo/internal/archive/sink"
	"kumo/internal/archive/sink/stdout"
	"kumo/internal/base/stats"
)

// A formatOrSink is a choice of formats that also accepts the URL of a sink.
type formatOrSink struct {
	setting.Value
	to *string
}

// Set implements pflag.Value.
func (f formatOrSink) Set(s string) error {
	if sinks.Is(s) {
		*f.to = s
		return nil
	}
	return f.Value.Set(s)
}

// send runs kumo export --to SINK.
func (o *exportOptions) send(ctx context.Context, crawl string, out io.Writer) error {
	if err := uploads.CheckLocal(crawl, "an export to a server"); err != nil {
		return err
	}
	x := sinks.Export{Crawl: crawl, Sink: o.form, Condition: o.where, Temp: o.temp, Out: out,
		Documents: o.documents.reader()}
	show, clear := exportProgress(!o.quiet)
	x.Progress = show
	said := ""
	x.OnWait = func(err error, _ time.Duration) {
		if text := err.Error(); !o.quiet && text != said {
			said = text
			clear()
			fmt.Fprintf(os.Stderr, "waiting for the sink: %v\n", err)
		}
	}
	if o.form == sinks.Stdout {
		signal.Ignore(syscall.SIGPIPE) // the write returns the error
	}
	begin := time.Now()
	r, err := sinks.Run(ctx, x)
	clear()
	if errors.Is(err, stdout.ErrClosed) {
		return nil // the reader has closed the pipe
	}
	if err != nil || o.quiet || o.form == sinks.Stdout {
		return err
	}
	if r.After != "" {
		fmt.Fprintf(out, "resumed after %s\n", r.After)
	}
	fmt.Fprintf(out, "%s sent to %s in %.1f s\n", stats.Count(r.Sent, "records"), sink.Redact(o.form),
		time.Since(begin).Seconds())
	printExcluded(out, r.Report)
	return nil
}

var errSinkDiffers = errors.New("the sink differs from the crawl")

func (o *verifyOptions) compare(cmd *cobra.Command, crawl string) error {
	out := cmd.OutOrStdout()
	if err := uploads.CheckLocal(crawl, "kumo verify --sink"); err != nil {
		return err
	}
	x := sinks.Export{Crawl: crawl, Sink: o.sink, Temp: o.cfg.Temp}
	show, clear := exportProgress(!o.quiet)
	x.Progress = show
	type difference struct {
		What sinks.Difference `json:"what"`
		URL  string           `json:"url"`
	}
	first, said := []difference{}, map[sinks.Difference]int{}
	c, err := sinks.Compare(cmd.Context(), x, func(what sinks.Difference, url string) {
		if said[what]++; said[what] > defaultFaultLimit && !o.all {
			return
		}
		if o.json {
			first = append(first, difference{what, url})
			return
		}
		clear()
		fmt.Fprintf(out, "%s: %s\n", what, url)
		if said[what] == defaultFaultLimit && !o.all {
			fmt.Fprintf(out, "more that are %s are counted only: --all lists them\n", what)
		}
	})
	clear()
	if err != nil {
		return err
	}
	if o.json {
		err = writeJSON(out, struct {
			Folder string `json:"folder"`
			To     string `json:"to"`
			OK     bool   `json:"ok"`
			*sinks.Comparison
			First []difference `json:"first"` // of each kind, or all
		}{crawl, sink.Redact(o.sink), c.Same(), c, first})
	} else {
		fmt.Fprintf(out, "%s in the crawl, %d in %s: %d missing, %d older, %d extra\n", stats.Count(c.Crawl, "records"),
			c.Sink, sink.Redact(o.sink), c.Missing, c.Older, c.Extra)
	}
	if err == nil && !c.Same() {
		err = errSinkDiffers
	}
	return err
}
