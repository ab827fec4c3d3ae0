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

const planLong = `Say what a crawl will come to, before it begins: how many pages of which hosts, how large, and how long
they take.

It takes the flags of kumo crawl, and asks the seeds' hosts for robots.txt and for the sitemaps that these name, by the
crawl's rules and as politely; no page is fetched, and nothing is written. Of each host it says

  allowed    whether robots.txt and the crawl's rules let the seeds be fetched: yes, some or no, with the line below the
             table; unknown: no seed is there, so its robots.txt was not asked for
  delay      that the crawl will keep between two requests, and what says so if that is not --delay
  sitemaps   that were read (100 of a host at most), and how many URLs they list: in all, in scope, and of these
             allowed, each once
  pages      expected, by what stands in the last column; ? is unknown: there is no sitemap. Pages that no sitemap
             lists are not counted, so there may be more
  size       by the average page of the crawl in the folder, if there is one; if not, at 30 kB a page over the wire,
             which is what pages of the web at large have, and may be ten times off for one site
  time       for these pages one after the other: the delay, and how long the host's answers have taken, for each

and of the whole what the end waits for, and which -c, memory and disk are enough. The table has the 20 slowest hosts;
--json has all. A host is asked twice for one thing at most; who answers 429 or 503 is left alone as in a crawl, for
30 s at most.`

const planExample = `  kumo plan https://example.com/
  kumo plan -i seeds.txt --max-pages-per-host 1000 --delay 500ms
  kumo plan --sitemaps guess --depth 0 --json -i seeds.txt | jq '.hosts[] | select(.pages == null) | .host'`

func planCommand() *cobra.Command {
	o, asJSON := &options{noFetch: true}, false
	cmd := &cobra.Command{
		Use: "plan [flags] URL...", Short: "Say what a crawl will come to, by robots.txt and sitemaps", Long: planLong,
		Example: planExample,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			defer func() { err = errors.Join(err, closeInput(&o.Job)) }()
			return o.plan(cmd.Context(), cmd.Flags(), args, asJSON, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "answer in JSON, one object with all hosts")
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

// splitSeeds takes out of the arguments what is no URL.
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

// assumptions are what an estimate rests on: the crawl's settings and, if there is an earlier crawl in the folder, its
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

// warnOfSpace says so if the disk has less room than the crawl would take.
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
