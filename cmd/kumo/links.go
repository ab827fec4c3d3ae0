package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"kumo/internal/app/job"
	"kumo/internal/app/wire/uploads"
	"kumo/internal/archive/links"
	"kumo/internal/base/stats"
	"kumo/internal/base/weburl"
	"kumo/internal/view/text"
)

const linksCommandLong = `List links in the crawl in FOLDER.

  --broken     links that lead to an error, to nothing, or round in circles, by target URL: each
               with status, redirect targets, the pages that contain it, and its text
  --redirects  redirect chains, by their first URL: how many links lead there, the status of each
               step, and the end: its status, an error, or loop
  --orphans    URLs in sitemaps that no page of the crawl links to, with their sitemap, whether
               they were fetched or not; entries of feeds, canonical URLs and hreflang are no links
  --to URL     links that lead to URL, also by redirects
  --from URL   links of a page, in order, each with the state of its target

The crawl may be running. The command reads crawl.log, pages.jsonl and the WARC files, without the
responses; the text of a link is in the page's record. If the WARC files have been moved, only the
first page that linked to each URL is known.

FOLDER may be a storage location with uploaded files (s3://bucket/prefix). Several FOLDERs, or one
with crawls in it, are the parts of one crawl, as its nodes store them.

With --check-external, linked URLs on hosts that the crawl has not visited are checked first: by
HEAD, and by GET if that fails, with the crawl's settings (user agent, proxy, --delay, robots.txt),
16 hosts at once, one request per host. Results are stored in external.jsonl in the crawl's folder,
and reused for seven days. So an interrupted check resumes when the command is run again.

JSON Lines (--jsonl) and CSV (--csv) have: url, status (0: no answer), error (dns, timeout, loop,
...; for excluded URLs the rule), redirects (the last is the final target), from, kind (a, img,
redirect, ...), text. With --redirects: url, links, redirects (their number), end, status, error,
broken, steps. With --orphans: url, status, error, redirects, sitemap.

Memory is bounded: some hundred bytes for each URL that failed or redirects, up to 4 million. Links
are sorted on disk, in --temp.`

type linksOptions struct {
	to, from                   string
	broken, redirects, orphans bool
	csv, jsonl                 bool
	external, quiet            bool
	most                       int
	temp                       string
	found                      int64
}

func linksCommand() *cobra.Command {
	o := &linksOptions{}
	cmd := &cobra.Command{Use: "links --broken|--redirects|--orphans|--to URL|--from URL FOLDER...",
		Short: "List links between pages, broken links, redirects and orphans",
		Long:  linksCommandLong,
		Example: "  kumo links --broken crawls/example.com\n  kumo links --redirects crawls/example.com\n" +
			"  kumo links --to https://example.com/gone crawls/example.com\n" +
			"  kumo links --broken --check-external --csv crawls/example.com > broken.csv",
		Args: someFolders,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) }}
	f := cmd.Flags()
	f.BoolVar(&o.broken, "broken", false, "links that lead to an error, to nothing or round in circles")
	f.BoolVar(&o.redirects, "redirects", false, "redirect chains with the status of each step and their end")
	f.BoolVar(&o.orphans, "orphans", false, "URLs in sitemaps that no page links to")
	f.StringVar(&o.to, "to", "", "links that lead to `URL`")
	f.StringVar(&o.from, "from", "", "links of the page `URL`")
	f.BoolVar(&o.csv, "csv", false, "print CSV for spreadsheets")
	f.BoolVar(&o.jsonl, "jsonl", false, "print JSON, one line for each link")
	f.BoolVar(&o.external, "check-external", false,
		"check linked URLs on hosts that the crawl has not visited")
	f.VarP(newLimitFlag(&o.most, 10_000), "external-limit", "",
		"maximum number of URLs to check; the rest is left for the next run")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "do not show progress")
	f.StringVar(&o.temp, "temp", "", "sort in this `FOLDER` (default: the system's temporary folder)")
	return orOut(cmd)
}

