package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kumo/internal/app/admin"
	"kumo/internal/app/folder"
	"kumo/internal/app/nodequery"
	"kumo/internal/app/wire/cluster"
	"kumo/internal/app/wire/places"
	"kumo/internal/app/wire/uploads"
	"kumo/internal/archive/fulltext"
	"kumo/internal/base/advice"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/view/text"
	"kumo/internal/view/web/ui"
)

const searchLong = `Search the pages of a crawl in its full-text index, best matches first. The crawl may be running.

kumo crawl --index builds the index; kumo index does so after a crawl. With --crawl, all running
nodes of a cluster search their indexes (kumo node --index). Several folders, or one with crawls in
it, are searched as one: a URL that several contain is listed once, as last visited; their scores
are comparable if words are about as frequent in each. A query has:

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
	clusterFlags
	out                           []string
	host, lang, status, kind, day string
	limit, skip                   int
	timeout                       time.Duration
	json                          bool
}

func searchCommand() *cobra.Command {
	o := &searchOptions{}
	cmd := &cobra.Command{Use: "search (-o FOLDER | --crawl NAME) QUERY...", Short: "Search the pages of a crawl",
		Long: searchLong,
		Example: "  kumo search -o crawls/example.com 'green tea -shop lang:en'\n" +
			"  kumo search -o crawls/news-a -o crawls/news-b 'green tea'\n" +
			"  kumo search -o crawls/example.com --status 404 --json --limit 100\n" +
			"  kumo search --crawl news --join a.internal:7070 'green tea'",
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), strings.Join(args, " "))
		}}
	f := cmd.Flags()
	f.StringArrayVarP(&o.out, "out", "o", nil, "the crawl's `FOLDER`; repeatable for the nodes' folders, or their parent")
	o.bind(f, joinUsage)
	f.Lookup("crawl").Usage = "a crawl of several nodes, by its `NAME`"
	f.StringVar(&o.lang, "lang", "", "only pages in this `LANGUAGE`")
	f.StringVar(&o.status, "status", "", "only pages with this `STATUS`: 404, or 4xx")
	f.StringVar(&o.kind, "type", "", "only pages of this media `TYPE`: text/html, or image")
	f.StringVar(&o.host, "host", "", "only pages of this `HOST` and its subdomains")
	f.StringVar(&o.day, "day", "", "only pages visited on this `DAY`: 2026-11-26, 2026-11 or 2026")
	f.IntVar(&o.limit, "limit", 10, "print the `N` best pages")
	f.IntVar(&o.skip, "skip", 0, "skip the first `N`")
	durationVar(f, &o.timeout, "wait", 5*time.Second, "maximum time for a search")
	f.BoolVar(&o.json, "json", false, "print JSON, one line for each page")
	f.SortFlags = false
	return cmd
}

type searchFilter struct{ field, value string }

// filters returns the filters given as flags.
func (o *searchOptions) filters() []searchFilter {
	all := []searchFilter{{"host", o.host}, {"lang", o.lang}, {"status", o.status}, {"type", o.kind}, {"day", o.day}}
	return slices.DeleteFunc(all, func(f searchFilter) bool { return f.value == "" })
}

// withFilters adds the filters given as flags to the text of a query.
func (o *searchOptions) withFilters(text string) string {
	for _, f := range o.filters() {
		text += fmt.Sprintf(` %s:"%s"`, f.field, f.value) // quoted, because there may be spaces between values
	}
	return text
}

func (o *searchOptions) query(text string) (q fulltext.Query, err error) {
	if q, err = fulltext.Parse(text); err != nil {
		return q, usagef("%w", err)
	}
	for _, f := range o.filters() {
		if strings.Contains(f.value, `"`) {
			return q, usagef("--%s: the value contains a quotation mark", f.field)
		}
		if err := q.Filter(f.field, f.value, false); err != nil {
			return q, usagef("--%w", err)
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
	switch {
	case (len(o.out) == 0) == (o.crawl == ""):
		return usagef("which crawl? name its folder with --out, or the crawl of several nodes with --crawl")
	case o.crawl != "":
		return o.searchNodes(ctx, out, errs, text)
	}
	q, err := o.query(text)
	if err != nil {
		return err
	}
	for _, dir := range o.out {
		if places.IsURL(dir) {
			return usagef("%s is a storage location; an index is in a folder of this machine", dir)
		}
	}
	dirs, err := uploads.Parts(ctx, o.out...)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	found := nodequery.Found{}
	for _, dir := range dirs {
		if err := o.searchFolder(ctx, &found, q, dir, len(dirs) > 1); err != nil {
			return indexAdvice(err, dir)
		}
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case len(found.NoIndex) == len(dirs):
		return advice.With(fmt.Errorf("%s: %w", strings.Join(o.out, ", "), fulltext.ErrNoIndex),
			"kumo index FOLDER makes one, for each folder; kumo crawl --index does while it crawls")
	}
	found.Merge(o.skip, o.limit)
	if err := o.print(out, found.Hits); err != nil {
		return err
	}
	if !o.json {
		fmt.Fprintf(errs, "kumo: %s of %s pages match\n", stats.Grouped(found.Total), stats.Grouped(found.Docs))
		for _, why := range found.Missing {
			fmt.Fprintf(errs, "kumo: %s\n", why)
		}
	}
	for _, dir := range found.NoIndex {
		fmt.Fprintf(errs, "kumo: incomplete: %s has no index: run kumo index %[1]s\n", dir)
	}
	return nil
}

