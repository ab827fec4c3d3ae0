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
	"kumo/internal/app/wire/places"
	"kumo/internal/archive/fulltext"
	"kumo/internal/base/advice"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/view/text"
	"kumo/internal/view/web/ui"
)

const searchLong = `Search the pages of a crawl in its full-text index, best matches first. The crawl may be running.

kumo crawl --index builds the index; kumo index does so after a crawl. A query has:

  words            a page must contain all of them, in any inflection: house finds houses
  "words in a row" a phrase
  -word, -"phrase" must not occur
  host:example.com pages of this host and its subdomains
  lang:en          in this language            status:404, status:4xx   with this status
  type:text/html   of this media type          type:text                with this prefix
  day:2026-11-26   visited on this day; day:2026-11 or day:2026 in this month or year

A filter may have several values, separated by commas, of which one must match (lang:de,fr). A - in
front of a filter excludes pages. The flags do the same as filters. * and ? have no special meaning.
A search takes at most --wait, and then prints the best matches so far.`

type searchOptions struct {
	out                           string
	host, lang, status, kind, day string
	limit, skip                   int
	wait                          time.Duration
	json                          bool
}

func searchCommand() *cobra.Command {
	o := &searchOptions{}
	cmd := &cobra.Command{Use: "search -o FOLDER QUERY...", Short: "Search the pages of a crawl",
		Long: searchLong,
		Example: "  kumo search -o crawls/example.com 'green tea -shop lang:en'\n" +
			"  kumo search -o crawls/example.com --status 404 --json --limit 100",
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), strings.Join(args, " "))
		}}
	f := cmd.Flags()
	f.StringVarP(&o.out, "out", "o", "", "the crawl's `FOLDER`")
	f.StringVar(&o.lang, "lang", "", "only pages in this `LANGUAGE`")
	f.StringVar(&o.status, "status", "", "only pages with this `STATUS`: 404, or 4xx")
	f.StringVar(&o.kind, "type", "", "only pages of this media `TYPE`: text/html, or image")
	f.StringVar(&o.host, "host", "", "only pages of this `HOST` and its subdomains")
	f.StringVar(&o.day, "day", "", "only pages visited on this `DAY`: 2026-11-26, 2026-11 or 2026")
	f.IntVar(&o.limit, "limit", 10, "print the `N` best pages")
	f.IntVar(&o.skip, "skip", 0, "skip the first `N`")
	durationVar(f, &o.wait, "wait", 5*time.Second, "maximum time for a search")
	f.BoolVar(&o.json, "json", false, "print JSON, one line for each page")
	f.SortFlags = false
	return cmd
}

func (o *searchOptions) query(text string) (q fulltext.Query, err error) {
	if q, err = fulltext.Parse(text); err != nil {
		return q, usagef("%w", err)
	}
	for _, f := range []struct{ field, value string }{{"host", o.host}, {"lang", o.lang}, {"status", o.status},
		{"type", o.kind}, {"day", o.day}} {
		if f.value != "" {
			if err := q.Filter(f.field, f.value, false); err != nil {
				return q, usagef("--%w", err)
			}
		}
	}
	if err := q.Check(); err != nil {
		return q, usagef("%w", err)
	}
	if o.limit < 1 || o.skip < 0 || o.limit > fulltext.MaxHits || o.skip > fulltext.MaxHits-o.limit {
		return q, usagef("--limit and --skip: only the first %d can be had", fulltext.MaxHits)
	}
	return q, nil
}

func (o *searchOptions) run(ctx context.Context, out, errs io.Writer, text string) error {
	if o.out == "" {
		return usagef("which crawl? name its folder with --out")
	}
	if places.IsURL(o.out) {
		return usagef("%s is a storage location; an index is in a folder of this machine", o.out)
	}
	q, err := o.query(text)
	if err != nil {
		return err
	}
	if err := folder.CheckFormat(o.out); err != nil {
		return err
	}
	if f := folder.At(o.out, vfs.OS); !f.IsCrawl() && !f.HasOutputs() {
		return folder.NoCrawlError(o.out)
	}
	r, err := fulltext.OpenReader(vfs.OS, filepath.Join(o.out, folder.IndexDir))
	if err != nil {
		return indexAdvice(err, o.out)
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(ctx, o.wait)
	defer cancel()
	found, err := r.Search(ctx, q, o.skip, o.limit)
	if err != nil {
		return indexAdvice(err, o.out)
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	if o.json {
		return printHits(out, found)
	}
	bold := out == io.Writer(os.Stdout) && draws(os.Stdout)
	for i := range found.Hits {
		h := &found.Hits[i]
		title := ui.Plain(h.Title, false)
		if title == "" {
			title = "(no title)"
		}
		fmt.Fprintf(out, "%s\n  %s\n", title, ui.Plain(h.URL, false))
		if s := marked(h.Snippet, bold); s != "" {
			fmt.Fprintf(out, "  %s\n", s)
		}
	}
	docs, _ := r.Docs()
	fmt.Fprintf(errs, "kumo: %s of %s pages match\n", stats.Grouped(found.Total), stats.Grouped(docs))
	if found.Cut != "" {
		fmt.Fprintf(errs, "kumo: %s\n", found.Cut)
	}
	return nil
}

func indexAdvice(err error, dir string) error {
	switch {
	case errors.Is(err, fulltext.ErrNoIndex):
		return advice.With(fmt.Errorf("%s: %w", dir, err), "kumo index "+dir+
			" makes one; kumo crawl --index does while it crawls")
	case fulltext.IsDamaged(err):
		return advice.With(fmt.Errorf("%s: %w", dir, err), "kumo index --anew "+dir+" makes it anew")
	}
	return err
}

// marked returns a snippet in which the matches are highlighted.
func marked(pieces []fulltext.Piece, bold bool) string {
	var b strings.Builder
	for _, p := range pieces {
		switch text := ui.Plain(p.Text, false); {
		case p.Match && bold:
			b.WriteString("\x1b[1m" + text + "\x1b[0m")
		case p.Match:
			b.WriteString("*" + text + "*")
		default:
			b.WriteString(text)
		}
	}
	return strings.TrimSpace(b.String())
}

type hitRecord struct {
	URL     string           `json:"url"`
	Title   string           `json:"title,omitempty"`
	Status  int              `json:"status"`
	Time    time.Time        `json:"time"`
	Type    string           `json:"type,omitempty"`
	Lang    string           `json:"lang,omitempty"`
	Score   float64          `json:"score"`
	Snippet []fulltext.Piece `json:"snippet,omitempty"`
}

func printHits(out io.Writer, found *fulltext.Result) error {
	for i := range found.Hits {
		h := &found.Hits[i]
		if err := text.JSON(out, hitRecord{h.URL, h.Title, h.Status, h.Time, h.Type, h.Lang, h.Score, h.Snippet}); err != nil {
			return err
		}
	}
	return nil
}