func (o *linksOptions) run(cmd *cobra.Command, dirs []string) (err error) {
	asked := 0
	for _, is := range []bool{o.broken, o.redirects, o.orphans, o.to != "", o.from != ""} {
		if is {
			asked++
		}
	}
	switch {
	case asked != 1:
		return usagef("give one of --broken, --redirects, --orphans, --to URL and --from URL")
	case o.csv && o.jsonl:
		return usagef("--csv or --jsonl: give only one of them")
	}
	for _, url := range []*string{&o.to, &o.from} {
		if *url != "" {
			if *url, err = urlArg(*url); err != nil {
				return err
			}
		}
	}
	src, err := uploads.OpenSources(cmd.Context(), dirs...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(src.WithName(err), src.Close()) }()
	if src.Remote && o.external {
		return usagef("--check-external stores results in the crawl's folder: name one folder, and no storage location")
	}
	dir := src.Dir
	if _, err := savedIn(dir); err != nil {
		return err
	}
	of, err := savedOptions(cmd.Context(), dir)
	if err != nil {
		return err
	}
	cfg := links.Config{Dir: dir, Disk: src.Disk, Temp: o.temp, Canon: of.Job.Crawl.Canon}
	line := delayedLine(os.Stderr, !o.quiet)
	if line.w != nil {
		cfg.Progress = func(p links.Progress) {
			if p.Step == "other sites" {
				line.show("%s: %d of %d URLs", p.Step, p.Done, p.Total)
			} else {
				line.show("%s: %d of %d MB", p.Step, p.Done>>20, p.Total>>20)
			}
		}
	}
	f, err := links.Open(cmd.Context(), cfg)
	if err != nil {
		line.clear()
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if o.external {
		if err = checkProxies(of.Proxies); err == nil {
			err = o.check(cmd, f, &of.Job)
		}
	}
	if err == nil {
		err = o.answer(cmd, f, line.clear)
	}
	line.clear()
	for _, note := range f.Notes() {
		fmt.Fprintln(cmd.ErrOrStderr(), "kumo:", note)
	}
	return err
}

// urlArg returns a URL in the canonical form of the crawl.
func urlArg(arg string) (string, error) {
	raw := arg
	if !strings.Contains(raw, "://") {
		raw = "https://" + raw
	}
	u, err := weburl.Parse(raw)
	if err != nil || !u.IsHTTP() {
		return "", usagef("%q is not a URL of a page", arg)
	}
	return u.Canonical().String(), nil
}

func (o *linksOptions) check(cmd *cobra.Command, f *links.Finder, j *job.Job) error {
	done, err := f.CheckExternal(cmd.Context(), links.Checker{Fetch: j.FetchConfig(), Agent: job.Agent,
		Robots: !j.Crawl.IgnoreRobots, Delay: j.Frontier.Delay, MaxDelay: j.Frontier.MaxDelay, MaxURLs: o.most,
		Concurrency: 16})
	if !o.quiet && err == nil {
		left := ""
		if done.Remaining > 0 {
			left = fmt.Sprintf("; %s left for the next run", stats.Grouped(done.Remaining))
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "kumo: %s of other sites checked%s\n", stats.Count(done.Checked, "URLs"), left)
	}
	return err
}

func (o *linksOptions) answer(cmd *cobra.Command, f *links.Finder, clear func()) error {
	w, as, ctx := cmd.OutOrStdout(), o.format(), cmd.Context()
	var err error
	switch {
	case o.broken:
		err = printAll(o, text.NewLinkPrinter(w, as), clear, func(tell func(*links.Link) error) error {
			return f.Broken(ctx, tell)
		})
	case o.redirects:
		err = printAll(o, text.NewChainPrinter(w, as), clear, func(tell func(*links.Chain) error) error {
			return f.Redirects(ctx, tell)
		})
	case o.orphans:
		err = printAll(o, text.NewOrphanPrinter(w, as), clear, func(tell func(*links.Orphan) error) error {
			return f.Orphans(ctx, tell)
		})
	case o.to != "":
		err = printAll(o, text.NewLinkPrinter(w, as), clear, func(tell func(*links.Link) error) error {
			return f.To(ctx, o.to, tell)
		})
	default:
		err = printAll(o, text.NewLinkPrinter(w, as), clear, func(tell func(*links.Link) error) error {
			return f.From(ctx, o.from, tell)
		})
	}
	if err != nil || o.found > 0 {
		return err
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "kumo:", o.nothing())
	return nil
}

// printAll prints what list returns, and counts it.
func printAll[T any](o *linksOptions, out text.Printer[T], clear func(), list func(func(*T) error) error) error {
	err := list(func(v *T) error {
		clear()
		o.found++
		return out.Print(v)
	})
	clear()
	return errors.Join(err, out.End())
}

// nothing returns the message for an empty list.
func (o *linksOptions) nothing() string {
	switch {
	case o.broken:
		return "no link is broken"
	case o.redirects:
		return "no URL redirects"
	case o.orphans:
		return "no orphans: a page links to each URL of the sitemaps, or the crawl has no sitemap"
	case o.to != "":
		return "no page links to " + o.to
	}
	return "the crawl's records have no page " + o.from + " with links"
}

func (o *linksOptions) format() text.LinkFormat {
	switch {
	case o.jsonl:
		return text.LinksJSON
	case o.csv:
		return text.LinksCSV
	case o.from != "":
		return text.LinkLines
	}
	return text.LinksByURL
}
