package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/app/wire"
	"kumo/internal/base/advice"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/engine/plan"
	"kumo/internal/engine/seeds"
	"kumo/internal/view/text"
)

const planLong = `Estimate a crawl before it starts: the pages of each host, their size, and the time.

kumo plan takes the flags of kumo crawl. It fetches robots.txt from the seeds' hosts, and the
sitemaps named there, with the crawl's rules and politeness. It fetches no page, and writes nothing.
For each host it prints:

  allowed    whether robots.txt and the crawl's rules allow the seeds: yes, some or no, with the rule
             below the table; unknown: the host has no seed, so robots.txt was not fetched
  delay      between two requests, and its source if that is not --delay
  sitemaps   sitemaps read (at most 100 per host), and the URLs they list: all, in scope, and in scope
             and allowed, each counted once
  pages      expected number, with its source in the last column; ? means unknown: there is no
             sitemap. Pages that are in no sitemap are not counted, so there may be more
  size       by the average page of the crawl in the folder; without one, 30 kB per page over the
             wire, the average of the web, which may be wrong by a factor of ten for a site
  time       for these pages one after the other: the delay, and the host's measured response time

and for the crawl the bottleneck, and sufficient values for -c, memory and disk. The table has the 20
slowest hosts; --json has all. Each request is tried at most twice; a host that answers 429 or 503 is
left alone as in a crawl, for at most 30 s.`

const planExample = `  kumo plan https://example.com/
  kumo plan -i seeds.txt --max-pages-per-host 1000 --delay 500ms
  kumo plan --sitemaps guess --depth 0 --json -i seeds.txt | jq '.hosts[] | select(.pages == null) | .host'`

func planCommand() *cobra.Command {
	o, asJSON := &options{noFetch: true}, false
	cmd := &cobra.Command{
		Use: "plan [flags] URL...", Short: "Estimate a crawl from robots.txt and sitemaps", Long: planLong,
		Example: planExample,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			defer func() { err = errors.Join(err, closeInput(&o.Job)) }()
			return o.plan(cmd.Context(), cmd.Flags(), args, asJSON, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object with all hosts")
	o.bind(cmd.Flags())
	return withSettingsHelp(cmd)
}

func (o *options) plan(ctx context.Context, f *pflag.FlagSet, args []string, asJSON bool, out, stderr io.Writer) error {
	args, bad := splitSeeds(args)
	o.SkipBadSeeds = true // they are listed
	if err := errors.Join(o.resolve(ctx, f, args), checkProxies(o.Proxies)); err != nil {
		return err
	}
	if o.Job.File != nil {
		for _, fault := range o.Job.File.Faults {
			bad = append(bad, plan.BadSeed{Line: fault.Line, Text: fault.Text, Why: fault.Why.Error()})
		}
	}
	o.Job.Warn = func(err error) { fmt.Fprintln(stderr, "kumo:", err) }
	assumed, err := assumptions(&o.Job)
	if err != nil {
		return err
	}
	survey, done, err := wire.Survey(&o.Job)
	switch {
	case errors.Is(err, plan.ErrTooMany):
		return advice.Usage("%w: plan for a part of them, as of head -n %d", err, plan.MaxHosts)
	case err != nil:
		return err
	}
	p, err := survey.Run(ctx)
	err = errors.Join(err, done())
	if err != nil && ctx.Err() == nil {
		return err
	}
	p.Bad = bad
	p.Estimate(assumed)
	if asJSON {
		return errors.Join(err, text.JSON(out, p))
	}
	p.Print(out)
	warnOfSpace(out, &o.Job, p.Sum.Disk)
	if err == nil && p.Sum.Reached == 0 {
		return errNothing
	}
	return err
}

// splitSeeds separates valid seeds from invalid ones.
func splitSeeds(args []string) (good []string, bad []plan.BadSeed) {
	for _, arg := range args {
		if _, err := seeds.ParseURL(arg); err != nil {
			bad = append(bad, plan.BadSeed{Text: arg, Why: err.Error()})
			continue
		}
		good = append(good, arg)
	}
	return slices.Clip(good), bad
}

// assumptions returns the basis of an estimate: the crawl's settings and, if the folder has an earlier crawl, its
// average page.
func assumptions(j *job.Job) (plan.Assumptions, error) {
	a := plan.Assumptions{Hosts: j.HostsAtOnce(), PerHost: j.Frontier.PerHost, AddrDelay: j.Frontier.AddrDelay,
		Rate: j.Crawl.Rate, Bandwidth: j.Fetch.Bandwidth, Pages: j.Crawl.Pages, Bytes: j.Crawl.Bytes, Time: j.Crawl.Time,
		BytesFrom: "assumed, as there is no earlier crawl in " + j.Dir}
	r, err := folder.ReadReport(j.Dir)
	if err != nil || r == nil || r.Pages == 0 {
		return a, err
	}
	size, err := folder.Size(j.Dir)
	if err != nil {
		return a, err
	}
	a.PageBytes, a.DiskBytes = max(r.Bytes/r.Pages, 1), max(size/r.Pages, 1)
	a.BytesFrom = fmt.Sprintf("the average of the %s of the crawl in %s", stats.Count(r.Pages, "pages"), j.Dir)
	return a, nil
}

// warnOfSpace prints a warning if the crawl needs more disk space than available.
func warnOfSpace(w io.Writer, j *job.Job, want int64) {
	dir := j.Dir
	for {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			break
		}
		up := filepath.Dir(dir)
		if up == dir {
			return
		}
		dir = up
	}
	free, err := vfs.OS.Free(cmp.Or(dir, "."))
	if room := int64(free) - int64(j.Crawl.MinFree); err == nil && room < want {
		fmt.Fprintf(w, "%-9s NOT ENOUGH: %s has %s of room beyond --min-free-disk\n", "", dir, stats.Bytes(max(room, 0)))
	}
}