// searchFolder adds the best matches in a folder; several: it is not the only one, and need not have an index.
func (o *searchOptions) searchFolder(ctx context.Context, all *nodequery.Found, q fulltext.Query, dir string,
	several bool) error {
	if err := folder.CheckFormat(dir); err != nil {
		return err
	}
	r, err := fulltext.OpenReader(vfs.OS, filepath.Join(dir, folder.IndexDir))
	if errors.Is(err, fulltext.ErrNoIndex) && several {
		all.NoIndex = append(all.NoIndex, dir)
		return nil
	}
	if err != nil {
		return err
	}
	defer r.Close()
	found, err := r.Search(ctx, q, 0, o.skip+o.limit)
	if err != nil {
		return err
	}
	for i := range found.Hits {
		all.Hits = append(all.Hits, nodequery.NewHit(&found.Hits[i]))
	}
	docs, _ := r.Docs()
	all.Total, all.Docs = all.Total+found.Total, all.Docs+docs
	if found.Cut != "" {
		why := found.Cut
		if several {
			why = dir + ": " + why
		}
		all.Missing = append(all.Missing, why)
	}
	return nil
}

// searchNodes searches the indexes of all nodes of a cluster.
func (o *searchOptions) searchNodes(ctx context.Context, out, errs io.Writer, text string) error {
	if _, err := o.query(text); err != nil {
		return err
	}
	text = o.withFilters(text)
	if _, err := fulltext.Parse(text); err != nil { // with the filters it may be too long
		return usagef("%w", err)
	}
	o.wait = clusterWait + o.timeout
	var found *nodequery.Found
	err := o.control(ctx, errs, func(ctx context.Context, control admin.Client) (err error) {
		found, err = control.Search(ctx, nodequery.Search{Text: text, Hits: o.skip + o.limit, Timeout: o.timeout})
		return cluster.Advise(err)
	})
	if err != nil {
		return err
	}
	found.Merge(o.skip, o.limit)
	switch {
	case len(found.NoIndex) > 0 && found.Docs == 0:
		return advice.With(fmt.Errorf("search %s: no node has a full-text index", o.crawl),
			"start the nodes with --index")
	case len(found.Missing) == 0 && found.Docs == 0 && len(found.NoIndex) == 0:
		return advice.With(fmt.Errorf("search %s: no node takes part in the crawl", o.crawl),
			"start the nodes and the crawl, or search a node's folder: kumo search -o FOLDER")
	}
	if err := o.print(out, found.Hits); err != nil {
		return err
	}
	if !o.json {
		fmt.Fprintf(errs, "kumo: %s of %s pages match\n", stats.Grouped(found.Total), stats.Grouped(found.Docs))
	}
	for _, name := range found.NoIndex {
		found.Missing = append(found.Missing, "node "+name+" has no index: start it with --index")
	}
	for _, why := range found.Missing {
		fmt.Fprintf(errs, "kumo: incomplete: %s\n", why)
	}
	return nil
}

// print prints hits for people, or with --json as lines of JSON.
func (o *searchOptions) print(out io.Writer, hits []nodequery.Hit) error {
	bold := out == io.Writer(os.Stdout) && draws(os.Stdout)
	for i := range hits {
		h := &hits[i]
		if o.json {
			if err := text.JSON(out, h); err != nil {
				return err
			}
			continue
		}
		title := ui.Plain(h.Title, false)
		if title == "" {
			title = "(no title)"
		}
		fmt.Fprintf(out, "%s\n  %s\n", title, ui.Plain(h.URL, false))
		if s := marked(h.Snippet, bold); s != "" {
			fmt.Fprintf(out, "  %s\n", s)
		}
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
