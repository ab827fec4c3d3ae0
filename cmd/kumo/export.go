package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kumo/internal/app/folder"
	"kumo/internal/app/setting"
	"kumo/internal/app/wire/exports"
	"kumo/internal/app/wire/sinks"
	"kumo/internal/app/wire/uploads"
	"kumo/internal/archive/export"
	"kumo/internal/base/stats"
)

const exportLong = `Export the crawl in CRAWL to the folder PLACE in another format. For each URL, the newest successful
response is exported. Several CRAWLs, or a folder with crawls in it, are the parts of one crawl, as
its nodes store them.

  site      files for a browser without a server, one folder per host. Links between them are
            relative; other bytes and the charset are unchanged. Links to pages outside the crawl,
            and targets of forms, still lead to the web. PLACE/index.html links to the seeds.
            Scripts are unchanged, and fetch from the web
  jsonl     pages.jsonl, one object per URL: url, status, time, type, charset, lang, title, h1,
            description, canonical, bytes, digest, links (their number), redirect, truncated, host,
            depth, noindex
  csv       pages.csv, the same in columns; values that spreadsheets would treat as formulas start
            with '
  parquet   pages.parquet, links.parquet and texts.parquet, compressed with zstd, for DuckDB, pandas
            and similar programs
  markdown  one file per page, HOST/PATH.md: metadata (url, title, date, language, author, kind) and
            main text with headings, lists, tables, code and links
  wacz      crawl.wacz: WARC files, index and pages in one file, for ReplayWeb.page and pywb. If
            PLACE ends with .wacz, it is that file
  cdxj      index.cdxj: the merged and sorted indexes of all WARC files, for pywb
  links     nodes.tsv, numbered URLs, and edges.tsv, their links: for kumo sim rank --graph PLACE
  sitemap   SCHEME/HOST/sitemap.xml: the indexable pages of a host, for search engines

--to with a URL sends records to a server. A record has the fields of jsonl, the main text, and the
record extracted by --fields. The page's URL is its ID, so repeated exports create no duplicates, and
older records never replace newer ones:

  postgres://USER@HOST:PORT/DATABASE?table=TABLE    rows of a table, created if missing
  opensearch://USER@HOST:9200/INDEX                 documents of an index, also of Elasticsearch;
                                                    opensearch+https:// for TLS
  kafka://HOST:9092/TOPIC                           messages with the URL as key; kafka+tls:// for TLS
  hbase://HOST:8080/TABLE                           rows of a table, by HBase's REST gateway;
                                                    hbase+https:// for TLS
  -                                                 standard output: JSON Lines, for a pipe

Put passwords in PGPASSWORD or KUMO_SINK_PASSWORD rather than in the URL. See
docs/reference/sinks.md.

--where exports only pages that satisfy a condition on the columns of jsonl: 'status == 200 &&
host ~ "\.de$"', 'lang == "de" || depth <= 1', '!noindex && time >= "2026-11"'. Texts have the
operators == != < >, and ~ !~ for regular expressions.

A site export contains only resources in the crawl: kumo crawl --embeds fetches images and styles.
wacz and cdxj contain every visit, but with --where only the newest ones.

The same command updates PLACE, and resumes an interrupted run. A folder with files that are not
from an export is refused. The crawl must not be running. CRAWL may be a storage location
(s3://bucket/prefix). See docs/how-to/export-pages.md.`

const exportExample = `  kumo export --to site crawls/example.com example
  kumo export --to parquet --where 'status == 200' crawls/example.com tables
  kumo export --to markdown --where 'lang == "de"' crawls/example.com texts
  kumo export --to wacz crawls/example.com example.wacz
  kumo export --to 'postgres://me@db/web?table=pages' crawls/example.com
  kumo export --to - crawls/example.com | jq .title
  kumo export --to parquet s3://bucket/news tables
  kumo export --to csv crawls/news-a crawls/news-b tables`

type exportOptions struct {
	form, where, temp string
	quiet             bool
	documents         documentsFlag
}

