package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kumo/internal/app/setting"
	"kumo/internal/base/weburl"
	"kumo/internal/lab/synthweb"
)

const demoLong = `Serve a synthetic web on loopback and crawl it. No network is needed, and nothing leaves this
machine.

The web has good and bad hosts: robots.txt with forbidden paths and delays, redirects and loops,
endless calendars, hosts that are slow, refuse connections or never answer, truncated responses,
unusual charsets and markup. At the end, the score of its servers is printed: coverage, repeated
fetches, and politeness.`

func demoCommand() *cobra.Command {
	o := &options{}
	all := crawlFlags(o)
	o.Job.Crawl.MinFree = 0 // the demo stores little
	w := webFlags{messy: true}
	cmd := &cobra.Command{Use: "demo", Short: "Crawl a synthetic web on this machine", Long: demoLong, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.demo(cmd.Context(), cmd.OutOrStdout(), w, all)
		}}
	w.bind(cmd, 24, 1200)
	f := cmd.Flags()
	f.StringVarP(&o.Out, "out", "o", "crawls/demo", "the crawl's folder; an earlier demo in it is removed")
	durationVar(f, &o.Job.Frontier.Delay, "delay", 20*time.Millisecond, "time from the end of an answer to "+
		"the next request to that host")
	f.IntVarP(&o.Job.Frontier.Hosts, "concurrency", "c", 64, "visit `N` hosts at once")
	f.StringVar(&o.Metrics, "metrics", "", "serve Prometheus metrics and pprof at `ADDR`")
	for _, key := range []string{"ui", "ui-cert", "ui-key", "ui-no-token"} {
		addFlag(f, setting.Find(key), &o.Values)
	}
	f.BoolVarP(&o.Verbose, "verbose", "v", false, "log every URL")
	return cmd
}

// demo crawls with settings that show everything within a minute. All settings are flags of kumo crawl, so that the
// config file lists them.
func (o *options) demo(ctx context.Context, out io.Writer, flags webFlags, all *pflag.FlagSet) (err error) {
	if err := o.finish(); err != nil {
		return err
	}
	server, err := synthweb.Serve(ctx, synthweb.New(flags.config()), synthweb.ServeOptions{DNS: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	j := &o.Job
	if err := checkFolder("--out", o.Out); err != nil {
		return err
	}
	j.Name, j.Dir, j.Fresh, j.Discard, j.Seeds = "demo", o.Out, true, true, server.SeedURLs()
	j.Contact = "https://example.org/demo"
	j.Scope = weburl.ScopeAny
	j.Crawl.PagesPerHost = 400
	j.Frontier.AddrDelay = j.Frontier.Delay
	j.Fetch.AllowPrivate, j.Fetch.DNSServer = true, server.DNS()
	j.Fetch.ConnectTimeout, j.Fetch.Timeout = 2*time.Second, 3*time.Second
	j.Settings = o.settings()
	if err := o.crawl(ctx, out); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nWhat the servers saw:\n%s\n", server.Score())
	fmt.Fprintf(out, "\nSee %s: pages.jsonl, crawl.log, skipped.jsonl, report.json, warc/\n", j.Dir)
	return nil
}
