package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"kumo/internal/app/setting"
	"kumo/internal/app/wire/uploads"
	"kumo/internal/archive/audit"
	"kumo/internal/archive/links"
	"kumo/internal/view/text"
)

const auditLong = `Check the pages and links in the crawl in FOLDER, and print the number of problems. With --out, each
table is also written to DIR as a CSV file:

  broken        links that lead to an error, to nothing or round in circles
  redirects     redirect chains: links to the first URL, the status of each step, and the end
  orphans       URLs in sitemaps that no page links to
  titles        missing, long, or repeated on the host; descriptions likewise
  canonical     canonical URLs that lead to an error, a redirect, another host, a page with another
                canonical URL (chain) or a page with noindex
  hreflang      invalid codes, targets that fail or redirect, targets and pages without a link back
                or to themselves
  directives    pages with noindex or nofollow, also by X-Robots-Tag
  duplicates    pages with the same content, without its compression
  slow, large   URLs beyond --slow and --large, the worst first
  insecure      http links on https pages
  sitemaps      entries of sitemaps that redirect or fail
  pages         all URLs with a response: status, titles, hreflang, directives, from, response
                times, and inlinks: the number of links to them from other pages

Pages are HTML with status 200. Pages with noindex or another canonical URL are not checked for
titles, descriptions and duplicates. The newest visit of each URL counts.

In CSV, values that spreadsheets would treat as formulas start with '. The same command replaces the
files of an earlier audit; a folder with other files is refused.

The crawl may be running. The command reads pages.jsonl, crawl.log, and the metadata in the WARC
files; without WARC files there are no orphans, insecure, sitemaps and inlinks. FOLDER may be a storage
location (s3://bucket/prefix). It takes up to 450 MB of memory, and some hundred bytes more for each
URL that failed or redirects, up to 4 million; the rest is sorted on disk, in --temp.`

type auditOptions struct {
	dir, temp   string
	json, quiet bool
	limits      audit.Limits
}

func auditCommand() *cobra.Command {
	o := &auditOptions{limits: audit.Defaults}
	cmd := &cobra.Command{Use: "audit FOLDER", Short: "Report the problems of a crawl's sites, also as CSV files",
		Long: auditLong,
		Example: "  kumo audit crawls/example.com\n  kumo audit crawls/example.com --out tables\n" +
			"  kumo audit crawls/example.com --slow 500ms --json",
		Args: oneFolder,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) }}
	f := cmd.Flags()
	f.StringVarP(&o.dir, "out", "o", "", "write a CSV file for each table to `DIR`")
	f.Lookup("out").Annotations = map[string][]string{noVariable: {"true"}} // KUMO_OUT is the folder of a crawl
	f.BoolVar(&o.json, "json", false, "print the summary as JSON")
	durationVar(f, &o.limits.Slow, "slow", o.limits.Slow, "report URLs whose response took longer")
	f.Var(setting.Size(&o.limits.Large), "large", "report URLs with a larger body, as transferred")
	f.VarP(newLimitFlag(&o.limits.Title, o.limits.Title), "max-title", "", "report longer titles, in characters")
	f.VarP(newLimitFlag(&o.limits.Description, o.limits.Description), "max-description", "",
		"report longer descriptions, in characters")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "do not show progress")
	f.StringVar(&o.temp, "temp", "", "sort in this `FOLDER` (default: the system's temporary folder)")
	return cmd
}

func (o *auditOptions) run(cmd *cobra.Command, dir string) (err error) {
	ctx := cmd.Context()
	src, err := uploads.OpenSource(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(src.WithName(err), src.Close()) }()
	if _, err := savedIn(src.Dir); err != nil {
		return err
	}
	j, err := savedJob(ctx, src.Dir)
	if err != nil {
		return err
	}
	cfg := links.Config{Dir: src.Dir, Disk: src.Disk, Temp: o.temp, Canon: j.Crawl.Canon}
	line := delayedLine(os.Stderr, !o.quiet)
	defer line.clear()
	if line.w != nil {
		cfg.Progress = func(p links.Progress) { line.show("%s: %d of %d MB", p.Step, p.Done>>20, p.Total>>20) }
	}
	f, err := links.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	summary, err := audit.WriteCSV(ctx, f, o.dir, o.temp, o.limits)
	if err != nil {
		return fmt.Errorf("audit %s: %w", dir, err)
	}
	line.clear()
	if o.json {
		return text.JSON(cmd.OutOrStdout(), summary)
	}
	if err := text.Audit(cmd.OutOrStdout(), summary, o.dir); err != nil {
		return err
	}
	for _, note := range summary.Notes {
		fmt.Fprintln(cmd.ErrOrStderr(), "kumo:", note)
	}
	return nil
}
