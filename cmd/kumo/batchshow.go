package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"kumo/internal/app/wire/places"
	"kumo/internal/archive/place"
	"kumo/internal/batch"
	"kumo/internal/batch/inspect"
	"kumo/internal/view/text/batches"
)

const batchShowLong = `Show the collections in PLACE; the days of a COLLECTION, given by code or directory; the pages
of a DAY (2026-11-21, or "last"); or the state of a URL on that day.

For a day, the pages in the collection's language are listed, ordered by URL; with --other, those in
other languages. --find lists only pages that contain a text in their URL, headline or main text,
ignoring case.

For a URL, its XML record is shown. Without a record on that day, its state is shown: unchanged, a
redirect, an error, or excluded by a rule. A URL that was not requested has a reason, too, if the
rules of that day exclude it: scope, include, exclude, depth. --xml, --text, --headers and --body
print one part unchanged: the record, the main text, the request and the response headers, the
decoded response body.

On a terminal, control characters, invisible characters, and characters that change the text
direction are shown as \u{1b}.`

const batchShowExample = `  kumo batch show /data/news
  kumo batch show /data/news ja
  kumo batch show /data/news ja last --limit 20 --offset 40
  kumo batch show /data/news ja 2026-11-21 --find 東京
  kumo batch show /data/news ja last --round 1
  kumo batch show /data/news ja last https://www.example.jp/
  kumo batch show /data/news ja last https://www.example.jp/ --xml | xmllint --format -`

type batchShowOptions struct {
	batches.Show
	round int // -1: none
}

func batchShowCommand() *cobra.Command {
	o := &batchShowOptions{}
	cmd := &cobra.Command{Use: "show PLACE [COLLECTION [DAY [URL]]]",
		Short: "Show collections, days and records of batch crawls", Long: batchShowLong, Example: batchShowExample,
		Args: usageArgs(cobra.RangeArgs(1, 4)), DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) }}
	f := cmd.Flags()
	f.BoolVar(&o.Other, "other", false, "with a DAY: list pages in other languages")
	f.StringVar(&o.Find, "find", "", "with a DAY: only pages that contain `TEXT`")
	f.Var(newLimitFlag(&o.Limit, 50), "limit", "with a DAY: number of pages to list; 0 for all")
	f.Var(newLimitFlag(&o.Offset, 0), "offset", "with a DAY: number of pages to skip")
	f.IntVar(&o.round, "round", -1, "with a DAY: list the URLs that round `N` had to fetch, one a line; 0 has the seeds")
	f.BoolVar(&o.XML, "xml", false, "with a URL: print its XML record")
	f.BoolVar(&o.Text, "text", false, "with a URL: print the main text")
	f.BoolVar(&o.Headers, "headers", false, "with a URL: print the request and the response headers")
	f.BoolVar(&o.Body, "body", false, "with a URL: print the response body")
	f.BoolVar(&o.JSON, "json", false, "print JSON, one object per line")
	f.SortFlags = false
	return cmd
}

func (o *batchShowOptions) check(args []string) error {
	parts := 0
	for _, on := range []bool{o.XML, o.Text, o.Headers, o.Body} {
		if on {
			parts++
		}
	}
	switch {
	case parts > 1 || parts > 0 && o.JSON:
		return usagef("--xml, --text, --headers, --body, --json: give only one of them")
	case parts > 0 && len(args) < 4:
		return usagef("--xml, --text, --headers and --body need a URL: give PLACE COLLECTION DAY URL")
	case o.round >= 0 && (len(args) != 3 || o.Other || o.Find != "" || o.Offset > 0):
		return usagef("--round needs a day, and no filter of pages: give PLACE COLLECTION DAY")
	case len(args) != 3 && (o.Other || o.Find != "" || o.Offset > 0):
		return usagef("--other, --find and --offset need a day: give PLACE COLLECTION DAY")
	}
	return nil
}

func (o *batchShowOptions) run(cmd *cobra.Command, args []string) error {
	if err := o.check(args); err != nil {
		return err
	}
	ctx, w := cmd.Context(), cmd.OutOrStdout()
	_, all, err := openCollections(cmd, args[0])
	if err != nil {
		return err
	}
	if len(args) == 1 {
		return o.Collections(ctx, w, all)
	}
	c, err := findCollection(all, args[1])
	if err != nil {
		return err
	}
	if len(args) == 2 {
		return o.Days(ctx, w, c)
	}
	date := args[2]
	if date == "last" {
		date = c.LastDate()
	}
	if err := batch.CheckDate(date); err != nil {
		return usagef("%w, or \"last\"", err)
	}
	day, err := c.Day(ctx, date)
	if errors.Is(err, fs.ErrNotExist) {
		return usagef("collection %s has no day %s; its days are %s", c.Code, date, daysOf(c))
	}
	if err != nil {
		return err
	}
	if o.round >= 0 {
		return o.URLs(ctx, w, c, date, o.round)
	}
	if len(args) == 3 {
		return o.Pages(ctx, w, cmd.ErrOrStderr(), c, day)
	}
	o.Terminal = isTerminal(w)
	return o.URL(ctx, w, c, date, args[3])
}

// openCollections opens a storage location and lists its collections. It prints a warning for collections that it
// cannot read.
func openCollections(cmd *cobra.Command, name string) (place.Place, []*inspect.Collection, error) {
	at, err := places.Open(cmd.Context(), name)
	if err != nil {
		return nil, nil, err
	}
	all, err := inspect.Collections(cmd.Context(), at)
	switch {
	case err != nil && len(all) == 0:
		return nil, nil, err
	case err != nil:
		fmt.Fprintf(cmd.ErrOrStderr(), "kumo: skipped: %v\n", err)
	case len(all) == 0:
		return nil, nil, usagef("%s: there is no batch crawl", name)
	}
	return at, all, nil
}

func daysOf(c *inspect.Collection) string {
	if len(c.Dates) > 5 {
		return fmt.Sprintf("%s to %s", c.Dates[0], c.LastDate())
	}
	return strings.Join(c.Dates, ", ")
}
