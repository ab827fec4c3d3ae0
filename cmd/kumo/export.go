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

const exportLong = `Make another form of the crawl in CRAWL, in the folder PLACE, of the newest good answer of each URL.

  site      files that a browser opens without a server, a folder a host: links between them relative, bytes as they
            came otherwise, also those of the page's charset. What is not in the crawl, and where forms are sent to,
            stays a link to the web; PLACE/index.html leads to the seeds. Scripts are kept as they are: what they fetch
            they fetch of the web
  jsonl     pages.jsonl, an object a URL: url, status, time, type, charset, lang, title, h1, description, canonical,
            bytes, digest, links (their number), redirect, truncated, host, depth, noindex
  csv       pages.csv, the same in columns; what a spreadsheet would take for a formula has a ' before it
  parquet   pages.parquet, links.parquet and texts.parquet, compressed by zstd, for DuckDB, pandas and the like
  markdown  a file a page, HOST/PATH.md: its main text with headings, lists, tables, code and links, below what is known
            of it (url, title, date, language, author)
  wacz      crawl.wacz: WARC files, index and pages in one file, which ReplayWeb.page and pywb open. If PLACE ends with
            .wacz, it is that file
  cdxj      index.cdxj: what the indexes of all WARC files say, sorted, for pywb
  links     nodes.tsv, URLs with numbers, and edges.tsv, which links to which: for kumo sim rank --graph PLACE
  sitemap   SCHEME/HOST/sitemap.xml: the pages of a host that are to be found, for search engines

--to with a URL sends records to other people's servers, each with what jsonl has, the main text and what --fields has
made of the page; the URL is its id, so that it is there once, however often it is sent, and no older one replaces a newer:

  postgres://USER@HOST:PORT/DATABASE?table=TABLE    rows of a table, which is made if it is missing
  opensearch://USER@HOST:9200/INDEX                 documents of an index, also of Elasticsearch; opensearch+https:// for TLS
  kafka://HOST:9092/TOPIC                           messages, the URL being the key; kafka+tls:// for TLS
  hbase://HOST:8080/TABLE                           rows of a table, by HBase's REST gateway; hbase+https:// for TLS
  -                                                 standard output: JSON Lines, for a pipe

Better than in the URL a password is in PGPASSWORD or KUMO_SINK_PASSWORD. docs/reference/sinks.md says more.

--where exports only pages of which a condition is true, over the columns of jsonl: 'status == 200 && host ~ "\.de$"',
'lang == "de" || depth <= 1', '!noindex && time >= "2026-11"'. Texts have == != < > and ~ !~ for regular expressions.

Of a site only what is in the crawl can be shown: kumo crawl --embeds fetches what pages are shown with. wacz and cdxj
have every visit, but with --where the newest ones alone.

The same command again brings PLACE up to date, and goes on where a run was ended. A folder that has files and was no
export's is refused. The crawl must not be running. CRAWL may be a place (s3://bucket/prefix). docs/how-to/export-pages.md says more.`

const exportExample = `  kumo export --to site crawls/example.com example
  kumo export --to parquet --where 'status == 200' crawls/example.com tables
  kumo export --to markdown --where 'lang == "de"' crawls/example.com texts
  kumo export --to wacz crawls/example.com example.wacz
  kumo export --to 'postgres://me@db/web?table=pages' crawls/example.com
  kumo export --to - crawls/example.com | jq .title
  kumo export --to parquet s3://bucket/news tables`

type exportOptions struct {
	form, where, temp string
	quiet             bool
}

func exportCommand() *cobra.Command {
	o := &exportOptions{}
	cmd := &cobra.Command{Use: "export --to FORM CRAWL PLACE\n  kumo export --to SINK CRAWL", Long: exportLong,
		Example: exportExample,
		Short:   "Make another form of a crawl: files to browse, tables, texts, an archive",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case o.form == "":
				return usagef("to what? --to is one of: %s; or a sink: %s://… or -", strings.Join(exports.Formats(), ", "),
					strings.Join(sinks.Schemes(), "://…, "))
			case sinks.Is(o.form) && len(args) != 1:
				return usagef("name the crawl's folder, and nothing else: what it is sent to is --to")
			case sinks.Is(o.form):
				return nil
			case len(args) != 2:
				return usagef("name the crawl's folder, and the one to fill")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if sinks.Is(o.form) {
				return o.send(cmd.Context(), args[0], cmd.OutOrStdout())
			}
			r, err := o.run(cmd.Context(), args[0], args[1])
			if err == nil && !o.quiet {
				printExport(cmd.OutOrStdout(), r, args[1])
			}
			return err
		}}
	f := cmd.Flags()
	f.Var(formatOrSink{setting.Choice(&o.form, exports.Formats()), &o.form}, "to", "the form to make, or the sink's URL")
	f.StringVar(&o.where, "where", "", "export only pages of which the `CONDITION` is true")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "say nothing but errors")
	f.StringVar(&o.temp, "temp", "", "sort in this `FOLDER` (default: the system's for temporary files)")
	return cmd
}

func (o *exportOptions) run(ctx context.Context, name, dir string) (_ *export.Report, err error) {
	src, err := uploads.OpenSource(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(src.WithName(err), src.Close()) }()
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
	x.Condition = o.where
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
		{r.Unreadable, "left out: their records cannot be read (kumo verify says which)"},
		{r.Lost, "left out: the records that have their bodies are not here"},
		{r.Cutoff, "not whole: their answers were cut off"},
	} {
		if n.n > 0 {
			fmt.Fprintf(w, "  %s %s\n", stats.Count(n.n, "files"), n.what)
		}
	}
	for _, note := range r.Notes {
		fmt.Fprintf(w, "  %s\n", note)
	}
}

// A progressLine is a line on a terminal that is written over, once something has taken a while.
type progressLine struct {
	w     io.Writer // nil: nothing is shown
	after time.Time
	shown bool
}

// newProgressLine is a line that is shown at once, where it is wanted and can be.
func newProgressLine(w io.Writer, wanted bool) *progressLine {
	if !wanted || !draws(w) {
		w = nil
	}
	return &progressLine{w: w}
}

// delayedLine is a line that is shown after a second.
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

// exportProgress shows how far an export is; show is nil where that is not wanted or cannot be shown.
func exportProgress(wanted bool) (show func(export.Progress), clear func()) {
	line := delayedLine(os.Stderr, wanted)
	if line.w == nil {
		return nil, line.clear
	}
	return func(p export.Progress) { line.show("%s: %d of %d URLs", p.Step, p.Done, p.Total) }, line.clear
}
