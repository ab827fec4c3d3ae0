package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"kumo/internal/app/wire/places"
	"kumo/internal/archive/export/table"
	"kumo/internal/base/stats"
	"kumo/internal/batch"
	"kumo/internal/batch/inspect"
	"kumo/internal/lab/chart"
)

const batchStatsLong = `Say what the batch crawls in PLACE (default: batch) came to: pages, sites and bytes by
collection and by day, the charsets of all pages, and the pages in other languages, which are kept apart.

  pages       in the collection's language, new or changed: those in DIR/xml
  sites       registered domains that they are of; over several days each once
  bytes       of their bodies as they were sent
  apart       pages in other languages: those in DIR/other
  unchanged   URLs that gave the same as before: what they say is in an earlier day

Days that are not done are named, and not counted.

--csv has a line for each day of each collection, with a column for each charset and each other language. --plot draws
how pages and bytes grow, collection by collection, as SVG.`

const batchStatsExample = `  kumo batch stats /data/news
  kumo batch stats --only de,ja --from 2026-11-01 --days /data/news
  kumo batch stats --csv /data/news > news.csv
  kumo batch stats --json /data/news | jq .all.pages
  kumo batch stats --plot growth.svg /data/news`

type batchStatsOptions struct {
	only            []string
	span            inspect.Span
	days, csv, json bool
	plot            string
}

func batchStatsCommand() *cobra.Command {
	o := &batchStatsOptions{}
	cmd := &cobra.Command{Use: "stats [PLACE]", Short: "Say what batch crawls came to, by language and day",
		Long: batchStatsLong, Example: batchStatsExample, Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) }}
	f := cmd.Flags()
	f.StringSliceVar(&o.only, "only", nil, "count only the collections with these `CODES`, separated by commas")
	f.StringVar(&o.span.First, "from", "", "count days from this `DAY` on, 2026-11-21")
	f.StringVar(&o.span.Last, "to", "", "count days up to this `DAY`")
	f.BoolVar(&o.days, "days", false, "list each day of each collection, too")
	f.BoolVar(&o.csv, "csv", false, "answer as CSV, a line for each day of each collection")
	f.BoolVar(&o.json, "json", false, "answer with one JSON object")
	f.StringVar(&o.plot, "plot", "", "draw the growth into this `FILE`.svg, too")
	f.SortFlags = false
	return cmd
}

// usageArgs makes errors of arguments errors of usage.
func usageArgs(args cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if err := args(cmd, given); err != nil {
			return &usage{err}
		}
		return nil
	}
}

func (o *batchStatsOptions) check() error {
	for flag, date := range map[string]string{"--from": o.span.First, "--to": o.span.Last} {
		if err := batch.CheckDate(date); date != "" && err != nil {
			return usagef("%s: %w", flag, err)
		}
	}
	switch {
	case o.csv && o.json:
		return usagef("--csv or --json: one of them is wanted")
	case o.plot != "" && !strings.EqualFold(filepath.Ext(o.plot), ".svg"):
		return usagef("--plot %s: the growth is drawn as SVG: name a file that ends in .svg", o.plot)
	}
	return nil
}

func (o *batchStatsOptions) run(cmd *cobra.Command, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	name := defaultBatchPlace
	if len(args) > 0 {
		name = args[0]
	}
	at, err := places.Open(cmd.Context(), name)
	if err != nil {
		return err
	}
	all, err := heldIn(cmd, at, name)
	if err != nil {
		return err
	}
	if all, err = onlyHeld(all, o.only); err != nil {
		return err
	}
	t, err := inspect.Stats(cmd.Context(), all, o.span)
	if err != nil {
		return err
	}
	if o.plot != "" {
		if err := os.WriteFile(o.plot, growth(t), 0o666); err != nil {
			return err
		}
	}
	err = o.write(cmd.OutOrStdout(), t)
	for _, what := range t.Damaged {
		err = errors.Join(err, fmt.Errorf("not counted: %s", what))
	}
	return err
}

func (o *batchStatsOptions) write(w io.Writer, t *inspect.Table) error {
	switch {
	case o.json:
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(t)
	case o.csv:
		return writeCSV(w, t)
	default:
		return o.print(w, t)
	}
}

const defaultBatchPlace = "batch"

// onlyHeld are the collections with some codes; all without.
func onlyHeld(all []*inspect.Collection, codes []string) ([]*inspect.Collection, error) {
	if len(codes) == 0 {
		return all, nil
	}
	var kept []*inspect.Collection
	for _, code := range codes {
		c, err := held(all, strings.TrimSpace(code))
		if err != nil {
			return nil, err
		}
		if !slices.Contains(kept, c) {
			kept = append(kept, c)
		}
	}
	return kept, nil
}

// held is the collection with a code, or a directory.
func held(all []*inspect.Collection, name string) (*inspect.Collection, error) {
	var codes []string
	for _, c := range all {
		if c.Code == name || c.Directory == name {
			return c, nil
		}
		codes = append(codes, c.Code)
	}
	return nil, usagef("%s: there is no such collection; there are %s", name, strings.Join(codes, ", "))
}