func exportCommand() *cobra.Command {
	o := &exportOptions{}
	cmd := &cobra.Command{Use: "export --to FORM CRAWL... PLACE\n  kumo export --to SINK CRAWL", Long: exportLong,
		Example: exportExample,
		Short:   "Export a crawl: files to browse, tables, texts, an archive",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case o.form == "":
				return usagef("export to what? --to is one of: %s; or a sink: %s://… or -", strings.Join(exports.Formats(), ", "),
					strings.Join(sinks.Schemes(), "://…, "))
			case sinks.Is(o.form) && len(args) != 1:
				return usagef("name only the crawl's folder: --to names the destination")
			case sinks.Is(o.form):
				return nil
			case len(args) < 2:
				return usagef("name the crawl's folder, and the folder to write to")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if sinks.Is(o.form) {
				return o.send(cmd.Context(), args[0], cmd.OutOrStdout())
			}
			crawls, dir := args[:len(args)-1], args[len(args)-1]
			r, err := o.run(cmd.Context(), crawls, dir)
			if err == nil && !o.quiet {
				printExport(cmd.OutOrStdout(), r, dir)
			}
			return err
		}}
	f := cmd.Flags()
	f.Var(formatOrSink{setting.Choice(&o.form, exports.Formats()), &o.form}, "to", "the export format, or a sink's URL")
	o.documents.bind(f)
	f.StringVar(&o.where, "where", "", "export only pages for which `CONDITION` is true")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print only errors")
	f.StringVar(&o.temp, "temp", "", "sort in this `FOLDER` (default: the system's temporary folder)")
	return cmd
}

func (o *exportOptions) run(ctx context.Context, names []string, dir string) (_ *export.Report, err error) {
	src, err := uploads.OpenSources(ctx, names...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(src.WithName(err), src.Close()) }()
	if err := src.Share(); err != nil {
		return nil, err
	}
	crawl := src.Dir
	saved, err := folder.ReadSettings(crawl)
	if err != nil {
		return nil, err
	}
	if len(saved) == 0 {
		return nil, folder.NoCrawlError(crawl)
	}
	j, err := savedJob(ctx, crawl)
	if err != nil {
		return nil, err
	}
	x := exports.Export{Canon: j.Crawl.Canon, Start: canonical(j.Seeds)}
	x.Format, x.Crawl, x.Dir, x.Temp, x.Disk = o.form, crawl, dir, o.temp, src.Disk
	x.Condition, x.Documents = o.where, o.documents.reader()
	show, clear := exportProgress(!o.quiet)
	x.Progress = show
	r, err := exports.Run(ctx, x)
	clear()
	return r, err
}

func printExport(w io.Writer, r *export.Report, dir string) {
	open := dir
	if r.Open != "" {
		open = filepath.Join(dir, r.Open)
	}
	fmt.Fprintf(w, "%s and %s, %s: open %s\n", stats.Count(r.Pages, "pages"), stats.Count(r.URLs-r.Pages, "other files"),
		stats.Bytes(r.Bytes), open)
	printExcluded(w, r)
}

func printExcluded(w io.Writer, r *export.Report) {
	if r.Unmatched > 0 {
		fmt.Fprintf(w, "  %s left out: --where is not true of them\n", stats.Count(r.Unmatched, "URLs"))
	}
	for _, n := range []struct {
		n    int64
		what string
	}{
		{r.Unreadable, "excluded: their records cannot be read (kumo verify lists them)"},
		{r.Lost, "excluded: the records with their bodies are missing"},
		{r.Cutoff, "incomplete: their responses were truncated"},
	} {
		if n.n > 0 {
			fmt.Fprintf(w, "  %s %s\n", stats.Count(n.n, "files"), n.what)
		}
	}
	for _, note := range r.Notes {
		fmt.Fprintf(w, "  %s\n", note)
	}
}

// A progressLine is a line on a terminal that is updated in place. It appears after a delay.
type progressLine struct {
	w     io.Writer // nil: show nothing
	after time.Time
	shown bool
}

// newProgressLine returns a line that appears at once, if it is wanted and w is a terminal.
func newProgressLine(w io.Writer, wanted bool) *progressLine {
	if !wanted || !draws(w) {
		w = nil
	}
	return &progressLine{w: w}
}

// delayedLine returns a line that appears after one second.
func delayedLine(w io.Writer, wanted bool) *progressLine {
	line := newProgressLine(w, wanted)
	line.after = time.Now().Add(time.Second)
	return line
}

func (p *progressLine) show(format string, args ...any) {
	if p.w != nil && !time.Now().Before(p.after) {
		p.shown = true
		fmt.Fprintf(p.w, "\r\x1b[K"+format, args...)
	}
}

func (p *progressLine) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	p.shown = false
}

// exportProgress shows the progress of an export. show is nil if progress is not wanted or cannot be shown.
func exportProgress(wanted bool) (show func(export.Progress), clear func()) {
	line := delayedLine(os.Stderr, wanted)
	if line.w == nil {
		return nil, line.clear
	}
	return func(p export.Progress) { line.show("%s: %d of %d URLs", p.Step, p.Done, p.Total) }, line.clear
}