func (o *batchStatsOptions) print(w io.Writer, t *inspect.Table) error {
	const counts = "\tpages\tsites\tbytes\tapart\tunchanged\terrors\tfailed\t"
	cells := func(r *inspect.Row) string {
		return fmt.Sprintf("\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t", grouped(r.Pages), grouped(int64(r.Sites)),
			stats.Bytes(r.Bytes), grouped(r.Apart), grouped(r.Unchanged), grouped(r.Errors), grouped(r.Failed))
	}
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tab, "directory\tcollection\tdays"+counts+"pages a day\tbytes a day\t")
	for _, r := range append(slices.Clone(t.Collections), t.All) {
		code, days := r.Collection, int64(max(r.Days, 1))
		if r == t.All {
			code = "all"
		}
		fmt.Fprintf(tab, "%s\t%s\t%d%s%s\t%s\t\n", r.Directory, code, r.Days, cells(r), grouped(r.Pages/days),
			stats.Bytes(r.Bytes/days))
	}
	fmt.Fprintln(tab)
	if o.days {
		fmt.Fprintln(tab, "day\tcollection"+counts)
		for _, r := range t.Days {
			fmt.Fprintf(tab, "%s\t%s%s\n", r.Date, r.Collection, cells(r))
		}
	} else if byDate := t.ByDate(); len(byDate) > 0 {
		fmt.Fprintln(tab, "day"+strings.Replace(counts, "\tsites", "", 1))
		for _, r := range byDate {
			_, rest, _ := strings.Cut(cells(r)[1:], "\t")
			_, rest, _ = strings.Cut(rest, "\t")
			fmt.Fprintf(tab, "%s\t%s\t%s\n", r.Date, grouped(r.Pages), rest)
		}
	}
	charsets := func(r *inspect.Row) map[string]int64 { return r.Charsets }
	others := func(r *inspect.Row) map[string]int64 { return r.ApartBy }
	printShares(tab, "charset", t.Collections, charsets)
	printShares(tab, "apart, in", t.Collections, others)
	if err := tab.Flush(); err != nil {
		return err
	}
	if len(t.Open) > 0 {
		fmt.Fprintln(w)
	}
	for _, d := range t.Open {
		if d.Nothing != "" {
			fmt.Fprintf(w, "%s of %s: %v: %s\n", d.Date, d.Collection, batch.ErrNothing, d.Nothing)
			continue
		}
		fmt.Fprintf(w, "%s of %s is not done: round %d, %s\n", d.Date, d.Collection, d.Round, d.Job)
	}
	return nil
}

// printShares prints what of a kind each collection has, most first.
func printShares(w io.Writer, head string, rows []*inspect.Row, of func(*inspect.Row) map[string]int64) {
	if len(inspect.Names(rows, of)) == 0 {
		return
	}
	fmt.Fprintf(w, "\ncollection\t%s\tpages\tshare\t\n", head)
	for _, r := range rows {
		all, sum := of(r), int64(0)
		for _, n := range all {
			sum += n
		}
		names := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
			if all[a] != all[b] {
				return int(all[b] - all[a])
			}
			return strings.Compare(a, b)
		})
		for _, name := range names {
			fmt.Fprintf(w, "%s\t%s\t%s\t%.1f%%\t\n", r.Collection, inspect.VisibleLine(name), grouped(all[name]),
				100*float64(all[name])/float64(sum))
		}
	}
}

func writeCSV(w io.Writer, t *inspect.Table) error {
	charsets := inspect.Names(t.Days, func(r *inspect.Row) map[string]int64 { return r.Charsets })
	others := inspect.Names(t.Days, func(r *inspect.Row) map[string]int64 { return r.ApartBy })
	head := []string{"day", "collection", "directory", "pages", "sites", "bytes", "apart", "fetched", "unchanged",
		"redirects", "errors", "failed", "left_out"}
	for _, name := range charsets {
		head = append(head, "charset "+name)
	}
	for _, name := range others {
		head = append(head, "apart "+name)
	}
	out := csv.NewWriter(w)
	if err := out.Write(head); err != nil {
		return err
	}
	for _, r := range t.Days {
		numbers := []int64{r.Pages, int64(r.Sites), r.Bytes, r.Apart, r.Fetched, r.Unchanged, r.Redirects,
			r.Errors, r.Failed, r.LeftOut}
		for _, name := range charsets {
			numbers = append(numbers, r.Charsets[name])
		}
		for _, name := range others {
			numbers = append(numbers, r.ApartBy[name])
		}
		line := []string{r.Date, table.Cell(r.Collection), table.Cell(r.Directory)}
		for _, n := range numbers {
			line = append(line, strconv.FormatInt(n, 10))
		}
		if err := out.Write(line); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// growth draws pages and bytes that each collection has by the end of each day.
func growth(t *inspect.Table) []byte {
	c := chart.Chart{Title: "Growth of the collections, " + stats.Count(t.All.Days, "days")}
	for _, r := range t.ByDate() {
		day, err := time.Parse(time.DateOnly, r.Date)
		if err == nil { // as of every date that was checked
			c.Days = append(c.Days, day)
		}
	}
	inPages := chart.Panel{Title: "pages", Unit: func(v float64) string { return grouped(int64(v)) }}
	inBytes := chart.Panel{Title: "bytes", Unit: func(v float64) string { return stats.Bytes(int64(v)) }}
	for _, sum := range t.Collections {
		pages, bytes := make([]float64, len(c.Days)), make([]float64, len(c.Days))
		for _, r := range t.Days {
			if r.Collection != sum.Collection {
				continue
			}
			for i, day := range c.Days {
				if day.Format(time.DateOnly) >= r.Date {
					pages[i] += float64(r.Pages)
					bytes[i] += float64(r.Bytes)
				}
			}
		}
		inPages.Lines = append(inPages.Lines, chart.Line{Name: sum.Collection, Values: pages})
		inBytes.Lines = append(inBytes.Lines, chart.Line{Name: sum.Collection, Values: bytes})
	}
	c.Panels = []chart.Panel{inPages, inBytes}
	var b strings.Builder
	_ = c.SVG(&b) // a Builder takes all
	return []byte(b.String())
}
